"""Training with ``--memory``: Kneser-Ney models that are estimated on disk."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from nplm import KneserNeyLM, TextLM, Vocabulary
from nplm.cli._bars import stages
from nplm.cli._tally import report_perplexities, report_words, told
from nplm.cli._text import files_of
from nplm.formats import Estimated, estimate_arpa, estimate_binary, load_binary

__all__ = ["Estimation", "is_arpa"]

ARPA_NAMES = (".arpa", ".arpa.gz", ".arpa.xz")


def is_arpa(path: Path) -> bool:
    """Whether the name of a file is that of an ARPA file."""
    return path.name.endswith(ARPA_NAMES)


@dataclass(frozen=True)
class Estimation:
    """A Kneser-Ney model to estimate in this much memory, with files in `folder`."""

    ngrams: KneserNeyLM
    vocabulary: Vocabulary
    memory: str
    folder: str | None
    n_jobs: int
    blank_lines: bool

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
        estimated = self._estimate(inputs, output)
        unknown = estimated.n_unknown / estimated.n_tokens
        report_words(estimated.n_lines, estimated.n_tokens, estimated.n_words, unknown)
        if scores:
            lm = TextLM.from_model(*load_binary(output))
            report_perplexities(lm, valid, test, blank_lines=self.blank_lines)

    def _estimate(self, inputs: Sequence[str], output: Path) -> Estimated:
        estimate = estimate_arpa if is_arpa(output) else estimate_binary
        with told(), _terms_as_interrupts(), stages(Console(stderr=True)) as shown:

            def show(stage: str, done: int, total: int) -> None:
                # The length of a text is known once it has been read.
                note = "" if total else f"{done:,} words"
                shown.show(stage, done if total else 0, total, note)

            return estimate(
                self.ngrams,
                files_of(inputs),
                output,
                vocabulary=self.vocabulary,
                memory=self.memory,
                folder=self.folder,
                n_jobs=self.n_jobs,
                blank_lines=self.blank_lines,
                progress=show,
            )


@contextmanager
def _terms_as_interrupts() -> Iterator[None]:
    """Let a SIGTERM, as a cluster sends it, clean up as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
