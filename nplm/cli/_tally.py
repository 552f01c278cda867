"""Perplexities of a text, as KenLM and SRILM count them, and reports of training."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray

from nplm.base.exceptions import DivergenceError
from nplm.cli._text import blocks_of_lines
from nplm.text.codecs import Text
from nplm.text.lm.scorer import Scorer
from nplm.text.lm.text_scores import TextScores, TextSize
from nplm.text.words.marks import LineMarks

if TYPE_CHECKING:
    from nplm import TextLM

__all__ = [
    "LineScores", "Scored", "Tally", "as_json", "line_marks", "perplexity",
    "report_perplexities", "report_words", "scored", "scored_lines", "told",
    "warning_of_unknown",
]  # fmt: skip

# With a larger share, a perplexity mostly says how well <unk> is predicted.
MOSTLY_UNKNOWN = 0.5
NO_TEXT = TextSize(0, 0, 0)
# Names of figures: the probability of the whole text, and those that follow from it.
SPELLED = "log10 probability with unknown words spelled"
OF_TEXT = "perplexity per word of the text", "bits per character", "bits per byte"


def line_marks(codec: Any, boundary: int) -> LineMarks:
    """Return the marks of the lines of a model's texts."""
    [end] = codec.words(np.array([boundary]))
    return LineMarks(end, lambda line: codec.tokenizer.transform([line])[0])


@dataclass(frozen=True)
class Scored:
    """The log10 probabilities of the tokens of some documents.

    `spelling` is the natural logarithm of the probability of how unknown words are
    spelled. For models that back off, `order` has the length of the n-gram found.
    """

    log10: NDArray[np.float64]
    unknown: NDArray[np.bool_]
    document: NDArray[np.intp]
    n_documents: int
    size: TextSize
    spelling: float = 0.0
    order: NDArray[np.int32] | None = None


def scored(scorer: Scorer, documents: list[str]) -> Scored:
    """Score every token of documents."""
    ends, codec = scorer.eos, scorer.codec
    assert isinstance(codec, Text)  # others are refused when they are read
    encoded = codec.encode(documents, "X", None)
    log_prob, details = scorer.word_scorer.tokens(*encoded, True, ends)
    lengths = encoded.lengths + ends
    unknown = np.zeros(len(log_prob), dtype=bool)
    is_word = np.ones(len(log_prob), dtype=bool)
    if ends:
        is_word[np.cumsum(lengths) - 1] = False
    unknown[is_word] = encoded.ids == codec.vocabulary.unknown_id_
    return Scored(
        log_prob / np.log(10),
        unknown,
        np.repeat(np.arange(len(documents)), lengths),
        len(documents),
        TextSize.of(documents, ends=ends),
        codec.spelling_log_prob(documents, encoded),
        details.get("order"),
    )


class LineScores(NamedTuple):
    """Scores of lines.

    - `log10`: log10 of the probability of each line
    - `n_tokens`: tokens of each line, the end included if it is predicted
    - `n_unknown`: unknown words of each line
    """

    log10: NDArray[np.float64]
    n_tokens: NDArray[np.intp]
    n_unknown: NDArray[np.intp]


def scored_lines(scorer: Scorer, lines: list[str]) -> LineScores:
    """Score lines as wholes."""
    ends, codec, n_lines = scorer.eos, scorer.codec, len(lines)
    ids, lengths = codec.encode(lines, "X", None)
    log_prob, _ = scorer.word_scorer.tokens(ids, lengths, True, ends)
    n_tokens = lengths + ends
    line = np.repeat(np.arange(n_lines), n_tokens)
    log10 = np.bincount(line, log_prob, minlength=n_lines) / np.log(10)
    unknown = ids == codec.vocabulary.unknown_id_
    line_of_word = np.repeat(np.arange(n_lines), lengths)
    n_unknown = np.bincount(line_of_word[unknown], minlength=n_lines)
    return LineScores(log10, n_tokens, n_unknown)


