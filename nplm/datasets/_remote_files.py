"""Files of corpora, from NPLM_DATA, from the cache, or downloaded."""

from __future__ import annotations

import hashlib
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

from nplm.base.exceptions import missing_packages
from nplm.base.files.atomic_files import user_cache


@dataclass(frozen=True)
class RemoteFile:
    """A published file of a corpus."""

    name: str
    url: str | None  # None if it is not published
    sha256: str
    # A local zip file that may contain it instead.
    archive: str | None = None


def read_file(
    file: RemoteFile,
    data_home: str | os.PathLike[str] | None,
    download_if_missing: bool,
) -> bytes:
    """Return the contents of `file`, after checking its digest.

    Raises FileNotFoundError if it is missing and may not be downloaded, or NPLM_DATA
    names a folder that does not exist. Raises ImportError if it has to be downloaded
    and pooch or tqdm is not installed. Raises OSError if it is damaged or unreadable,
    or the download fails.
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
            f"{file.name} is missing and download_if_missing=False. "
            f"{_where_to_put(file, cache)}"
        )
    return _download(file, cache).read_bytes()


def cache_folder(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of downloads: `data_home`, or ``nplm`` in the user's cache."""
    if data_home is not None:
        return Path(data_home).expanduser()
    return user_cache()


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
        raise missing_packages(
            f"{file.name} is missing, and downloading it",
            "pooch",
            "tqdm",
            otherwise=f"Or: {_where_to_put(file, cache)}",
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
        ) from None  # the traceback of four libraries would add nothing
    except ValueError as error:  # pooch raises it for a wrong digest
        raise OSError(
            f"The download of {file.name} is damaged and was not kept ({error}). Try "
            f"again; if that does not help: {_where_to_put(file, cache)}"
        ) from None
    return Path(path)


def _where_to_put(file: RemoteFile, cache: Path) -> str:
    if file.url is None:
        return (
            "It is not published. If you have it (SHA-256 "
            f"{file.sha256}), put it into {cache}, or into a folder in the environment "
            "variable NPLM_DATA. If not, load_wiki(path) reads your own text in the "
            "same way; figures on it do not compare with those of nplm."
        )
    return (
        f"Get {file.url} (SHA-256 {file.sha256}) on a machine with a network and put "
        f"it as {file.name} into {cache}, or into a folder in the environment "
        "variable NPLM_DATA."
    )
