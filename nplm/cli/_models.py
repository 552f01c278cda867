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
from nplm.base.encoded_words import EncodedWords
from nplm.formats._words import StoredWords
from nplm.formats.open_model import OpenModel, open_model
from nplm.models.ngrams.text_ngrams import NoNgramsError, TextNgrams
from nplm.models.ngrams.trie.quantized_trie import MAX_BITS, MIN_BITS
from nplm.text.lm.scorer import Scorer
from nplm.text.words.splitting import Splitter

if TYPE_CHECKING:
    from nplm import TextLM, Vocabulary
    from nplm.formats.outputs import NgramsFile
    from nplm.models.ngrams.trie.work import Work

__all__ = [
    "BITS", "KEEP_OPTIMIZER", "KINDS", "MODEL", "TARGET", "VERIFY", "convert_ngrams",
    "convert_vectors", "is_of_running_text", "learned_features", "ngrams_file",
    "ngrams_in", "read_model", "read_ngrams", "read_scorer", "text_lm_in",
    "vocabulary_of", "without_marks", "work_for", "write_changed", "write_model",
]  # fmt: skip

BITS = click.option(
    "--bits",
    type=click.IntRange(MIN_BITS, MAX_BITS),
    help="Write quantized n-grams, a tenth of the size of mapped ones: a probability "
    "takes this number of bits. 8 change perplexities by less than half a per cent.",
)

Command = TypeVar("Command", bound=Callable[..., Any])

KINDS = ("nplm", "arpa", "binary", "fst", "vectors", "vectors-binary")

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
    help="Kind of file to write: that of nplm.save, ARPA, mapped n-grams, n-grams as "
    "an FST in text form, or the features of words in word2vec's text or binary form. "
    "By default the ending of the name decides: arpa for .arpa, vectors for .vec (also "
    "with .gz or .xz), else nplm.",
)


def MODEL(command: Command) -> Command:
    """Give a command the argument MODEL and the option --verify."""
    model = click.argument("model", type=click.Path(exists=True, dir_okay=False))
    return model(VERIFY(command))


def read_scorer(path: str | os.PathLike[str], *, verify: bool = False) -> Scorer:
    """Read the scorer of a text model; that of n-grams without scikit-learn."""
    with open_model(path, verify=verify) as file:
        refuse_vectors(file)
        scorer = file.scorer()
        _check_tokenizer(file, scorer.codec.tokenizer)
        return scorer


def without_marks(scorer: Scorer) -> Scorer:
    """Return a scorer of lines without ends, after checking that none need begin."""
    try:
        scorer.begin(bos=False)
    except ValueError as error:
        raise click.UsageError(
            "--no-marks: MODEL has a context before the first word, which only "
            "back-off n-grams do without; leave it out."
        ) from error
    return Scorer(scorer.word_scorer, scorer.codec, eos=False)


def is_of_running_text(scorer: Scorer) -> bool:
    """Return whether a file is one text for the model, and say so."""
    is_one_text = hasattr(scorer.word_scorer, "restart")
    if is_one_text:
        click.echo(
            "Note: the model is of running text: a file is one text, and a line has "
            "the lines before it as context.",
            err=True,
        )
    return is_one_text


def read_model(path: str | os.PathLike[str], *, verify: bool = False) -> TextLM:
    """Read a text model: a file of nplm.save, an ARPA file, or mapped n-grams.

    `verify` checks all of a file of mapped n-grams.
    """
    with open_model(path, verify=verify) as file:
        return text_lm_in(file)


def text_lm_in(file: OpenModel, *, index: bool = True) -> TextLM:
    """Read the text model of an open file; see `OpenModel.load`."""
    refuse_vectors(file)
    lm = file.text_lm(index=index)
    _check_tokenizer(file, lm.tokenizer_)
    return lm


def refuse_vectors(file: OpenModel) -> None:
    """Raise ValueError if a file has word vectors."""
    if file.kind.is_vectors:
        raise ValueError(
            f"{file.path} has word vectors, not a model: nplm convert writes them in "
            "another form, and in Python a network can begin with them."
        )


