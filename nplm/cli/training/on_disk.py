"""Kneser-Ney models that ``nplm train`` estimates on disk."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import click

from nplm.base import system
from nplm.cli._bars import stages
from nplm.cli._messages import report_in_options
from nplm.cli._models import read_scorer
from nplm.cli._outputs import is_arpa, note_lost_tokenizer, notify
from nplm.cli._tally import report_words
from nplm.cli._text import Files, refuse_empty
from nplm.cli.training.job import Job
from nplm.cli.training.options import SMOOTHING
from nplm.formats.counts.count_files import CountFiles
from nplm.formats.counts.estimation import Estimated, estimate, source_of
from nplm.formats.ngrams_file import NgramsFile
from nplm.models.ngrams.stages.scratch import Scratch
from nplm.models.ngrams.stages.smoothing import Smoothing
from nplm.text.words.splitting import OF_LOGS, Splitter

GIGA = 1e9


def train_on_disk(job: Job) -> None:
    """Estimate a Kneser-Ney model, save it, and report."""
    refuse_empty(job.valid, "validate")
    refuse_empty(job.test, "test")
    options, output = job.options, job.output
    scores = (job.valid, job.test) != (None, None)
    if scores and is_arpa(output):
        raise click.UsageError(
            "an ARPA file has to be read whole before it scores: leave --valid and "
            "--test out and score it with nplm query, or give OUTPUT another name."
        )
    if is_arpa(output) and options["bits"] is not None:
        raise click.UsageError(
            "--bits is for mapped n-grams: leave it out, or give OUTPUT a name that is "
            "not that of an ARPA file."
        )
    blanks = options["of_counts"] or options["tokens"] == "blanks"
    of_words = Splitter(**OF_LOGS) if options["tokens"] == "logs" else Splitter()
    splitter = None if blanks else of_words
    estimated = _estimate(job, splitter)
    unknown = estimated.n_unknown / estimated.n_tokens
    report_words(estimated.n_lines, estimated.n_tokens, estimated.n_words, unknown)
    if is_arpa(output) and splitter is not None:
        note_lost_tokenizer(output)
    if scores:
        job.report(read_scorer(output))


def _estimate(job: Job, splitter: Splitter | None) -> Estimated:
    options, output = job.options, job.output
    memory = options["memory"]
    if memory is None:
        memory = system.free_memory()
        notify(
            f"estimating within {memory / GIGA:.1f} GB of memory (--memory sets "
            "another limit), with temporary files on disk (--folder)"
        )
    with report_in_options(), _terms_as_interrupts(), stages() as bars:
        smoothing = Smoothing.of(**{name: options[name] for name in SMOOTHING})
        kind: Literal["arpa", "binary"] = "arpa" if is_arpa(output) else "binary"
        file = NgramsFile(output, kind, options["bits"])
        file.check(smoothing.order, splitter)
        files = None if options["of_counts"] else Files(job.inputs)
        texts: Any = CountFiles(job.inputs) if files is None else files
        source = source_of(
            texts, job.choice, splitter, options["blank_lines"], os.fspath(output)
        )
        progress = bars.counting("n-grams" if files is None else "words", files)
        n_jobs, folder = options["n_jobs"], options["folder"]
        system.reuse_freed_memory()
        marks = not options["no_marks"]
        with Scratch(folder, memory, n_jobs, progress) as work:
            return estimate(smoothing, source, file, work, marks=marks)


@contextmanager
def _terms_as_interrupts() -> Iterator[None]:
    """Let a SIGTERM, as a cluster sends it, clean up as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
