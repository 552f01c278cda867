"""``nplm query``: probabilities of words, and the perplexity of a text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import click
import numpy as np

from nplm._kernels.files._token_lines import format_tokens
from nplm.base.estimators.scored_texts import perplexity
from nplm.cli._bars import bars_beside_output
from nplm.cli._models import MODEL, read_line_scorer
from nplm.cli._options import command, flag, option
from nplm.cli._outputs import notify
from nplm.cli._tally import (
    LN10,
    Figures,
    Scored,
    TextScorer,
    as_json,
    end_of_lines,
    warning_of_unknown,
)
from nplm.cli._text import BLANK_LINES, INPUTS, NO_MARKS
from nplm.text.lm.scorer import Scorer, measured
from nplm.text.lm.text_scores import NO_SPELLING, ScoredTokens

Token = dict[str, Any]  # figures by the names of JSON


@command(
    "query", MODEL, INPUTS,
    flag("--summary -s", "Show only the figures of the whole text."),
    option("--each", ["word", "line", "file"], "word",
        "Show the probability of each word, or log10 of the probability, the "
        "perplexity, and the numbers of tokens and of unknown words of each line or "
        "file."),
    flag("--json in_json",
        "Show an object of JSON for each line or file, and one for the whole text."),
    option("--columns", ["kenlm", "srilm"], "kenlm",
        "Show words as KenLM's query does, or as SRILM's ngram -ppl -debug 2, with its "
        "figures of each line and file."),
    BLANK_LINES, NO_MARKS,
)  # fmt: skip
def query_command(
    model: str,
    inputs: tuple[str, ...],
    summary: bool,
    each: str,
    in_json: bool,
    columns: str,
    blank_lines: bool,
    no_marks: bool,
    verify: bool,
) -> None:
    """Show log10 of each word's probability, and perplexities.

    MODEL is a text model that nplm saved, an ARPA file, or mapped n-grams. A line of
    TEXT (by default of standard input; plain, gzip, bzip2, xz or zstd) is a sentence;
    blank lines are left out (--blank-lines). OOV marks a word outside the vocabulary.
    For models that back off, the number before a probability is the length of the
    n-gram found. The last lines have the figures of KenLM's query (perplexity with and
    without unknown words) and of SRILM's ngram -ppl, in which unknown words count
    unless their probability is 0 (ppl1 is divided by the words without sentence
    ends), for the words that the model splits text into. The perplexity per word of
    the text and the bits per character and per byte also compare models that split
    text differently. They include how unknown words are spelled, if the model knows
    it: those that nplm trains do.

    \b
    Examples:
      nplm query model.arpa.gz test.txt
      xzcat test.txt.xz | nplm query --summary model
      nplm query --each file model *.txt
      nplm query --json model test.txt | jq .perplexity
      nplm query --columns srilm model.arpa test.txt > test.ppl
    """  # noqa: D301  (click reads the control character)
    each = "" if summary else each
    by_word = each == "word"
    if columns == "srilm" and (in_json or not by_word):
        raise click.UsageError(
            "--columns srilm shows each word: leave out --summary, --each and --json."
        )
    scorer = read_line_scorer(model, verify=verify, no_marks=no_marks)
    score = TextScorer(scorer, blank_lines=blank_lines, bos=not no_marks)
    show: Callable[[Scorer, Scored], None] | None = None
    if in_json and each != "file" and not summary:
        show = _print_objects
    elif by_word:
        show = _print_words if columns == "kenlm" else _print_as_srilm
    elif each == "line":
        show = _print_lines
    # The text shows words between blanks.
    words = by_word and (show is not _print_words or scorer.codec.word_ids is None)
    whole = Figures(scorer.eos)
    with bars_beside_output() as bars:
        for name in inputs or ("-",):
            of_file = Figures(scorer.eos)
            for chunk in bars.chunks(f"scoring {name}", [name]):
                scored = score(chunk, words=words)
                part = scored.tokens
                measures = measured(scorer, scored.texts, part)
                whole.add(part, *measures)
                of_file.add(part, *measures)
                if show is not None:
                    show(scorer, scored)
            if each == "file":
                sums = of_file.log_prob, of_file.n_tokens, of_file.n_unknown
                if in_json:
                    click.echo(as_json({"file": name} | _named(*sums)))
                else:
                    click.echo(f"{_figures(*sums)}\t{name}")
            if columns == "srilm":
                click.echo(f"file {name}: {of_file.as_srilm()}")
    if whole.n_documents == 0:
        raise click.ClickException("there is no line of text to query.")
    if in_json:
        figures = whole.figures().items()
        named = {name.lower().replace(" ", "_"): value for name, value in figures}
        click.echo(as_json(named))
    elif columns == "kenlm":
        for line in whole.lines():
            click.echo(line)
    advice = "Is the text split into words as the model's was?"
    warning = warning_of_unknown(whole.n_unknown / max(whole.n_tokens, 1), advice)
    if whole.n_impossible:
        notify(
            "Note: unknown words have no probability by this model, where KenLM's "
            f"query gives each 10^-100. There are {whole.n_impossible}."
        )
    elif warning:
        notify(f"Warning: {warning}")
    if np.isnan(whole.spelling):
        notify(
            f"Note: the text has unknown words ({whole.n_unknown:,}), so there are no "
            "bits per character or byte and no perplexity per word of the text: "
            f"{NO_SPELLING}."
        )


def _print_objects(scorer: Scorer, scored: Scored) -> None:
    words = _words_of(scorer, scored.tokens)
    for i, sums in enumerate(_of_lines(scored)):
        click.echo(as_json(({"words": words[i]} if words else {}) | _named(*sums)))


def _print_lines(_: Scorer, scored: Scored) -> None:
    for sums in _of_lines(scored):
        click.echo(_figures(*sums))


def _of_lines(scored: Scored) -> Iterator[tuple[float, int, int]]:
    """Return the log-probability, tokens and unknown words of each line."""
    return zip(*(column.tolist() for column in scored.sums()))


def _named(log_prob: float, n_tokens: int, n_unknown: int) -> dict[str, int | float]:
    return {
        "log10_prob": log_prob / LN10,
        "perplexity": perplexity(log_prob, n_tokens),
        "tokens": n_tokens,
        "unknown": n_unknown,
    }


def _figures(log_prob: float, n_tokens: int, n_unknown: int) -> str:
    """Return log10 of a probability, the perplexity, tokens and unknown words."""
    shown = f"{log_prob / LN10:.4f}\t{perplexity(log_prob, n_tokens):.4f}"
    return f"{shown}\t{n_tokens}\t{n_unknown}"


def _print_words(scorer: Scorer, scored: Scored) -> None:
    """Show the words of each line in one, as text of columns: lines are many."""
    part, ends = scored.tokens, _ends(scorer)
    documents = scored.texts if part.words is None else part.words
    log10 = part.log_prob / LN10
    lines = format_tokens(
        documents, ends[0] if ends else None, log10, part.order,
        part.unknown.view(np.uint8), part.sums(log10),
    )  # fmt: skip
    click.echo(lines, nl=False)


def _ends(scorer: Scorer) -> list[Any]:
    """Return the word that ends each line, if the end counts."""
    return [end_of_lines(scorer.codec, scorer.word_scorer.boundary)][: scorer.eos]


def _words_of(scorer: Scorer, part: ScoredTokens) -> list[list[Token]]:
    """Return the words of each line, with their figures, if they were asked for."""
    columns = {"log10_prob": part.log_prob / LN10, "unknown": part.unknown}
    if part.order is not None:
        columns["order"] = part.order
    figures = zip(*(column.tolist() for column in columns.values()))
    return [
        [{"word": word} | dict(zip(columns, next(figures))) for word in [*line, *ends]]
        for ends in [_ends(scorer)]
        for line in part.words or []
    ]


def _print_as_srilm(scorer: Scorer, scored: Scored) -> None:
    """Show each word in a line of SRILM's ``-debug 2``, and the figures of a line."""
    part, ends = scored.tokens, scorer.eos
    for line, of_line in zip(_words_of(scorer, part), part.documents()):
        click.echo(" ".join(token["word"] for token in (line[:-1] if ends else line)))
        context = "<s> "
        for token in line:
            word = "<unk>" if token["unknown"] else token["word"]
            source = f"[{token['order']}gram] " if "order" in token else ""
            log10 = token["log10_prob"]
            if token["unknown"] and log10 == -np.inf:
                source = "[OOV] "
            prob = f"{10**log10:.7g} [ {log10:.7g} ]"
            click.echo(f"\tp( {word} | {context}) \t= {source}{prob}")
            context = f"{word} ..."
        figures = Figures(ends)
        figures.add(of_line)
        click.echo(f"{figures.as_srilm()}\n")
