"""``nplm score``: a number for each line."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import click

from nplm.base.estimators.scored_texts import perplexity
from nplm.cli._bars import bars_beside_output
from nplm.cli._jobs import JOBS, in_order
from nplm.cli._models import MODEL, read_line_scorer
from nplm.cli._options import command, flag, option
from nplm.cli._outputs import notify
from nplm.cli._tally import LN10, TextScorer, as_json, end_of_lines
from nplm.cli._text import (
    ERRORS,
    FIELD,
    INPUTS,
    NO_MARKS,
    Chunk,
    n_bytes_of,
    report_left_out,
)
from nplm.cli._values import ABOVE_ZERO


class Line(NamedTuple):
    """A line of text, and its score.

    - `odd`: its least probable token, and the log-probability of that, if asked for
    """

    file: str
    number: int
    text: str
    log_prob: float
    n_tokens: int
    n_unknown: int
    odd: tuple[str, float] | None = None

    @property
    def perplexity(self) -> float:
        """That of its tokens; of the least probable one if asked for."""
        if self.odd is not None:
            return perplexity(self.odd[1], 1)
        return perplexity(self.log_prob, self.n_tokens)


class Output(NamedTuple):
    """The lines to print for a chunk of text."""

    text: str
    n_shown: int
    n_scored: int
    n_lines: int


@dataclass(frozen=True)
class Scoring:
    """The work of a process: from a chunk of text to lines of output."""

    score: TextScorer
    row: Callable[[Line], str]
    above: float | None
    by_least: bool = False

    def __call__(self, chunk: Chunk) -> Output:
        """Score the lines of a chunk."""
        scored = self.score(chunk, words=self.by_least)
        columns: list[list[Any]] = [column.tolist() for column in scored.sums()]
        if self.by_least:
            scorer = self.score.scorer
            end = end_of_lines(scorer.codec, scorer.word_scorer.boundary)
            columns.append(scored.least_probable(end))
        figures = zip(*columns)
        lines = [
            Line(chunk.name, number, text, *of_line)
            for number, text, of_line in zip(scored.numbers, scored.joined(), figures)
        ]
        rows = [self.row(line) for line in lines if self._is_shown(line)]
        text = "".join(f"{row}\n" for row in rows)
        return Output(text, len(rows), len(lines), len(chunk.lines))

    def _is_shown(self, line: Line) -> bool:
        return self.above is None or line.perplexity > self.above


@command(
    "score", MODEL, INPUTS,
    flag("--per-token", "Divide by the number of tokens."),
    flag("--with-text", "Put the line after its number."),
    flag("--json in_json",
        "Show an object of JSON for each line: file, line, log10_prob, perplexity, "
        "tokens, unknown, with --least-token least_token and least_log10_prob, and "
        "with --with-text the text."),
    option("--above", ABOVE_ZERO, None,
        "Show only lines with a perplexity per token above this."),
    flag("--least-token",
        "Score each line by its least probable token, and show that: one odd word is "
        "not averaged away. --above, and the perplexity of --json, then is 1 over its "
        "probability."),
    flag("--follow",
        "Go on as TEXT, one file, grows, and with the file that takes its place, until "
        "Ctrl-C."),
    FIELD, ERRORS, NO_MARKS, JOBS,
    option("--progress/--no-progress", None, None,
        "Show how much of the files is scored, on standard error. By default a bar if "
        "that is a terminal and the output is not."),
)  # fmt: skip
def score_command(
    model: str,
    inputs: tuple[str, ...],
    per_token: bool,
    with_text: bool,
    in_json: bool,
    above: float | None,
    least_token: bool,
    follow: bool,
    field: str | None,
    errors: str,
    no_marks: bool,
    n_jobs: int,
    progress: bool | None,
    verify: bool,
) -> None:
    """Show log10 of the probability of each line.

    Use it to filter text, or to rescore the candidates of a recogniser.

    MODEL is a text model that nplm saved, an ARPA file, or mapped n-grams. TEXT is
    plain or compressed (gzip, bzip2, xz or zstd), by default standard input. The output
    has a number for each line, in order. It is -inf if a word has probability 0, such
    as a word that an ARPA file without <unk> lacks. The end of a line counts as a
    token, as in KenLM, unless the model was made without ends. A blank line has the
    probability of its end, or 0 if ends do not count. <s> and </s> at the ends of a
    line are its marks.

    Lines of a pipe are scored as they come, so another program may write a line, and
    wait for its number.

    \b
    Examples:
      nplm score model candidates.txt > scores
      nplm score --per-token --with-text model web.txt.gz | sort -g | tail -1000
      nplm score --json --errors skip --jobs -1 model crawl.txt.xz > scores.jsonl
      nplm score --least-token --above 1e4 --with-text --follow model app.log
    """  # noqa: D301  (click reads the control character)
    if in_json and per_token:
        raise click.UsageError(
            "--json has the tokens and the perplexity of each line: leave --per-token "
            "out."
        )
    if least_token and per_token:
        raise click.UsageError(
            "--least-token shows the probability of one token: leave --per-token out."
        )
    if follow and (len(inputs) != 1 or not os.path.isfile(*inputs) or n_jobs != 1):
        raise click.UsageError(
            "--follow scores the lines of one file as they come: give the name of one "
            "TEXT, which is not a pipe, and leave --jobs out."
        )
    scorer = read_line_scorer(model, verify=verify, n_jobs=n_jobs, no_marks=no_marks)
    if follow and progress is None:
        progress = False
    n_lines = n_shown = n_scored = 0
    row = _json_row(with_text) if in_json else _row(per_token, with_text)
    work = Scoring(
        TextScorer(scorer, errors, field, bos=not no_marks),
        row,
        above,
        least_token,
    )
    with bars_beside_output(progress) as bars:
        size = n_bytes_of(inputs) if work.score.is_quick else 0
        chunks = bars.chunks("scoring", inputs, follow=follow)
        for output in in_order(work, chunks, n_jobs, size):
            click.echo(output.text, nl=False)
            n_lines += output.n_lines
            n_shown += output.n_shown
            n_scored += output.n_scored
    if above is not None:
        notify(f"{n_shown:,} of {n_scored:,} lines are above {above:g}")
    report_left_out(n_lines - n_scored, n_lines, field)


def _row(per_token: bool, with_text: bool) -> Callable[[Line], str]:
    """Return the function that shows a line as a number, and its text."""

    def number(line: Line) -> str:
        if line.odd is not None:
            token, log_prob = line.odd
            return f"{log_prob / LN10:.6f}\t{token}"
        n = max(line.n_tokens, 1) if per_token else 1
        return f"{line.log_prob / LN10 / n:.6f}"

    return (lambda line: f"{number(line)}\t{line.text}") if with_text else number


def _json_row(with_text: bool) -> Callable[[Line], str]:
    """Return the function that shows a line as an object of JSON."""

    def row(line: Line) -> str:
        figures = {
            "file": line.file,
            "line": line.number,
            "log10_prob": line.log_prob / LN10,
            "perplexity": line.perplexity,
            "tokens": line.n_tokens,
            "unknown": line.n_unknown,
        }
        if line.odd is not None:
            token, log_prob = line.odd
            figures |= {"least_token": token, "least_log10_prob": log_prob / LN10}
        return as_json(figures | ({"text": line.text} if with_text else {}))

    return row
