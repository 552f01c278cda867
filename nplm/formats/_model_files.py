"""Files of models, written atomically and compressed by their name, and what is in."""

from __future__ import annotations

import gzip
import lzma
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from nplm.base.files.atomic_files import check_writable, replacing
from nplm.base.files.tensors import TensorFile

if TYPE_CHECKING:
    from nplm.models.ngrams.stages.counts import NgramCounts
    from nplm.models.ngrams.trie.backoff_trie import BackoffTrie


class Container(NamedTuple):
    """A format of safetensors files, as their headers name it."""

    format: str
    version: str

    def metadata(self, **texts: str) -> dict[str, str]:
        """Return the metadata of a file: the format, and `texts` of its own."""
        return self._asdict() | texts

    def holds(self, file: TensorFile) -> bool:
        """Whether a file has this format, in any version."""
        return file.metadata.get("format") == self.format

    def check_version(self, file: TensorFile) -> None:
        """Raise ValueError if a file of this format has another version."""
        version = file.metadata.get("version")
        if version != self.version:
            raise ValueError(
                f"{file.path} has format version {version!r:.80}, but this nplm reads "
                f"version {self.version!r}; save the model again with this nplm, or "
                "update it."
            )


SAVED = Container("nplm model", "4")
# Files before version 4 were no safetensors files.
# Files of version 4 had the arrays of the trie beside its hash table.
# Files of version 5 had no hash table of words.
# A bucket of version 6 had one bit of the n-grams beyond it.
NGRAMS = Container("nplm n-grams", "7")

# Level 9, gzip's default, takes three times as long as 6 and saves 1% of the size.
GZIP_LEVEL = 6


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new file, compressed by its name, that replaces `path` once complete."""
    path = check_writable(path)
    with replacing(path) as raw:
        if path.suffix == ".gz":
            # Without name and time in the header, equal models make equal files.
            with gzip.GzipFile(
                "", "wb", compresslevel=GZIP_LEVEL, fileobj=raw, mtime=0
            ) as compressed:
                yield cast(BinaryIO, compressed)
        elif path.suffix == ".xz":
            with lzma.LZMAFile(raw, "wb") as compressed:
                yield cast(BinaryIO, compressed)
        else:
            yield raw


def trie_of(model: object) -> BackoffTrie:
    """Return the n-grams of a fitted back-off model, or raise."""
    # Imported here: files of n-grams are written without scikit-learn.
    from nplm.models.ngrams.backoff_model import BackoffModel

    lacks = "has no n-grams with back-off weights"
    trie = _part(model, BackoffModel, "trie_", lacks, "KneserNeyLM or a BackoffLM")
    return trie.unpacked()


def counts_of(model: object) -> NgramCounts:
    """Return the n-gram counts of a fitted model, or raise."""
    from nplm.models.ngrams.kneser_ney import KneserNeyLM

    lacks = "keeps no n-gram counts"
    counts = _part(model, KneserNeyLM, "counts_", lacks, "KneserNeyLM")
    if counts is None:
        raise TypeError(f"this KneserNeyLM {lacks}: fit one to the text alone.")
    return counts


def _part(model: object, kind: type, name: str, lacks: str, pass_one: str) -> Any:
    """Return an attribute of a fitted model of a kind."""
    from sklearn.utils.validation import check_is_fitted

    if not isinstance(model, kind):
        own_kind = model if isinstance(model, type) else type(model)
        raise TypeError(
            f"{own_kind.__name__} {lacks}, which the file holds; pass a {pass_one}."
        )
    check_is_fitted(model, name)
    return getattr(model, name)
