"""Kneser-Ney models that ``nplm train`` estimates on disk."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click

from nplm.cli._bars import stages
from nplm.cli._messages import report_in_options
from nplm.cli._models import read_scorer
from nplm.cli._tally import report_perplexities, report_words
from nplm.cli._text import files_of
from nplm.formats._model_files import check_writable
from nplm.formats.counts.estimation import Estimated, Resources, estimate, source_of
from nplm.formats.counts.merging import CountFiles
from nplm.formats.outputs import NgramsFile, free_memory
from nplm.models.ngrams.stages.smoothing import Smoothing
from nplm.text.words.splitting import Splitter
from nplm.text.words.word_choice import WordChoice

__all__ = ["Estimation", "is_arpa"]

ARPA_NAMES = (".arpa", ".arpa.gz", ".arpa.xz")
GIGA = 1e9


def is_arpa(path: Path) -> bool:
    """Whether the name of a file is that of an ARPA file."""
    return path.name.endswith(ARPA_NAMES)


@dataclass(frozen=True)
class Estimation:
    """A Kneser-Ney model to estimate, with files in `folder`.

    `memory` is in bytes, by default what is free. Without `splitter` words are split at
    blanks. With `of_counts` the inputs are count files.
    """

    smoothing: Smoothing
    choice: WordChoice
    splitter: Splitter | None
    memory: int | None
    folder: str | None
    bits: int | None
    n_jobs: int
    blank_lines: bool
    of_counts: bool = False

    def train(
        self, inputs: Sequence[str], output: Path, valid: str | None, test: str | None
    ) -> None:
        """Estimate the model, save it, and report."""
        scores = valid is not None or test is not None
        if scores and is_arpa(output):
            raise click.UsageError(
                "an ARPA file has to be read whole before it scores: leave --valid and "
                "--test out and score it with nplm query, or give OUTPUT another name."
            )
        if is_arpa(output) and self.bits is not None:
            raise click.UsageError(
                "--bits is for mapped n-grams: leave it out, or give OUTPUT a name "
                "that is not that of an ARPA file."
            )
        estimated = self._estimate(inputs, output)
        unknown = estimated.n_unknown / estimated.n_tokens
        report_words(estimated.n_lines, estimated.n_tokens, estimated.n_words, unknown)
        if is_arpa(output) and self.splitter is not None:
            click.echo(
                f"Note: {output} has no tokenizer, and its text will be split between "
                "blanks: train with --tokens blanks, or give it text that is split.",
                err=True,
            )
        if scores:
            scorer = read_scorer(output)
            report_perplexities(scorer, valid, test, blank_lines=self.blank_lines)

    def _estimate(self, inputs: Sequence[str], output: Path) -> Estimated:
        memory = free_memory() if self.memory is None else self.memory
        if self.memory is None:
            click.echo(
                f"estimating within {memory / GIGA:.1f} GB of memory (--memory sets "
                "another limit), with temporary files on disk (--folder)",
                err=True,
            )
        with report_in_options(), _terms_as_interrupts(), stages() as bars:
            check_writable(output)
            kind: Literal["arpa", "binary"] = "arpa" if is_arpa(output) else "binary"
            file = NgramsFile(output, kind, self.bits)
            file.check(self.smoothing.order, self.splitter)
            texts: Any = CountFiles(inputs) if self.of_counts else files_of(inputs)
            source = source_of(
                texts, self.choice, self.splitter, self.blank_lines, os.fspath(output)
            )
            progress = bars.counting("words")
            resources = Resources(memory, self.folder, self.n_jobs, progress)
            return estimate(self.smoothing, source, file, resources)


@contextmanager
def _terms_as_interrupts() -> Iterator[None]:
    """Let a SIGTERM, as a cluster sends it, clean up as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
