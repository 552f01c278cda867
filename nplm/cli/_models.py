"""Text models from files of any kind, and to such files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from numpy.typing import NDArray

import nplm
from nplm import formats
from nplm.formats._kinds import Kind, kind_of
from nplm.formats.scorers import ngram_scorer
from nplm.models.ngrams.trie.quantized_trie import (
    MAX_BITS,
    MIN_BITS,
    QuantizedTrie,
)
from nplm.text.lm.scorer import Scorer
from nplm.text.words.splitting import BETWEEN_BLANKS

if TYPE_CHECKING:
    from nplm import TextLM, Vocabulary
    from nplm.formats.on_disk.outputs import Output
    from nplm.models.ngrams.external.scratch import Scratch
    from nplm.models.ngrams.trie.backoff_trie import BackoffTrie

__all__ = [
    "BITS", "KEEP_OPTIMIZER", "KINDS", "MODEL", "TARGET", "VERIFY", "convert_ngrams",
    "convert_vectors", "learned_features", "model_on_disk", "ngrams_file", "read_model",
    "read_scorer", "scratch_of", "vocabulary_of", "write_model", "write_on_disk",
]  # fmt: skip

BITS = click.option(
    "--bits",
    type=click.IntRange(MIN_BITS, MAX_BITS),
    help="Write quantized n-grams, a tenth of the size of mapped ones: a probability "
    "takes this number of bits. 8 change perplexities by less than half a per cent.",
)

Command = TypeVar("Command", bound=Callable[..., Any])

KINDS = ("nplm", "arpa", "binary", "vectors", "vectors-binary")

KEEP_OPTIMIZER = click.option(
    "--keep-optimizer",
    is_flag=True,
    help="Also save the optimizer's state of a network, twice as large as its weights. "
    "Only partial_fit in Python uses it; without it, partial_fit starts with a new "
    "optimizer.",
)
VERIFY = click.option(
    "--verify",
    is_flag=True,
    help="Check all of a file of mapped n-grams first, which may be damaged or is not "
    "your own. It is not checked again while it stays as it is. Other files are always "
    "checked.",
)
TARGET = click.option(
    "--to",
    type=click.Choice(KINDS),
    help="Kind of file to write: that of nplm.save, ARPA, mapped n-grams, or the "
    "features of words in word2vec's text or binary form. By default the ending of the "
    "name decides: arpa for .arpa, vectors for .vec (also with .gz or .xz), else nplm.",
)


def MODEL(command: Command) -> Command:
    """Give a command the argument MODEL and the option --verify."""
    model = click.argument("model", type=click.Path(exists=True, dir_okay=False))
    return model(VERIFY(command))


def read_scorer(path: str | os.PathLike[str], *, verify: bool = False) -> Scorer:
    """Read the scorer of a text model; that of n-grams without scikit-learn."""
    scorer = ngram_scorer(path, verify=verify)
    return read_model(path, verify=verify).scorer() if scorer is None else scorer


def read_model(
    path: str | os.PathLike[str], *, index: bool = True, verify: bool = False
) -> TextLM:
    """Read a text model: a file of nplm.save, an ARPA file, or mapped n-grams.

    Without `index`, a model of an ARPA file can only be written again. `verify` checks
    all of a file of mapped n-grams.
    """
    kind = kind_of(path)
    if kind.is_vectors:
        raise ValueError(
            f"{os.fspath(path)} has word vectors, not a model: nplm convert "
            "writes them in another form, and in Python a network can begin with them."
        )
    if kind is Kind.TEXT:
        # Imported here: commands that score n-grams start without scikit-learn.
        from nplm.formats.loading import load_arpa

        return load_arpa(path, index=index)
    model = nplm.load(path, verify=verify)
    if not isinstance(model, nplm.TextLM):
        raise ValueError(
            f"{os.fspath(path)} has a {type(model).__name__}, not a TextLM: in Python, "
            "make one with TextLM.from_model(model, words), and save that."
        )
    if model.tokenizer_ is None or model.vocabulary_ is None:
        raise ValueError(
            f"{os.fspath(path)} has a model of ids or of lists of tokens, not of text: "
            "in Python, fit a TextLM to strings, or give TextLM.from_model the words."
        )
    return model


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


def convert_vectors(path: str, output: Path, to: str | None) -> bool:
    """Write word vectors in another form; return False if the file has none."""
    form = kind_of(path)
    if not form.is_vectors:
        return False
    kind = to or ("arpa" if _kind_of(output) == "arpa" else "vectors")
    if not kind.startswith("vectors"):
        raise ValueError(f"{path} has word vectors: they cannot be written as {kind}.")
    words, vectors = formats.read_vectors(path, binary=form is Kind.BINARY_VECTORS)
    formats.write_vectors(output, words, vectors, binary=kind == "vectors-binary")
    return True


def ngrams_file(output: Path, to: str | None, bits: int | None) -> Output | None:
    """Return the file to write in bounded memory, or None if it is of another kind.

    n-grams are written to ARPA, mapped or quantized files, but not by nplm.save.
    """
    # Imported here: commands that score need no estimation.
    from nplm.formats.on_disk.outputs import ArpaFile, MappedFile, QuantizedFile

    kind = "binary" if to is None and bits is not None else to or _kind_of(output)
    if bits is not None and kind != "binary":
        raise click.UsageError(
            "--bits is for mapped n-grams: leave it out, or give --to binary and "
            "another OUTPUT."
        )
    if kind == "binary":
        return MappedFile(output) if bits is None else QuantizedFile(output, bits)
    return ArpaFile(output) if kind == "arpa" else None


@contextmanager
def _stages() -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function that shows the progress of stages on a terminal."""
    from rich.console import Console

    from nplm.cli._bars import stages

    console = Console(stderr=True)
    with stages(console) as shown:

        def show(stage: str, done: int, total: int) -> None:
            note = "" if total else f"{done:,} n-grams"
            if console.is_terminal:
                shown.show(stage, done if total else 0, total, note)

        yield show


