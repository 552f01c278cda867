"""Text models from files of any kind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click
from numpy.typing import NDArray

from nplm.cli._bars import stages
from nplm.cli._options import EXISTING, flag
from nplm.cli._outputs import notify
from nplm.formats.open_model import OpenModel, open_model
from nplm.text.lm.scorer import Scorer

if TYPE_CHECKING:
    from nplm import TextLM, Vocabulary

VERIFY = flag(
    "--verify",
    "Check all of a file of mapped n-grams first, which may be damaged or is not your "
    "own. It is not checked again while it stays as it is. Other files are always "
    "checked.",
)
MODEL = (click.Argument(["model"], type=EXISTING), VERIFY)
MODELS = click.Argument(["models"], nargs=-1, required=True, type=EXISTING)


@contextmanager
def opened_model(
    path: str | os.PathLike[str], *, mmap: bool = True, verify: bool = False
) -> Iterator[OpenModel]:
    """Open a file, and show on a terminal how much of it is read or verified."""
    with open_model(path, mmap=mmap, verify=verify) as file, ExitStack() as shown:
        if verify or file.kind.is_text:  # others take no time
            bars = shown.enter_context(stages(lines=None))
            shown.enter_context(bars.enclosing())
        yield file


def read_scorer(path: str | os.PathLike[str], *, verify: bool = False) -> Scorer:
    """Read the scorer of a text model; that of n-grams without scikit-learn."""
    with opened_model(path, verify=verify) as file:
        refuse_vectors(file)
        scorer = file.scorer()
        check_tokenizer(file, scorer.codec.tokenizer)
        return scorer


def read_line_scorer(
    path: str, *, verify: bool, n_jobs: int = 1, no_marks: bool = False
) -> Scorer:
    """Read the scorer of lines that `n_jobs` processes score, without marks if asked.

    Of a model of running text a file is one text, which one process scores.
    """
    scorer = read_scorer(path, verify=verify)
    if hasattr(scorer.word_scorer, "restart"):
        notify(
            "Note: the model is of running text: a file is one text, and a line has "
            "the lines before it as context."
        )
        if n_jobs != 1:
            raise click.UsageError(
                f"--jobs {n_jobs}: a line of running text has the lines before it as "
                "context, so they are scored in turn; leave --jobs out."
            )
    if not no_marks:
        return scorer
    try:
        scorer.begin(bos=False)
    except ValueError as error:
        raise click.UsageError(
            "--no-marks: MODEL has a context before the first word, which only "
            "back-off n-grams do without; leave it out."
        ) from error
    return Scorer(scorer.word_scorer, scorer.codec, eos=False)


def read_model(
    path: str | os.PathLike[str], *, mmap: bool = True, verify: bool = False
) -> TextLM:
    """Read a text model of any kind of file; `mmap` and `verify` as in `nplm.load`."""
    with opened_model(path, mmap=mmap, verify=verify) as file:
        return text_lm_in(file)


def text_lm_in(file: OpenModel, *, index: bool = True) -> TextLM:
    """Read the text model of an open file; see `OpenModel.load`."""
    refuse_vectors(file)
    lm = file.text_lm(index=index)
    check_tokenizer(file, lm.tokenizer_)
    return lm


def refuse_vectors(file: OpenModel) -> None:
    """Raise ValueError if a file has word vectors."""
    if file.kind.is_vectors:
        raise ValueError(
            f"{file.path} has word vectors, not a model: nplm convert writes them in "
            "another form, and in Python a network can begin with them."
        )


def check_tokenizer(file: OpenModel, tokenizer: object) -> None:
    if tokenizer is None:
        raise ValueError(
            f"{file.path} has a model of lists of tokens, not of text: write each list "
            "as a line of words between blanks, for nplm train --tokens blanks; or in "
            "Python, fit a TextLM to strings, or give TextLM.from_model the words."
        )


def vocabulary_of(lm: TextLM) -> Vocabulary:
    """Return the vocabulary of a model of text."""
    assert lm.vocabulary_ is not None
    return lm.vocabulary_


def learned_features(lm: TextLM) -> NDArray[Any]:
    """Return the features of the words, or raise ClickException if there are none."""
    from nplm.text.embeddings import features_of

    features = features_of(lm.estimator_)
    if features is None:
        raise click.ClickException(
            f"{type(lm.estimator_).__name__} has no features of words: give a MODEL "
            "trained with --model network, energy, shortlist or mixture."
        )
    return features
