"""Models that commands write: n-grams are opened, changed by a function, written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

import nplm
from nplm import formats
from nplm.base import system
from nplm.cli._bars import stages
from nplm.cli._models import (
    check_tokenizer,
    learned_features,
    refuse_vectors,
    vocabulary_of,
)
from nplm.cli._options import flag, option
from nplm.cli._outputs import note_lost_tokenizer, notify
from nplm.cli._values import memory_option
from nplm.formats._words import StoredWords, reserve_for_words
from nplm.formats.ngrams_file import NgramsFile
from nplm.formats.open_model import OpenModel, open_model
from nplm.models.ngrams.stages.scratch import Scratch
from nplm.models.ngrams.text_ngrams import NoNgramsError, TextNgrams
from nplm.models.ngrams.trie.quantized_trie import MAX_BITS, MIN_BITS
from nplm.models.ngrams.trie.work import Work
from nplm.text.words.splitting import Splitter

if TYPE_CHECKING:
    from nplm import TextLM

# Sorting and hashing in more memory takes as long: it misses the cache more often.
DEFAULT_BYTES = 1 << 29
OF_NGRAMS = ("arpa", "binary", "fst")

BITS = option("--bits", click.IntRange(MIN_BITS, MAX_BITS), None,
    "Write quantized n-grams, a tenth of the size of mapped ones: a probability takes "
    "this number of bits. 8 change perplexities by less than half a per cent.",
)  # fmt: skip
KEEP_OPTIMIZER = flag("--keep-optimizer",
    "Also save the optimizer's state of a network, twice as large as its weights. Only "
    "partial_fit in Python uses it; without it, partial_fit starts with a new "
    "optimizer.",
)  # fmt: skip
TO = option("--to", ("nplm", *OF_NGRAMS, "vectors", "vectors-binary"), None,
    "Kind of file to write: that of nplm.save, ARPA, mapped n-grams, n-grams as an FST "
    "in text form, or the features of words in word2vec's text or binary form. By "
    "default the ending of the name decides: arpa for .arpa, vectors for .vec (also "
    "with .gz or .xz), else nplm.",
)  # fmt: skip


def target_options(purpose: str) -> list[click.Option]:
    """Return the options of a `Target`."""
    default = "512M, or less if less is available: more would save no time"
    return [TO, BITS, memory_option(purpose, default)]


class Target:
    """A file to write, by the options of a command: of n-grams, or of any model."""

    def __init__(
        self, path: Path, to: str | None, bits: int | None, memory: int | None
    ) -> None:
        self.path, self.to, self.bits, self.memory = path, to, bits, memory
        self.kind = to or ("binary" if bits is not None else _kind_of(path))
        if bits is not None and self.kind != "binary":
            raise click.UsageError(
                "--bits is for mapped n-grams: leave it out, or give --to binary and "
                "another OUTPUT."
            )
        self.ngrams_file: NgramsFile | None = None
        if self.kind in OF_NGRAMS:
            self.ngrams_file = NgramsFile(path, cast(Any, self.kind), bits)

    @contextmanager
    def work(self) -> Iterator[Work]:
        """Yield temporary files, or memory for a file that holds any model."""
        with stages(lines=None) as bars, bars.enclosing():
            show = bars.counting("n-grams")
            if self.ngrams_file is None:
                yield Work(show)
                return
            n_bytes = self.memory
            if n_bytes is None:
                n_bytes = min(system.free_memory(), DEFAULT_BYTES)
            system.reuse_freed_memory()
            with Scratch(None, n_bytes, 1, show) as scratch:
                yield scratch

    @contextmanager
    def changed_from(
        self, models: Sequence[str], *, verify: bool, quantized: bool = False
    ) -> Iterator[tuple[list[TextNgrams], Work]]:
        """Open models, quantized ones too if asked, to be changed and written here."""
        with self.work() as work:
            members = []
            for model in models:
                with open_model(model, verify=verify) as file:
                    members.append(ngrams_in(file, work, quantized=quantized))
            reserve_for_words(work, sum(len(ngrams.words) for ngrams in members))
            yield members, work

    def write(self, ngrams: TextNgrams, work: Work) -> int:
        """Write n-grams of text, and return their number."""
        file, tokenizer, n_ngrams = self.ngrams_file, ngrams.tokenizer, size_of(ngrams)
        if file is None:
            self.write_model(ngrams.text_lm(index=False))
            return n_ngrams
        words = StoredWords.of(ngrams.words, ngrams.boundary, tokenizer)
        file.write(ngrams.trie, words, work)
        is_stored = self.kind == "binary" and isinstance(tokenizer, Splitter)
        if (
            self.kind != "fst"
            and not is_stored
            and not getattr(tokenizer, "splits_at_blanks", False)
        ):
            note_lost_tokenizer(self.path)
        if not ngrams.predict_boundary and ngrams.trie.prob[ngrams.boundary] > 0:
            notify(
                f"Note: the end of a line will count as a token with {self.path}, but "
                "does not with MODEL: write it with --to nplm to leave ends out."
            )
        return n_ngrams

    def write_model(
        self, lm: TextLM, *, optimizer: bool = False, dtype: str | None = None
    ) -> None:
        """Write a text model, or the features of its words; see `nplm.save`."""
        if self.kind != "nplm" and (optimizer or dtype):
            option = "--keep-optimizer" if optimizer else f"--{dtype}"
            raise click.UsageError(
                f"{option} is for files of nplm.save, and {self.path} will be of the "
                f"kind {self.kind}: leave it out, or give --to nplm."
            )
        if self.kind != "nplm":
            self.write_vectors(vocabulary_of(lm).words_.tolist(), learned_features(lm))
            return
        try:
            nplm.save(lm, self.path, optimizer=optimizer, dtype=dtype)
        except TypeError as error:
            raise click.ClickException(str(error)) from error

    def write_vectors(self, words: Sequence[str], vectors: Any) -> None:
        """Write word vectors."""
        is_binary = self.kind == "vectors-binary"
        formats.write_vectors(self.path, words, vectors, binary=is_binary)


def ngrams_in(file: OpenModel, work: Work, *, quantized: bool) -> TextNgrams:
    """Read the n-grams of an open file; see `OpenModel.text_ngrams`."""
    refuse_vectors(file)
    try:
        ngrams = file.text_ngrams(work, quantized=quantized)
    except NoNgramsError as error:
        kind = "" if quantized else ", which is not quantized (--bits)"
        raise click.ClickException(
            f"{file.path} has no back-off n-grams ({error.model}): give a MODEL "
            f"trained with --model kneser-ney{kind}, or an ARPA file."
        ) from error
    check_tokenizer(file, ngrams.tokenizer)
    return ngrams


def size_of(ngrams: TextNgrams) -> int:
    """Return the number of n-grams of all orders."""
    return int(ngrams.trie.n_ngrams.sum())


def _kind_of(path: Path) -> str:
    name = path.name.removesuffix(".gz").removesuffix(".xz")
    if name.endswith(".arpa"):
        return "arpa"
    return "vectors" if name.endswith(".vec") else "nplm"
