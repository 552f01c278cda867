"""``nplm filter``: the lines of a text that a model finds most probable."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple

import click
import numpy as np

from nplm.base.array_types import Counts, Floats
from nplm.base.estimators.scored_texts import perplexities
from nplm.cli._bars import Stages, bars_beside_output
from nplm.cli._jobs import JOBS, in_order
from nplm.cli._models import MODEL, read_line_scorer
from nplm.cli._options import command, flag, option
from nplm.cli._outputs import OutputFile, notify, refuse_to_replace
from nplm.cli._tally import TextScorer
from nplm.cli._text import (
    ERRORS,
    FIELD,
    INPUTS,
    Chunk,
    n_bytes_of,
    report_left_out,
)
from nplm.cli._values import ABOVE_ZERO, POSITIVE, SHARE, Real
from nplm.formats._model_files import writing

PARTS = ("head", "middle", "tail")
JSON_HINT = (
    "Hint: the first line looks like an object of JSON, all of which is scored. "
    "--field names the field that holds the text."
)


class Part(NamedTuple):
    """Lines that were scored at once; NaN for those that are left out."""

    lines: list[bytes]
    perplexities: Floats


@dataclass(frozen=True)
class Perplexities:
    """The work of a process: from a chunk to its perplexities, and lines if asked."""

    score: TextScorer
    with_lines: bool

    def __call__(self, chunk: Chunk) -> Part:
        """Return the lines, and their perplexities."""
        scored = self.score(chunk)
        log_prob, n_tokens, _ = scored.sums()
        # A line without a token comes last.
        scores = np.where(n_tokens, perplexities(log_prob, n_tokens), np.inf)
        of_lines = np.full(len(chunk.lines), np.nan)
        of_lines[np.array(scored.numbers, dtype=np.intp) - chunk.first] = scores
        lines = chunk.lines if self.with_lines else []
        return Part(lines, of_lines)


@command(
    "filter", MODEL, INPUTS,
    option("--keep", SHARE, None,
        "Share of the lines to keep: those with the lowest perplexities."),
    option("--max-perplexity", ABOVE_ZERO, None,
        "Keep the lines up to this perplexity."),
    option("--min-perplexity", Real(0, math.inf, min_open=True, max_open=True), None,
        "Leave out the lines below this perplexity, such as repeated ones; alone, or "
        "with --keep or --max-perplexity."),
    flag("--by-quantiles",
        "Keep all lines, each after its third and a tab: head (the lowest "
        "perplexities), middle or tail. With --field, objects get bucket and "
        "perplexity."),
    option("--by-perplexities", click.Tuple([ABOVE_ZERO, ABOVE_ZERO]), None,
        "As --by-quantiles, with lines up to the perplexity LOW as head, and those up "
        "to HIGH as middle.", metavar="LOW HIGH"),
    FIELD,
    option("--rejects", OutputFile(), None,
        "File for the other lines; compressed if its name ends in .gz or .xz."),
    option("--sample", POSITIVE, 10_000,
        "Lines of a pipe, or a few more, that its threshold is taken from."),
    ERRORS, JOBS,
)  # fmt: skip
def filter_command(
    model: str,
    inputs: tuple[str, ...],
    keep: float | None,
    max_perplexity: float | None,
    min_perplexity: float | None,
    by_quantiles: bool,
    by_perplexities: tuple[float, float] | None,
    field: str | None,
    rejects: Path | None,
    sample: int,
    errors: str,
    n_jobs: int,
    verify: bool,
) -> None:
    """Keep the lines of TEXT that MODEL finds most probable, in their order.

    Lines are compared by their perplexity per token, as nplm score --json has it, and
    written as they are. Lines of equal perplexity are kept or left out together.

    Files are read twice: to score the lines, with 8 bytes of memory for each, and to
    write them. A pipe is read once: its first lines (--sample) set the threshold for
    all of it, and are held in memory. Limits that are perplexities need one pass.

    \b
    Examples:
      nplm filter model crawl.txt.gz --keep 0.7 --jobs -1 --rejects bad.gz > good.txt
      zcat crawl.gz | nplm filter model --min-perplexity 20 --max-perplexity 500
      nplm filter model crawl.jsonl --field text --by-quantiles --errors skip
    """  # noqa: D301  (click reads the control character)
    in_parts = by_quantiles or by_perplexities is not None
    n_limits = by_quantiles + sum(
        limit is not None for limit in (keep, max_perplexity, by_perplexities)
    )
    if n_limits > 1 or (n_limits == 0 and min_perplexity is None):
        raise click.UsageError(
            "give one of --keep, --max-perplexity, --by-quantiles, --by-perplexities, "
            "or --min-perplexity."
        )
    if in_parts and (rejects is not None or min_perplexity is not None):
        raise click.UsageError(
            "--by-quantiles and --by-perplexities keep all lines: leave --rejects and "
            "--min-perplexity out."
        )
    low, high = by_perplexities or (min_perplexity or 0.0, max_perplexity or math.inf)
    if low >= high:
        raise click.UsageError(
            f"--by-perplexities {low:g} {high:g}: LOW is not below HIGH."
            if in_parts
            else f"--min-perplexity {low:g} is not below --max-perplexity {high:g}."
        )
    if rejects is not None:
        refuse_to_replace(rejects, model, *inputs)
    scorer = read_line_scorer(model, verify=verify, n_jobs=n_jobs)
    work = Perplexities(TextScorer(scorer, errors, field), True)
    shares = [keep] if keep is not None else [1 / 3, 2 / 3] if by_quantiles else []
    file: AbstractContextManager[BinaryIO | None] = nullcontext()
    with bars_beside_output() as bars:
        text = _Text(work, inputs, n_jobs, n_bytes_of(inputs), bars)
        if not shares:
            thresholds, parts = np.array([low, high]), text.scored(work)
        elif text.n_bytes:
            thresholds, parts = text.of_files(shares)
        else:
            thresholds, parts = text.of_a_pipe(shares, sample)
        if not in_parts:  # kinds are lines below the limits, within and above
            high = max(thresholds[-1], low)
            thresholds = np.array([np.nextafter(low, -np.inf), high])
        counts = np.zeros(4, dtype=np.int64)
        hints = field is None
        with file if rejects is None else writing(rejects) as bad:
            for part in parts:
                if hints and part.lines:
                    hints = False
                    if part.lines[0].startswith(b'{"'):
                        notify(JSON_HINT)
                # NaN, of lines that are left out, is the last kind.
                kinds = np.searchsorted(thresholds, part.perplexities)
                kinds += np.isnan(part.perplexities)
                counts += np.bincount(kinds, minlength=len(counts))
                good = []
                for line, kind, number in zip(part.lines, kinds, part.perplexities):
                    if in_parts and kind < len(PARTS):
                        good.append(_labelled(line, PARTS[kind], number, field))
                    elif not in_parts and kind == 1:
                        good.append(line + b"\n")
                    elif bad is not None and kind < len(PARTS):
                        bad.write(line + b"\n")
                click.echo(b"".join(good), nl=False)
    _report(counts, low, thresholds, in_parts, field)


@dataclass(frozen=True)
class _Text:
    """A text to filter, and the bar of its passes.

    - `n_bytes`: size of the files, or 0 of a pipe
    """

    work: Perplexities
    inputs: tuple[str, ...]
    n_jobs: int
    n_bytes: int
    bars: Stages

    def scored(self, work: Perplexities) -> Iterator[Part]:
        """Yield all lines as they are scored."""
        chunks = self.bars.chunks("scoring", self.inputs)
        size = self.n_bytes if work.score.is_quick else 0
        return in_order(work, chunks, self.n_jobs, size)

    def of_files(self, shares: list[float]) -> tuple[Floats, Iterator[Part]]:
        """Return the thresholds of files, and their lines, which are read again."""
        scored = self.scored(replace(self.work, with_lines=False))
        every = np.concatenate([np.empty(0), *(part.perplexities for part in scored)])

        def parts() -> Iterator[Part]:
            start = 0
            for chunk in self.bars.chunks("writing", self.inputs):
                of_chunk = every[start : start + len(chunk.lines)]
                start += len(chunk.lines)
                if len(of_chunk) < len(chunk.lines):
                    break
                yield Part(chunk.lines, of_chunk)
            if start != len(every):
                names = " ".join(self.inputs)
                raise ValueError(f"{names}: written to while it was read.")

        return _thresholds(every, shares), parts()

    def of_a_pipe(
        self, shares: list[float], sample: int
    ) -> tuple[Floats, Iterator[Part]]:
        """Return the thresholds of the first lines of a pipe, and all of its lines."""
        parts = self.scored(self.work)
        first, n_lines = list[Part](), 0
        for part in parts:
            first.append(part)
            n_lines += len(part.lines)
            if n_lines >= sample:
                notify(
                    f"Note: a pipe is read once, so its first {n_lines:,} lines set "
                    "the threshold (--sample). Of files all lines do."
                )
                break
        every = np.concatenate([np.empty(0), *(part.perplexities for part in first)])
        return _thresholds(every, shares), chain(first, parts)


def _thresholds(perplexities: Floats, shares: list[float]) -> Floats:
    """Return the perplexities up to which these shares of the lines are."""
    known = np.sort(perplexities[~np.isnan(perplexities)])
    if not len(known):
        return np.full(len(shares), np.inf)
    ranks = [max(round(share * len(known)), 1) - 1 for share in shares]
    return known[ranks]


def _labelled(line: bytes, label: str, perplexity: float, field: str | None) -> bytes:
    if field is None:
        return label.encode() + b"\t" + line + b"\n"
    number = round(float(perplexity), 4) if np.isfinite(perplexity) else None
    labels = {"bucket": label, "perplexity": number}
    return json.dumps(json.loads(line) | labels, ensure_ascii=False).encode() + b"\n"


def _report(
    counts: Counts,
    low: float,
    thresholds: Floats,
    in_parts: bool,
    field: str | None,
) -> None:
    """Report the numbers of lines, and the perplexities between them."""
    *kinds, n_skipped = counts.tolist()
    n_lines = sum(kinds)
    if n_lines == 0:
        text = "there are no lines to keep"
    elif in_parts:
        head, middle, tail = kinds
        text = (
            f"head {head:,} of {n_lines:,} lines (perplexity up to "
            f"{thresholds[0]:.2f}), middle {middle:,} (up to {thresholds[1]:.2f}), "
            f"tail {tail:,}"
        )
    else:
        limits = [f"from {low:.2f}"] if low else []
        if not low or thresholds[1] < np.inf:
            limits.append(f"up to {thresholds[1]:.2f}")
        text = (
            f"kept {kinds[1]:,} of {n_lines:,} lines, of perplexities "
            f"{' '.join(limits)}"
        )
    notify(text)
    report_left_out(n_skipped, n_lines + n_skipped, field)
