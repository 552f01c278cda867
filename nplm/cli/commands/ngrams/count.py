"""``nplm count``: the n-grams of a text with their counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nplm.base.system import free_memory
from nplm.cli._bars import stages
from nplm.cli._messages import report_in_options
from nplm.cli._options import command, flag, option
from nplm.cli._outputs import output_option, refuse_to_replace
from nplm.cli._text import BLANK_LINES, INPUTS, Files
from nplm.cli._values import MAX_ORDER, memory_option, weights_of
from nplm.formats.counts.count_files import CountFiles
from nplm.formats.counts.estimation import count_ngrams


@command(
    "count", INPUTS,
    output_option("File of the counts; compressed if its name ends in .gz or .xz."),
    option("--order", click.IntRange(1, MAX_ORDER), 5,
        "Words in the longest n-grams."),
    flag("--merge",
        "TEXT is files of counts, such as nplm count writes: add them up, as SRILM's "
        "ngram-merge."),
    option("--weights", weights_of("file of counts"), None,
        "With --merge, a weight above 0 for each file, such as 3,1. Counts stay whole "
        "numbers: if a weight is not one, they are rounded, but never below 1."),
    memory_option("sort n-grams"),
    BLANK_LINES,
)  # fmt: skip
def count_command(
    inputs: tuple[str, ...],
    output: Path,
    merge: bool,
    weights: list[float] | None,
    memory: int | None,
    **options: Any,
) -> None:
    """Count the n-grams of TEXT, as SRILM's ngram-count -write.

    A line of TEXT (by default of standard input; plain, gzip, bzip2, xz or zstd) is a
    sentence of words between blanks. A line of OUTPUT is an n-gram, a tab, and its
    count. nplm train --counts estimates a model from such files.

    \b
    Examples:
      nplm count train.txt -o counts.gz --order 3
      nplm count talk.gz news.gz --merge --weights 3,1 -o both.gz --order 3
    """  # noqa: D301  (click reads the control character)
    refuse_to_replace(output, *inputs)
    if merge and (not inputs or "-" in inputs):
        raise click.UsageError("--merge reads files of counts: give their names.")
    if merge and options["blank_lines"]:
        raise click.UsageError("--blank-lines is for texts: leave it out with --merge.")
    if weights is not None and not merge:
        raise click.UsageError("--weights is for files of counts: give --merge too.")
    with report_in_options(), stages(lines=None) as bars:
        files = None if merge else Files(inputs)
        texts: Any = CountFiles(inputs, weights) if files is None else files
        progress = bars.counting("n-grams" if merge else "words", files)
        memory = free_memory() if memory is None else memory
        count_ngrams(
            texts, output, memory=memory, n_jobs=1, progress=progress, **options
        )
