"""`nplm.load`: models in files of every kind, recognised by what is in them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from nplm.base.files.tensors import TensorFile
from nplm.formats._kinds import Kind, kind_of
from nplm.formats.arpa.arpa_files import read_arpa
from nplm.formats.arpa.reading import check_boundary
from nplm.formats.binary import headers
from nplm.formats.binary.binary_files import read_binary
from nplm.formats.saving import files as saved_files
from nplm.text.lm.text_lm import TextLM
from nplm.text.tokenizer import Tokenizer

__all__ = ["load", "load_arpa"]


def load(
    path: str | os.PathLike[str], *, mmap: bool = True, verify: bool = False
) -> Any:
    """Load a model from a file of any kind.

    The contents of the file say what it is, not its name:

    - A file of `save` gives the estimator that was saved.
    - An ARPA file, of SRILM, KenLM or nplm, plain or packed by gzip, bzip2, xz or
      zstd, gives a `TextLM`, because it has words: that of
      ``read_arpa(path, add_unknown=True)``. So does a binary file of ``save_binary``:
      that of ``load_binary(path)``. Text is split at blanks, or by the
      tokenizer that the model was estimated with (``estimate_binary(tokenizer=)``).

    Parameters
    ----------
    path : path-like
        The file. With `mmap` it must stay as it is while the model is in use.
    mmap : bool, default=True
        Whether n-grams and counts stay in the file, mapped into memory read-only: all
        processes that load them then share their memory. Networks, which can be set and
        trained, and ARPA files are always read into memory.
    verify : bool, default=False
        Whether to check all of a binary file of ``save_binary``, as
        ``load_binary(path, verify=True)`` does. By default only its header and sizes
        are checked, and it is ready at once, however large it and its vocabulary are.
        Other files are always checked.

    Returns
    -------
    model : estimator
        Of a file of `save` one that gives the same bits as the one that was saved
        (rounded, if it was saved with a ``dtype``), and can be fitted further, cloned,
        or saved again. Of other files a `TextLM`.

    Raises
    ------
    ValueError
        If the file is not a model, has another version, is damaged, or has something of
        which this nplm knows nothing. The message names the reader of files that are no
        models: word vectors, classes, counts. If n-grams have no boundary:
        `TextLM.from_model` takes one.
    OSError
        If it cannot be read.

    See Also
    --------
    save : Writes any fitted estimator.
    ModelFile : Loads a file once in each process of a cluster.
    nplm.formats.load_binary : Gives the n-gram model and its words.
    nplm.formats.read_arpa : Gives the model and its words.

    Notes
    -----
    No file runs code. All of a file of `save` is read and compared with its checksums,
    and its contents must be what a fit leaves: sizes, types, ids, order, and
    probabilities that sum to 1. So a file that is damaged, or that comes from someone
    you do not trust, is refused.

    **A binary file is trusted** unless `verify` is True: all that it says of its words
    and n-grams is believed. If it is damaged, or made to harm, words and probabilities
    are wrong, or an error is raised; look-ups read and write nothing outside of its
    arrays. `verify` reads all of the file, in blocks. A file that passes is noted in
    the user's cache (``~/.cache/nplm/verified``), so that it is checked again only
    after it was written, replaced or moved.

    The sum of the probabilities is checked after every context of the n-grams in a file
    of `save`, and follows from the way in which the others are computed. It is not
    checked of a `QuantizedLM`, of a `BackoffLM` that did not sum to 1 when it was
    saved, as one read from another tool's file may, and of ARPA and binary files.

    Examples
    --------
    >>> import tempfile
    >>> import nplm
    >>> from nplm.formats import write_arpa
    >>> lm = nplm.KneserNeyLM(2, boundary=0, discount_fallback=(0.5, 1, 1.5))
    >>> lm = lm.fit_stream([[1, 2, 1], [1]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_arpa(lm, f"{folder}/model.arpa.gz", ["</s>", "a", "rose"])
    ...     text = nplm.load(f"{folder}/model.arpa.gz")
    >>> text.next_words("a", k=1)[0]
    ['</s>']
    """
    path = Path(path)
    kind = kind_of(path)
    if kind is Kind.TEXT:
        return load_arpa(path)
    if kind is Kind.OLD_BINARY:
        raise ValueError(headers.old_binary(path))
    if kind.is_vectors:
        binary = ", binary=True" if kind is Kind.BINARY_VECTORS else ""
        raise ValueError(
            f"{path} has word vectors, not a model: "
            f"nplm.formats.read_vectors(path{binary}) reads them, and "
            "Features(embeddings=...) starts a network with them."
        )
    if kind is Kind.TABLE:
        raise ValueError(
            f"{path} has words and whole numbers, not a model: "
            "nplm.formats.read_classes reads classes of words, and "
            "nplm.formats.read_counts n-gram counts."
        )
    return _load_tensors(path, mmap=mmap, verify=verify)


def load_arpa(path: str | os.PathLike[str], *, index: bool = True) -> TextLM:
    """Load an ARPA file as a text model; see ``read_arpa`` for `index`."""
    model, words = read_arpa(path, add_unknown=True, index=index)
    check_boundary(model.boundary, words, path)
    return TextLM.from_model(model, words)


def _load_tensors(path: Path, *, mmap: bool, verify: bool) -> Any:
    try:
        file = TensorFile(path)
        made_by = file.metadata.get("format")
        if made_by == saved_files.FORMAT:
            return saved_files.read_saved(file, mmap=mmap)
        if made_by != headers.FORMAT:
            raise ValueError("it is not a model that nplm.save wrote")
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{path} cannot be loaded: {str(error).rstrip('.')}. Copy it again, or "
            "save the model again with this nplm; if nplm.save did not write it, "
            "nplm.formats may read it."
        ) from error
    model, words = read_binary(file, verify=verify, mmap=mmap)
    if model.boundary is None:
        raise ValueError(
            f"{path} has no boundary, the mark of the ends of lines: in Python, read "
            "it by nplm.formats.load_binary, and give TextLM.from_model a boundary and "
            "predict_boundary=False."
        )
    tokenizer = Tokenizer(**headers.split_params(file))
    try:
        lm = TextLM.from_model(model, words, tokenizer=tokenizer)
    except ValueError as error:  # the words are not those of their hash table
        raise headers.damaged(path, error) from error
    known = lm._codec.vocabulary
    known._spelling = headers.spelling_of(file, known.unknown)
    return lm
