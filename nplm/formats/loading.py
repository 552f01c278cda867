"""Load models from files: of every kind, or once in each process of a cluster."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, cast

from nplm.base.exceptions import damaged_file
from nplm.base.files.tensors import NotTensorsError, stamp_of
from nplm.formats._model_files import NGRAMS
from nplm.formats.binary.binary_reading import read_ngrams
from nplm.formats.open_model import Kind, OpenModel, open_model

if TYPE_CHECKING:
    from nplm.models.ngrams.backoff_model import BackoffLM
    from nplm.models.ngrams.looked_up_lm import QuantizedLM

# What reads files that are not those of save_binary.
READERS = {
    Kind.TENSORS: "nplm.load reads files of nplm.save",
    Kind.KENLM: "nplm.load reads files of KenLM's build_binary",
    Kind.ARPA: "read_arpa reads ARPA files",
    Kind.TEXT: "it does not begin as one (read_arpa reads ARPA files)",
}


def load(
    path: str | os.PathLike[str], *, mmap: bool = True, verify: bool = False
) -> Any:
    """Load a model from a file of any kind.

    The contents of the file say what it is, not its name:

    - A file of `save` gives the estimator that was saved.
    - An ARPA file, of SRILM, KenLM or nplm, plain or packed by gzip, bzip2, xz or
      zstd, gives a `TextLM`, because it has words: that of
      ``read_arpa(path, add_unknown=True)``. So does a binary file of ``save_binary``:
      that of ``load_binary(path)``. And so does a binary file of KenLM's
      ``build_binary``, over a `KenlmLM`. Text is split at blanks, or by the
      tokenizer that the model was estimated with (``estimate_binary(tokenizer=)``).
      n-grams without a boundary get one of probability 0, in memory: their scores
      have no ends of lines.

    Parameters
    ----------
    path : path-like
        The file. With `mmap` it must stay as it is while the model is in use.
    mmap : bool, default=True
        Whether n-grams and counts stay in the file, mapped into memory read-only: they
        load at once, and all processes that load them share their memory. False reads
        them into memory of this process, in large pages where the system has them,
        which makes look-ups faster. Networks, which can be set and trained, and ARPA
        files are always read into memory.
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
        models: word vectors, classes, counts. If n-grams have no boundary, and ``<s>``
        or ``</s>`` as an ordinary word: `TextLM.from_model` takes a boundary.
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
    >>> import nplm
    >>> from nplm.formats import write_arpa
    >>> lm = nplm.KneserNeyLM(2, boundary=0, discount_fallback=(0.5, 1, 1.5))
    >>> lm = lm.fit_stream([[1, 2, 1], [1]])
    >>> write_arpa(lm, "model.arpa.gz", ["</s>", "a", "rose"])
    >>> text = nplm.load("model.arpa.gz")
    >>> text.next_words("a", k=1)[0]
    ['</s>']
    """
    with open_model(path, mmap=mmap, verify=verify) as file:
        return file.load()


def load_binary(
    path: str | os.PathLike[str], *, verify: bool = False
) -> tuple[BackoffLM | QuantizedLM, list[str]]:
    """Load a model that `save_binary` wrote.

    Only the header and the words are read. The other arrays are mapped into memory and
    read when they are used, once for all processes. A mapped file has the hash table,
    so the first look-up is as fast as later ones. (`nplm.load` maps the words too.)

    Parameters
    ----------
    path : path-like
        The file; it must stay as it is while the model is in use.
    verify : bool, default=False
        Whether to read all of the file, compare its checksums, check that all numbers
        are in range, and that the hash table is that of the n-grams: for a file that
        may be damaged, or that comes from someone you do not trust. By default only the
        header and the sizes are checked. A damaged array may then give wrong words or
        probabilities, but look-ups read and write nothing outside of the arrays, and
        pruning or writing the n-grams checks their numbers first.

    Returns
    -------
    model : BackoffLM or, of a quantized file, QuantizedLM
        A model that scores as the one that was saved.
    words : list of str
        The word of each id.

    Raises
    ------
    ValueError
        If `save_binary` did not write the file, or another version did; if the file is
        truncated, its header (with `verify` any of it) is damaged, or its words are not
        UTF-8.
    OSError
        If it cannot be read.

    See Also
    --------
    nplm.load : Gives a `TextLM`.

    Notes
    -----
    `verify` takes under a microsecond for each n-gram, and some tens of megabytes of
    memory whatever the size of the file, which it reads in blocks; of a file that is
    not quantized also temporary files, about 60 bytes for each n-gram. A file that
    passes is noted in the user's cache, ``nplm/verified`` in ``XDG_CACHE_HOME`` or
    ``~/.cache``. It is
    checked again only after it was written, replaced or moved: the note has its path,
    size, inode, times and checksum. It is no error if no note can be written.
    """
    with open_model(path, verify=verify) as file:
        try:
            has_ngrams = NGRAMS.holds(file.tensors)
        except NotTensorsError:
            has_ngrams = False
        except ValueError as error:
            raise damaged_file(file.path, error) from error
        if not has_ngrams:
            hint = READERS.get(file.kind, "it does not begin as one")
            raise ValueError(f"{file.path} is not a file of save_binary: {hint}.")
        ngrams = read_ngrams(file.tensors, verify=verify)
    return cast("BackoffLM | QuantizedLM", ngrams.model()), list(ngrams.words)


class ModelFile:
    """A model in a file, which each process loads once.

    For scoring with Dask, Spark, Ray or another pool of processes. Send this object to
    the workers instead of the model: it pickles as a name and a checksum. The first
    `load` in a process loads the file, and later ones return the same model. Mapped
    n-grams are shared by all processes of a machine.

    Parameters
    ----------
    path : path-like
        A file that `nplm.load` reads. Each machine needs it under this name: in a
        folder that all of them mount, or as a copy. A relative name is relative to the
        working directory of the process that makes this object. The file must stay as
        it is while it is in use.
    verify : bool, default=False
        As of `nplm.load`: whether to check all of a binary file of ``save_binary``
        first, once for each user of a machine.

    Attributes
    ----------
    path : Path
        The file, as an absolute path.
    verify : bool
        As given.
    checksum : str
        Size and CRC-32 of the file. A file of `save` or ``save_binary`` has checksums
        of its contents in its header, so only the header is read. Other files are read
        in full.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    OSError
        If it cannot be read.
    ValueError
        If it is truncated, or its header is damaged.

    See Also
    --------
    load : Load a model in this process alone.

    Notes
    -----
    A process keeps the model until it ends, or until it loads another file of the same
    name.

    Examples
    --------
    >>> import pickle
    >>> import nplm
    >>> texts = ["a rose is a rose", "is a rose a rose"] * 20
    >>> lm = nplm.TextLM(nplm.KneserNeyLM(discount_fallback=(0.5, 1, 1.5)), 2)
    >>> nplm.save(lm.fit(texts), "model.nplm")
    >>> file = nplm.ModelFile("model.nplm")
    >>> sent = pickle.loads(pickle.dumps(file))
    >>> again = sent.load()
    >>> file.load() is again
    True
    >>> bool((again.score_samples(texts) == lm.score_samples(texts)).all())
    True
    """

    def __init__(self, path: str | os.PathLike[str], *, verify: bool = False) -> None:
        self.path = Path(path).absolute()
        self.verify = bool(verify)
        _stamp(self.path)  # says which machine lacks the file
        with open_model(self.path, verify=self.verify) as file:
            self.checksum = _checksum(file)

    def __repr__(self) -> str:
        verify = ", verify=True" if self.verify else ""
        return f"ModelFile({os.fspath(self.path)!r}{verify})"

    def load(self) -> Any:
        """Return the model, which this process loads once.

        Returns
        -------
        model : estimator
            As `nplm.load` returns it. All callers in the process get the same object:
            score with it, and do not change it.

        Raises
        ------
        FileNotFoundError
            If this machine has no such file.
        ValueError
            If the file is not the one that this object was made of: it has been
            replaced, or this machine has another copy. Or if `nplm.load` refuses it.
        OSError
            If it cannot be read.
        """
        key = self.path, self.verify
        with _Cache.lock:
            stamp = _stamp(self.path)
            loaded = _Cache.models.get(key)
            if loaded is None or loaded.stamp != stamp:
                with open_model(self.path, verify=self.verify) as file:
                    checksum = _checksum(file)
                    self._check(checksum)
                    if loaded is None or loaded.checksum != checksum:
                        _Cache.models.pop(key, None)  # two models may be too large
                        model = file.load()
                    else:
                        model = loaded.model
                if _stamp(self.path) != stamp:
                    raise self._changed("it was written while it was read")
                loaded = _Cache.models[key] = _Loaded(stamp, checksum, model)
            self._check(loaded.checksum)
            return loaded.model

    def _check(self, checksum: str) -> None:
        if checksum != self.checksum:
            raise self._changed(
                f"its checksum is {checksum}, and that of the ModelFile {self.checksum}"
            )

    def _changed(self, why: str) -> ValueError:
        return ValueError(
            f"{self.path} on {platform.node()} is another file than when this "
            f"ModelFile was made: {why}. Copy the model again, or make another "
            "ModelFile."
        )


@dataclass(frozen=True)
class _Loaded:
    stamp: tuple[int, ...]
    checksum: str
    model: Any


class _Cache:
    """The models of this process."""

    lock = Lock()
    models: ClassVar[dict[tuple[Path, bool], _Loaded]] = {}


def _reset_after_fork() -> None:
    """Make a new lock in a fork, which lacks the thread that may hold the old one."""
    _Cache.lock = Lock()


os.register_at_fork(after_in_child=_reset_after_fork)


def _stamp(path: Path) -> tuple[int, ...]:
    """Return the stamp of a file; the error of a missing one names the machine."""
    try:
        return stamp_of(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"there is no file {path} on {platform.node()}: every machine that scores "
            "needs the model under this name, in a folder that all of them mount or "
            "as a copy."
        ) from error


def _checksum(file: OpenModel) -> str:
    """Return the checksum of a file; the error of a damaged one names the machine."""
    try:
        return file.checksum()
    except ValueError as error:
        raise ValueError(
            f"{file.path} on {platform.node()} cannot be loaded: "
            f"{str(error).rstrip('.')}. Copy it again, or save the model again with "
            "this nplm."
        ) from error