@contextmanager
def scratch_of(memory: int | None) -> Iterator[tuple[Scratch, int]]:
    """Make a temporary folder; also yield the bytes of memory."""
    from nplm.formats.on_disk.outputs import free_memory
    from nplm.models.ngrams.external.scratch import Scratch
    from nplm.models.training.parallel.threads import Threads

    n_bytes = free_memory() if memory is None else memory
    with _stages() as show, Scratch(None, n_bytes, Threads(1), show) as scratch:
        yield scratch, n_bytes


def model_on_disk(
    path: str | os.PathLike[str], scratch: Scratch, memory: int, *, verify: bool = False
) -> TextLM:
    """Read a model of n-grams to a temporary folder; others as `read_model` does."""
    from nplm.formats.on_disk.sources import arpa_lm_on_disk, limit_memory, lm_on_disk

    if kind_of(path) is Kind.TEXT:
        return arpa_lm_on_disk(path, scratch, memory)
    lm = read_model(path, index=False, verify=verify)
    limit_memory(scratch, memory, lm.n_words_)
    return lm_on_disk(lm, scratch) if hasattr(lm.estimator_, "prune") else lm


def convert_ngrams(
    path: str,
    output: Path,
    to: str | None,
    bits: int | None,
    memory: int | None,
    *,
    verify: bool = False,
) -> bool:
    """Write n-grams in bounded memory; return False if the file is of another kind."""
    from nplm.formats.on_disk.conversion import convert_arpa, convert_trie
    from nplm.formats.on_disk.outputs import free_memory
    from nplm.formats.on_disk.sources import words_of

    made = ngrams_file(output, to, bits)
    if made is None:
        return False
    n_bytes = free_memory() if memory is None else memory
    with _stages() as show:
        if kind_of(path) is Kind.TEXT:
            convert_arpa(path, made, memory=n_bytes, progress=show)
            return True
        lm = read_model(path, index=False, verify=verify)
        trie = _trie_of(lm)
        convert_trie(trie, words_of(lm), made, memory=n_bytes, progress=show)
    _note_losses(lm, made)
    return True


def write_on_disk(lm: TextLM, made: Output, scratch: Scratch) -> None:
    """Write the n-grams of a text model on disk."""
    from nplm.formats._models import trie_of
    from nplm.formats.on_disk.outputs import StoredTrie
    from nplm.formats.on_disk.sources import words_of

    made.write(StoredTrie(trie_of(lm.estimator_), scratch), words_of(lm), scratch)
    _note_losses(lm, made)


def _trie_of(lm: TextLM) -> BackoffTrie | QuantizedTrie:
    from nplm.formats._models import trie_of

    if isinstance(lm.estimator_, nplm.QuantizedLM):
        return lm.estimator_.trie_
    try:
        return trie_of(lm.estimator_)
    except TypeError as error:
        raise _no_ngrams(error) from error


def _note_losses(lm: TextLM, made: Output) -> None:
    """Note what a file of n-grams does not hold of its text model."""
    from nplm.formats.on_disk.outputs import ArpaFile

    path = Path(made.path)
    if isinstance(made, ArpaFile) or not isinstance(lm.tokenizer_, nplm.Tokenizer):
        _note_tokens(lm, path)
    if not lm.predict_boundary:
        click.echo(
            f"Note: the end of a line will count as a token with {path}, but does not "
            "with MODEL: write it with --to nplm to leave ends out.",
            err=True,
        )


def write_model(
    lm: TextLM,
    path: Path,
    to: str | None,
    *,
    optimizer: bool = False,
    dtype: str | None = None,
) -> None:
    """Write a text model in one of `KINDS`; see `nplm.save` for the others."""
    kind = _kind_of(path) if to is None else to
    words = vocabulary_of(lm).words_.tolist()
    if kind != "nplm" and (optimizer or dtype):
        option = "--keep-optimizer" if optimizer else f"--{dtype}"
        raise click.UsageError(
            f"{option} is for files of nplm.save, and {path} will be of the kind "
            f"{kind}: leave it out, or give --to nplm."
        )
    try:
        if kind == "nplm":
            _save(lm, path, optimizer, dtype)
        elif kind.startswith("vectors"):
            features = learned_features(lm)
            formats.write_vectors(
                path, words, features, binary=kind == "vectors-binary"
            )
        else:
            write = formats.write_arpa if kind == "arpa" else formats.save_binary
            write(lm.estimator_, path, words)
            _note_tokens(lm, path)
    except TypeError as error:
        raise _no_ngrams(error) from error


def _no_ngrams(error: TypeError) -> click.ClickException:
    """Return the error of a model of another kind."""
    message = str(error).replace(
        "pass a KneserNeyLM or a BackoffLM",
        "give a MODEL trained with --model kneser-ney, or an ARPA file",
    )
    return click.ClickException(message)


def _save(lm: TextLM, path: Path, optimizer: bool, dtype: str | None) -> None:
    try:
        nplm.save(lm, path, optimizer=optimizer, dtype=dtype)
    except ValueError as error:
        if dtype is None:
            raise
        message = str(error).replace(f"dtype={dtype!r}", f"--{dtype}")
        message = message.replace("leave dtype out", "leave it out")
        raise click.ClickException(message) from error


def _note_tokens(lm: TextLM, path: Path) -> None:
    """Note that the file will have no tokenizer."""
    split = nplm.Tokenizer(BETWEEN_BLANKS)
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
