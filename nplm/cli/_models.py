"""Models in files of any kind, as text models, and back into files."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import click

import nplm
from nplm import TextLM, Tokenizer, Vocabulary
from nplm.formats import (
    load_binary,
    read_arpa,
    save_binary,
    write_arpa,
    write_vectors,
)
from nplm.text.text_lm import features_of
from nplm.text.tokenizer import BETWEEN_BLANKS

__all__ = ["KINDS", "MODEL", "TARGET", "read_model", "vocabulary_of", "write_model"]

KINDS = ("nplm", "arpa", "binary", "vectors", "vectors-binary")
BINARY = b"nplm n-grams"

MODEL = click.argument("model", type=click.Path(exists=True, dir_okay=False))
TARGET = click.option(
    "--to",
    type=click.Choice(KINDS),
    help="What to write: a file of nplm.save, ARPA, mapped n-grams, or the features of "
    "words in word2vec's text or binary form. By default what the name's ending says: "
    "arpa for .arpa and .arpa.gz, vectors for .vec and .vec.gz, else nplm.",
)


def read_model(path: str | os.PathLike[str]) -> TextLM:
    """Read a text model: of nplm.save, an ARPA file, or mapped n-grams."""
    with open(path, "rb") as file:
        start = file.read(512)
    if start.startswith(BINARY):
        return TextLM.from_model(*load_binary(path, verify=True))
    if _is_text(start):
        return TextLM.from_model(*read_arpa(path))
    model = nplm.load(path)
    if not isinstance(model, TextLM):
        raise ValueError(
            f"{os.fspath(path)} has a {type(model).__name__}, and text needs its words "
            "too: make a TextLM of it, TextLM.from_model(model, words), and save that."
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


def write_model(lm: TextLM, path: Path, to: str | None) -> None:
    """Write a text model in one of `KINDS`."""
    kind = _kind_of(path) if to is None else to
    words = vocabulary_of(lm).words_.tolist()
    try:
        if kind == "nplm":
            nplm.save(lm, path)
        elif kind.startswith("vectors"):
            features = features_of(lm.estimator_)
            if features is None:
                name = type(lm.estimator_).__name__
                raise ValueError(f"{name} has no features of words: train a network.")
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
    name = path.name.removesuffix(".gz")
    if name.endswith(".arpa"):
        return "arpa"
    return "vectors" if name.endswith(".vec") else "nplm"


def _is_text(start: bytes) -> bool:
    """Whether a file begins as text, packed or not: ARPA then says what is wrong."""
    if start.startswith(b"\x1f\x8b"):
        try:
            start = zlib.decompressobj(wbits=31).decompress(start)
        except zlib.error:
            return True
    return bool(start) and b"\0" not in start and start[:1] != b"{"