@dataclass
class Tally:
    """Sums over a text of any size.

    - `sentences`, `tokens`: documents, and predicted tokens: words, and ends if these
      are predicted
    - `unknown`, `zeros`: words outside the vocabulary, and others with probability 0
    - `lost`: words outside the vocabulary with probability 0
    - `total`, `known`: log10 of the probability of all tokens, and without unknown
      words and zeros
    - `size`: words between white space, characters and bytes
    - `spelling`: natural logarithm of the probability of how unknown words are spelled,
      NaN if the model does not know it
    """

    ends_are_predicted: bool
    sentences: int = 0
    tokens: int = 0
    unknown: int = 0
    zeros: int = 0
    lost: int = 0
    total: float = 0.0
    known: float = 0.0
    size: TextSize = NO_TEXT
    spelling: float = 0.0

    def add(self, part: Scored) -> None:
        """Add the tokens of some documents."""
        clear = ~part.unknown
        possible = clear & (part.log10 > -np.inf)
        self.sentences += part.n_documents
        self.size = TextSize(*(a + b for a, b in zip(self.size, part.size)))
        self.tokens += len(part.log10)
        self.unknown += int(part.unknown.sum())
        self.zeros += int((clear & ~possible).sum())
        self.lost += int((part.log10[part.unknown] == -np.inf).sum())
        self.total += float(part.log10.sum())
        self.known += float(part.log10[possible].sum())
        self.spelling += part.spelling

    @property
    def with_unknown(self) -> float:
        """KenLM's perplexity including OOVs."""
        return perplexity(self.total, self.tokens)

    @property
    def without_unknown(self) -> float:
        """KenLM's perplexity excluding OOVs, SRILM's ppl; without zeros too."""
        return perplexity(self.known, self.tokens - self.unknown - self.zeros)

    @property
    def of_words(self) -> float:
        """SRILM's ppl1: the same, divided by the words without sentence ends."""
        n_ends = self.sentences if self.ends_are_predicted else 0
        n_words = self.tokens - self.unknown - self.zeros - n_ends
        return perplexity(self.known, n_words)

    @property
    def of_text(self) -> TextScores:
        """The scores that do not depend on how the text is split into tokens."""
        log_prob = self.total * float(np.log(10))
        return TextScores(
            self.sentences, self.tokens, self.unknown, *self.size, log_prob,
            self.spelling,
        )  # fmt: skip

    def figures(self) -> dict[str, int | float]:
        """Return the figures by name."""
        text = self.of_text
        n_ends = self.sentences if self.ends_are_predicted else 0
        return {
            "sentences": self.sentences,
            "words": self.tokens - n_ends,
            "unknown words": self.unknown,
            "words of probability 0": self.zeros,
            "log10 probability": self.total,
            "perplexity with unknown words": self.with_unknown,
            "perplexity without unknown words": self.without_unknown,
            "perplexity without unknown words and sentence ends": self.of_words,
            SPELLED: self.total + self.spelling / math.log(10),
            OF_TEXT[0]: text.word_perplexity,
            OF_TEXT[1]: text.bits_per_character,
            OF_TEXT[2]: text.bits_per_byte,
        }

    def as_srilm(self) -> str:
        """Return the two lines of SRILM's ``ngram -ppl``."""
        n_ends = self.sentences if self.ends_are_predicted else 0
        ppl, ppl1 = (
            "undefined" if np.isnan(value) else f"{value:.6g}"
            for value in (self.without_unknown, self.of_words)
        )
        return (
            f"{self.sentences} sentences, {self.tokens - n_ends} words, "
            f"{self.unknown} OOVs\n{self.zeros} zeroprobs, logprob= {self.known:.6g} "
            f"ppl= {ppl} ppl1= {ppl1}"
        )

    def lines(self) -> list[str]:
        """Return the figures, one a line; without those that the model has not."""
        figures = self.figures()
        unused = {SPELLED} if self.unknown == 0 else set[str]()
        if math.isnan(self.spelling):
            unused = {SPELLED, *OF_TEXT}
        return [
            f"{name}: {value:.4f}" if isinstance(value, float) else f"{name}: {value}"
            for name, value in figures.items()
            if name not in unused
        ]


def warning_of_unknown(
    share: float, advice: str = "Lower --min-count, or give more words."
) -> str | None:
    """Return a warning if this share of unknown words makes perplexities useless."""
    if share <= MOSTLY_UNKNOWN:
        return None
    return (
        f"{share:.0%} of the words are <unk>, which is easy to predict: perplexities "
        f"that count it say little. {advice}"
    )


def perplexity(log10: float, n: int) -> float:
    """Return the perplexity of n tokens, NaN if there are none."""
    with np.errstate(over="ignore"):
        return float(np.power(10.0, -log10 / n)) if n else float("nan")


def as_json(figures: Any) -> str:
    """Return figures as a line of JSON, numbers with six decimals."""
    return json.dumps(_rounded(figures), ensure_ascii=False, allow_nan=False)


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(own) for name, own in value.items()}
    if isinstance(value, list):
        return [_rounded(own) for own in value]
    if not isinstance(value, float):
        return value
    return round(value, 6) if math.isfinite(value) else None  # JSON has no infinity


def report_words(n_lines: int, n_tokens: int, n_words: int, unknown: float) -> None:
    """Report the size of a training text, and the share of unknown words."""
    click.echo(
        f"trained on {n_lines:,} lines of {n_tokens:,} words; vocabulary {n_words:,}, "
        f"{unknown:.2%} of the words are <unk>",
        err=True,
    )
    warning = warning_of_unknown(unknown)
    if warning:
        click.echo(f"Warning: {warning}", err=True)


def report_perplexities(
    lm: TextLM,
    valid: str | None,
    test: str | None,
    *,
    blank_lines: bool,
    done: Callable[[], Any] = lambda: None,
) -> None:
    """Report the perplexities of two texts, if given; call `done` after each block."""
    scorer = lm.scorer()
    for name, path in (("validation", valid), ("test", test)):
        if path is not None:
            _report_perplexity(scorer, name, path, blank_lines, done)


def _report_perplexity(
    scorer: Scorer, name: str, path: str, blank_lines: bool, done: Callable[[], Any]
) -> None:
    tally = Tally(scorer.eos)
    marks = line_marks(scorer.codec, scorer.word_scorer.boundary)
    for block in blocks_of_lines([path], marks, blank_lines=blank_lines):
        tally.add(scored(scorer, block))
        done()
    click.echo(
        f"{name}: perplexity {tally.with_unknown:.2f}, without unknown words "
        f"{tally.without_unknown:.2f} ({tally.unknown:,} of {tally.tokens:,} tokens)"
    )


@contextmanager
def told() -> Iterator[None]:
    """Report the warnings and the errors of a fit, in terms of the options.

    Each warning is reported once, and without the line of Python.
    """
    # Imported here: it needs the networks, and commands that score do not.
    from nplm.cli._options import in_options

    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        try:
            yield
        except (ValueError, DivergenceError) as error:
            raise click.ClickException(in_options(str(error))) from error
        finally:
            for note in dict.fromkeys(str(note.message) for note in notes):
                click.echo(f"Note: {in_options(note)}", err=True)
