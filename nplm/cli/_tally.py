"""Perplexities of a text, as KenLM and SRILM count them, and reports of training."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray

from nplm.base.array_types import Index
from nplm.base.progress import BAR, counter, stages
from nplm.cli._outputs import notify
from nplm.cli._text import Chunk, chunks_of, n_bytes_of
from nplm.text.lm.scorer import Scorer
from nplm.text.lm.text_scores import PerplexitySums, ScoredTokens
from nplm.text.lm.window_scorer import WindowWordScorer
from nplm.text.words.splitting import LineMarks

# With a larger share, a perplexity mostly says how well <unk> is predicted.
MOSTLY_UNKNOWN = 0.5
# Names of figures: the probability of the whole text, and those that follow from it.
SPELLED = "log10 probability with unknown words spelled"
OF_TEXT = "perplexity per word of the text", "bits per character", "bits per byte"
LN10 = math.log(10)


def end_of_lines(codec: Any, boundary: int) -> str:
    """Return the word for the end of a line."""
    return str(codec.words(np.array([boundary]))[0])


def line_marks(codec: Any, boundary: int) -> LineMarks:
    """Return the marks of the lines of a model's texts."""
    return LineMarks(
        end_of_lines(codec, boundary), lambda line: codec.tokenizer.transform([line])[0]
    )


class Scored(NamedTuple):
    """The scored documents of a chunk of text."""

    numbers: list[int]  # of the lines of the documents
    texts: list[str]  # lines of the documents, of which those in JSON may have several
    document: Index  # that of each line
    tokens: ScoredTokens  # scores of the lines

    def joined(self) -> list[str]:
        """Return the text of each document, its lines with blanks between them."""
        lines, n_lines = iter(self.texts), np.bincount(self.document).tolist()
        return [" ".join(islice(lines, n)) for n in n_lines]

    def sums(self) -> list[NDArray[Any]]:
        """Return the log-probability, tokens and unknown words of each document."""
        tokens, n = self.tokens, len(self.numbers)
        log_prob, lengths, unknown = (
            np.bincount(self.document, of_lines, n)
            for of_lines in (
                tokens.sums(tokens.log_prob), tokens.lengths,
                tokens.sums(tokens.unknown),
            )
        )  # fmt: skip
        return [log_prob, lengths.astype(np.int64), unknown.astype(np.int64)]

    def least_probable(self, end: str) -> list[tuple[str, float]]:
        """Return the least probable token of each document, and its score."""
        least = dict[int, tuple[str, float]]()
        assert self.tokens.words is not None
        lines = zip(
            self.document.tolist(), self.tokens.by_document(), self.tokens.words
        )
        for number, part, words in lines:
            log_prob = self.tokens.log_prob[part].tolist() or [0.0]
            i = log_prob.index(min(log_prob))
            if number not in least or log_prob[i] < least[number][1]:
                least[number] = [*words, end][i], log_prob[i]
        return list(least.values())


@dataclass(frozen=True)
class TextScorer:
    """Scores the documents of chunks of text in turn; see `Chunk.documents`."""

    scorer: Scorer
    errors: str | None = None
    field: str | None = None
    blank_lines: bool = True
    bos: bool = True

    @property
    def is_quick(self) -> bool:
        """Whether it looks n-grams up, and computes no distribution."""
        return not isinstance(self.scorer.word_scorer, WindowWordScorer)

    def __call__(self, chunk: Chunk, *, words: bool = False) -> Scored:
        """Score a chunk; `words` asks for the tokens as the tokenizer splits them."""
        if chunk.first == 1:
            self.scorer.begin_text()
        marks = line_marks(self.scorer.codec, self.scorer.word_scorer.boundary)
        numbers, documents = chunk.documents(
            marks, self.errors, self.field, blank_lines=self.blank_lines
        )
        texts = [line for lines in documents for line in lines]
        document = np.repeat(np.arange(len(documents)), list(map(len, documents)))
        tokens = self.scorer.tokens(texts, bos=self.bos, words=words)
        return Scored(numbers, texts, document, tokens)


class Figures(PerplexitySums):
    """Sums over a text, and how the commands show them."""

    def figures(self) -> dict[str, int | float]:
        """Return the figures by name."""
        text = self.text_scores
        return {
            "sentences": self.n_documents,
            "words": self.n_words,
            "unknown words": self.n_unknown,
            "words of probability 0": self.n_zeros,
            "log10 probability": self.log_prob / LN10,
            "perplexity with unknown words": self.with_unknown,
            "perplexity without unknown words": self.without_unknown,
            "SRILM ppl": self.srilm[0],
            "SRILM ppl1": self.srilm[1],
            SPELLED: (self.log_prob + self.spelling) / LN10,
            OF_TEXT[0]: text.word_perplexity,
            OF_TEXT[1]: text.bits_per_character,
            OF_TEXT[2]: text.bits_per_byte,
        }

    def as_srilm(self) -> str:
        """Return the two lines of SRILM's ``ngram -ppl``."""
        ppl, ppl1 = (
            "undefined" if np.isnan(value) else f"{value:.7g}" for value in self.srilm
        )
        return (
            f"{self.n_documents} sentences, {self.n_words} words, {self.n_impossible} "
            f"OOVs\n{self.n_zeros} zeroprobs, "
            f"logprob= {self.positive_log_prob / LN10:.7g} ppl= {ppl} ppl1= {ppl1}"
        )

    def lines(self) -> list[str]:
        """Return the figures, one a line; without those that the model has not."""
        figures = self.figures()
        unused = {SPELLED} if self.n_unknown == 0 else set[str]()
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


def as_json(figures: object) -> str:
    """Return figures as a line of JSON, numbers with six decimals."""
    return json.dumps(_rounded(figures), ensure_ascii=False, allow_nan=False)


def _rounded(value: object) -> object:
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if not isinstance(value, float):
        return value
    return round(value, 6) if math.isfinite(value) else None  # JSON has no infinity


def report_words(n_lines: int, n_tokens: int, n_words: int, unknown: float) -> None:
    """Report the size of a training text, and the share of unknown words."""
    notify(
        f"trained on {n_lines:,} lines of {n_tokens:,} words; vocabulary {n_words:,}, "
        f"{unknown:.2%} of the words are <unk>"
    )
    warning = warning_of_unknown(unknown)
    if warning:
        notify(f"Warning: {warning}")


def report_perplexities(
    scorer: Scorer,
    valid: str | None,
    test: str | None,
    *,
    blank_lines: bool,
    done: Callable[[], object] = lambda: None,
) -> None:
    """Report the perplexities of two texts, if given; call `done` after each block."""
    score = TextScorer(scorer, blank_lines=blank_lines)
    for name, path in (("validation", valid), ("test", test)):
        if path is None:
            continue
        sums = PerplexitySums(scorer.eos)
        with stages(BAR, "") as begin:
            begin(f"scoring {path}")
            count, n_bytes = counter(), n_bytes_of([path])
            count("", 0, n_bytes)
            for chunk in chunks_of([path]):
                sums.add(score(chunk).tokens)
                done()
                count("", chunk.n_bytes, n_bytes)
        click.echo(
            f"{name}: perplexity {sums.with_unknown:.2f}, without unknown words "
            f"{sums.without_unknown:.2f} ({sums.n_unknown:,} of {sums.n_tokens:,} "
            "tokens)"
        )
