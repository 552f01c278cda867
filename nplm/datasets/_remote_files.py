"""Where a corpus's files are: in NPLM_DATA, in the cache, or to be downloaded."""

from __future__ import annotations

import hashlib
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

__all__ = ["RemoteFile", "cache_folder", "read_file"]


@dataclass(frozen=True)
class RemoteFile:
    """A file of a corpus, as it is published."""

    name: str
    url: str | None  # None of what is not published
    sha256: str
    # A zip file that may hold it instead, where it is found locally.
    archive: str | None = None


def read_file(
    file: RemoteFile,
    data_home: str | os.PathLike[str] | None,
    download_if_missing: bool,
) -> bytes:
    """Contents of `file`, its digest checked.

    Raises
    ------
    FileNotFoundError
        If it is nowhere and may not be downloaded, or NPLM_DATA names a folder
        that does not exist.
    ImportError
        If it has to be downloaded and pooch is not installed.
    OSError
        If it is damaged or unreadable, or the download fails.
    """
    cache = cache_folder(data_home)
    for folder in [*_data_folders(), cache]:
        path = folder / file.name
        if path.is_file():
            return _checked(path.read_bytes(), file, path)
        if file.archive is not None and (folder / file.archive).is_file():
            path = folder / file.archive
            return _checked(_read_member(path, file.name), file, path)
    if not download_if_missing:
        raise FileNotFoundError(
            f"{file.name} is not there and download_if_missing=False. "
            f"{_where_to_put(file, cache)}"
        )
    return _download(file, cache).read_bytes()


def cache_folder(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Folder of downloads: `data_home`, or ``nplm`` in the user's cache folder."""
    if data_home is not None:
        return Path(data_home).expanduser()
    user_cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(user_cache).expanduser() / "nplm"


def _data_folders() -> list[Path]:
    names = os.environ.get("NPLM_DATA", "").split(os.pathsep)
    folders = [Path(name).expanduser() for name in names if name]
    for folder in folders:
        if not folder.is_dir():
            raise FileNotFoundError(
                f"NPLM_DATA names {str(folder)!r}, which is not a folder; correct it "
                "or unset it."
            )
    return folders


def _read_member(path: Path, name: str) -> bytes:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.read(name)
    except (zipfile.BadZipFile, KeyError) as error:
        raise OSError(
            f"{path} is damaged, or another edition: {name} cannot be read from it "
            f"({error}). Delete it and run again."
        ) from error


def _checked(data: bytes, file: RemoteFile, path: Path) -> bytes:
    actual = hashlib.sha256(data).hexdigest()
    if actual != file.sha256:
        source = "the right one" if file.url is None else file.url
        raise OSError(
            f"{path} is damaged, or another edition: the SHA-256 of {file.name} is "
            f"{actual}, but should be {file.sha256}. Delete it and run again, or "
            f"replace it by {source}."
        )
    return data


def _download(file: RemoteFile, cache: Path) -> Path:
    try:
        import pooch
        import tqdm  # noqa: F401  (draws pooch's progress bar)
    except ImportError as error:
        raise ImportError(
            f"{file.name} is not there, and to download it takes pooch and tqdm: run "
            f'pip install "nplm[datasets]". Or: {_where_to_put(file, cache)}'
        ) from error
    try:
        # Into a temporary file until the digest is checked: nothing damaged stays.
        path = pooch.retrieve(
            file.url,
            known_hash=f"sha256:{file.sha256}",
            fname=file.name,
            path=cache,
            progressbar=True,
        )
    except OSError as error:
        raise OSError(
            f"{file.name} could not be downloaded ({error}). "
            f"{_where_to_put(file, cache)}"
        ) from None  # its traceback is that of four libraries, and says no more
    except ValueError as error:  # what pooch raises for a wrong digest
        raise OSError(
            f"The download of {file.name} is damaged and was not kept ({error}). Try "
            f"again; if that does not help: {_where_to_put(file, cache)}"
        ) from None
    return Path(path)


def _where_to_put(file: RemoteFile, cache: Path) -> str:
    if file.url is None:
        return (
            "It is not published. If you have it (SHA-256 "
            f"{file.sha256}), put it into {cache}, or into a folder that the "
            "environment variable NPLM_DATA names. If not, load_wiki(path) reads a "
            "text of your own in the same way; its figures are then of that text."
        )
    return (
        f"Get {file.url} (SHA-256 {file.sha256}) on a machine with a network and put "
        f"it as {file.name} into {cache}, or into a folder that the environment "
        "variable NPLM_DATA names."
    )