def _check_tokenizer(file: OpenModel, tokenizer: object) -> None:
    if tokenizer is None:
        raise ValueError(
            f"{file.path} has a model of lists of tokens, not of text: in Python, fit "
            "a TextLM to strings, or give TextLM.from_model the words."
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


def convert_vectors(file: OpenModel, output: Path, to: str | None) -> None:
    """Write the word vectors of an open file in another form."""
    kind = to or ("arpa" if _kind_of(output) == "arpa" else "vectors")
    if not kind.startswith("vectors"):
        raise ValueError(
            f"{file.path} has word vectors: they cannot be written as {kind}."
        )
    words, vectors = file.vectors()
    formats.write_vectors(output, words, vectors, binary=kind == "vectors-binary")


def ngrams_file(output: Path, to: str | None, bits: int | None) -> NgramsFile | None:
    """Return the file of n-grams to write, or None if it is of another kind.

    n-grams are written to ARPA, mapped or quantized files, but not by nplm.save.
    """
    from nplm.formats.outputs import NgramsFile

    kind = "binary" if to is None and bits is not None else to or _kind_of(output)
    if bits is not None and kind != "binary":
        raise click.UsageError(
            "--bits is for mapped n-grams: leave it out, or give --to binary and "
            "another OUTPUT."
        )
    if kind == "arpa":
        return NgramsFile(output, "arpa")
    if kind == "fst":
        return NgramsFile(output, "fst")
    return NgramsFile(output, "binary", bits) if kind == "binary" else None


@contextmanager
def work_for(target: NgramsFile | None, memory: int | None) -> Iterator[Work]:
    """Yield temporary files, or memory if the target is a file of nplm.save."""
    from nplm.cli._bars import stages
    from nplm.formats.outputs import free_memory
    from nplm.models.ngrams.stages.scratch import Scratch
    from nplm.models.ngrams.trie.work import Work
    from nplm.models.training.parallel.threads import Threads

    if target is None:
        yield Work()
        return
    n_bytes = free_memory() if memory is None else memory
    with stages(lines=False) as bars:
        show = bars.counting("n-grams")
        with Scratch(None, n_bytes, Threads(1), show) as scratch:
            yield scratch


def read_ngrams(
    path: str | os.PathLike[str], work: Work, *, verify: bool = False
) -> TextNgrams:
    """Read n-grams that can be changed, unpacked in memory or on disk."""
    with open_model(path, verify=verify) as file:
        return ngrams_in(file, work, quantized=False)


def ngrams_in(file: OpenModel, work: Work, *, quantized: bool) -> TextNgrams:
    refuse_vectors(file)
    try:
        ngrams = file.text_ngrams(work, quantized=quantized)
    except NoNgramsError as error:
        kind = "" if quantized else ", which is not quantized (--bits)"
        raise click.ClickException(
            f"{file.path} has no back-off n-grams ({error.model}): give a MODEL "
            f"trained with --model kneser-ney{kind}, or an ARPA file."
        ) from error
    _check_tokenizer(file, ngrams.tokenizer)
    return ngrams


def convert_ngrams(file: OpenModel, target: NgramsFile, memory: int | None) -> None:
    """Write the n-grams of an open file to another file in bounded memory."""
    with work_for(target, memory) as work:
        if file.kind.is_text:  # it may have no boundary
            ngrams = file.arpa_ngrams(work)
            words = StoredWords(EncodedWords.of(ngrams.words), ngrams.boundary)
            target.write(ngrams.trie, words, work)
        else:
            write_ngrams(ngrams_in(file, work, quantized=True), target, work)


def write_ngrams(ngrams: TextNgrams, target: NgramsFile, work: Work) -> None:
    """Write the n-grams of text to a file of n-grams."""
    target.write(ngrams.trie, StoredWords.of(ngrams), work)
    path, tokenizer = Path(target.path), ngrams.tokenizer
    is_stored = target.kind == "binary" and isinstance(tokenizer, Splitter)
    if (
        target.kind != "fst"
        and not is_stored
        and not getattr(tokenizer, "splits_at_blanks", False)
    ):
        click.echo(
            f"Note: {path} has no tokenizer, and its text will be split between "
            "blanks: train with --tokens blanks, or give it text that is split.",
            err=True,
        )
    if not ngrams.predict_boundary:
        click.echo(
            f"Note: the end of a line will count as a token with {path}, but does not "
            "with MODEL: write it with --to nplm to leave ends out.",
            err=True,
        )


def write_changed(
    ngrams: TextNgrams,
    output: Path,
    to: str | None,
    target: NgramsFile | None,
    work: Work,
) -> None:
    """Write changed n-grams to their target, or to a file of nplm.save."""
    if target is None:
        write_model(ngrams.text_lm(index=False), output, to)
    else:
        write_ngrams(ngrams, target, work)


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
    except TypeError as error:
        raise click.ClickException(str(error)) from error


def _save(lm: TextLM, path: Path, optimizer: bool, dtype: str | None) -> None:
    try:
        nplm.save(lm, path, optimizer=optimizer, dtype=dtype)
    except ValueError as error:
        if dtype is None:
            raise
        message = str(error).replace(f"dtype={dtype!r}", f"--{dtype}")
        message = message.replace("leave dtype out", "leave it out")
        raise click.ClickException(message) from error


def _kind_of(path: Path) -> str:
    name = path.name.removesuffix(".gz").removesuffix(".xz")
    if name.endswith(".arpa"):
        return "arpa"
    return "vectors" if name.endswith(".vec") else "nplm"
