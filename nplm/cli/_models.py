"""Models in files of any kind, as text models, and back into files."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import click
from numpy.typing import NDArray

import nplm
from nplm import TextLM, Tokenizer, Vocabulary
from nplm.base.files.compressed import UnpackingError, reading
from nplm.formats import (
    load_binary,
    read_arpa,
    read_vectors,
    save_binary,
    write_arpa,
    write_vectors,
)
from nplm.text.embeddings import features_of
from nplm.text.tokenizer import BETWEEN_BLANKS

__all__ = [
    "KINDS", "MODEL", "TARGET", "convert_vectors", "learned_features",
    "read_model", "vocabulary_of", "write_model",
]  # fmt: skip

KINDS = ("nplm", "arpa", "binary", "vectors", "vectors-binary")
BINARY = b"nplm n-grams"
# The numbers of words and features; then, in text, a word and its first number.
VECTORS = re.compile(rb"\d+ \d+\n")
VECTORS_OF_TEXT = re.compile(rb"\d+ \d+\n\S+ [-+.\d]+(e[-+]?\d+)?[ \n]", re.I)

MODEL = click.argument("model", type=click.Path(exists=True, dir_okay=False))
TARGET = click.option(
    "--to",
    type=click.Choice(KINDS),
    help="What to write: a file of nplm.save, ARPA, mapped n-grams, or the features of "
    "words in word2vec's text or binary form. By default what the name's ending says: "
    "arpa for .arpa, vectors for .vec, packed as .gz or .xz too, else nplm.",
)


def read_model(path: str | os.PathLike[str], *, index: bool = True) -> TextLM:
    """Read a text model: of nplm.save, an ARPA file, or mapped n-grams.

    Without `index` an ARPA file is read only to be written again.
    """
    start = _start_of(path)
    if start.startswith(BINARY):
        return TextLM.from_model(*load_binary(path, verify=True))
    if VECTORS.match(start):
        raise ValueError(
            f"{os.fspath(path)} has word vectors, which are no model: nplm convert "
            "writes them in another form, and a network can begin with them."
        )
    if _is_text(start):
        ngrams, words = read_arpa(path, add_unknown=True, index=index)
        if ngrams.boundary is None:
            raise ValueError(
                f"{os.fspath(path)} has no n-grams of <s> or </s>, which lines begin "
                "and end with: in Python, give TextLM.from_model a boundary and "
                "predict_boundary=False."
            )
        return TextLM.from_model(ngrams, words)
    model = nplm.load(path)
    if not isinstance(model, TextLM):
        raise ValueError(
            f"{os.fspath(path)} has no TextLM, but an object of type "
            f"{type(model).__name__}: make a TextLM of a model and its words, "
            "TextLM.from_model(model, words), and save that."
        )
    if model.tokenizer_ is None or model.vocabulary_ is None:
        raise ValueError(
            f"{os.fspath(path)} has a model of ids or of lists of tokens, and no text: "
            "fit a TextLM to strings, or give TextLM.from_model the words."
        )
    return model


def vocabulary_of(lm: TextLM) -> Vocabulary:
    """Give the words of a model of text."""
    assert lm.vocabulary_ is not None
    return lm.vocabulary_


def learned_features(lm: TextLM) -> NDArray[Any]:
    """Return the features of words, or raise where the model has learned none."""
    features = features_of(lm.estimator_)
    if features is None:
        raise click.ClickException(
            f"{type(lm.estimator_).__name__} has no features of words: give a MODEL "
            "trained with --model network, energy, shortlist or mixture."
        )
    return features


def convert_vectors(path: str, output: Path, to: str | None) -> bool:
    """Write word vectors in another form; False if these are none."""
    start = _start_of(path)
    if not VECTORS.match(start):
        return False
    kind = to or ("arpa" if _kind_of(output) == "arpa" else "vectors")
    if not kind.startswith("vectors"):
        raise ValueError(f"{path} has word vectors: they cannot be written as {kind}.")
    is_text = VECTORS_OF_TEXT.match(start) is not None
    words, vectors = read_vectors(path, binary=not is_text)
    write_vectors(output, words, vectors, binary=kind == "vectors-binary")
    return True


def write_model(lm: TextLM, path: Path, to: str | None) -> None:
    """Write a text model in one of `KINDS`."""
    kind = _kind_of(path) if to is None else to
    words = vocabulary_of(lm).words_.tolist()
    try:
        if kind == "nplm":
            nplm.save(lm, path)
        elif kind.startswith("vectors"):
            features = learned_features(lm)
            write_vectors(path, words, features, binary=kind == "vectors-binary")
        else:
            write = write_arpa if kind == "arpa" else save_binary
            write(lm.estimator_, path, words)
            _tell_of_tokens(lm, path)
    except TypeError as error:  # a model of another kind
        raise ValueError(str(error)) from error


def _tell_of_tokens(lm: TextLM, path: Path) -> None:
    """Say that n-grams alone do not know how their text was split."""
    split = Tokenizer(BETWEEN_BLANKS)
    if getattr(lm.tokenizer_, "get_params", dict)() != split.get_params():
        click.echo(
            f"Note: {path} has no tokenizer, and its text will be split between "
            "blanks: train with --tokens blanks, or give it text that is split.",
            err=True,
        )


def _kind_of(path: Path) -> str:
    name = path.name.removesuffix(".gz").removesuffix(".xz")
    if name.endswith(".arpa"):
        return "arpa"
    return "vectors" if name.endswith(".vec") else "nplm"


def _start_of(path: str | os.PathLike[str]) -> bytes:
    """Give the first bytes, unpacked; of a damaged file none: its reader says why."""
    with reading(path) as file:
        try:
            return file.read(512)
        except UnpackingError:
            return b""


def _is_text(start: bytes) -> bool:
    """Whether a file begins as text: the reader of ARPA then says what is wrong."""
    return b"\0" not in start and start[:1] != b"{"
