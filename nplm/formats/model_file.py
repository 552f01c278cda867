"""`ModelFile`: a model that each process of a cluster loads once."""

from __future__ import annotations

import os
import platform
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

from nplm.formats.open_model import OpenModel, open_model


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
        with self._opened() as file:
            self.checksum = _checksum(file)

    def _opened(self) -> AbstractContextManager[OpenModel]:
        return open_model(self.path, verify=self.verify)

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
                with self._opened() as file:
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
    """Return numbers that differ once a file is written or replaced."""
    try:
        status = os.stat(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"there is no file {path} on {platform.node()}: every machine that scores "
            "needs the model under this name, in a folder that all of them mount or "
            "as a copy."
        ) from error
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _checksum(file: OpenModel) -> str:
    """Return the size and the CRC-32 of a file, of a safetensors file by its header."""
    try:
        return f"{file.n_bytes}-{file.checksum()}"
    except ValueError as error:
        raise ValueError(
            f"{file.path} on {platform.node()} cannot be loaded: "
            f"{str(error).rstrip('.')}. Copy it again, or save the model again with "
            "this nplm."
        ) from error
