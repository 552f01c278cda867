"""Headers of binary files of n-grams: what a file says of its model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nplm.base.checks import MAX_N_WORDS
from nplm.base.files.tensors import TensorFile
from nplm.formats._ngrams import AT_BLANKS
from nplm.formats._words import StoredWords
from nplm.text.words.splitting import Splitter, finder_of, params_of

__all__ = [
    "FORMAT", "VERSION", "check_tokenizer", "damaged", "header_of", "metadata_of",
    "read_header", "split_of",
]  # fmt: skip

FORMAT = "nplm n-grams"
# Files before version 4 were no safetensors files.
# Files of version 4 had the arrays of the trie beside its hash table.
# Files of version 5 had no hash table of words.
# A bucket of version 6 had one bit of the n-grams beyond it.
VERSION = "7"


def header_of(words: StoredWords) -> dict[str, Any]:
    """Return what a file says of its words."""
    header: dict[str, Any] = {"n_words": words.n_words, "boundary": words.boundary}
    if words.tokenizer is not None and not words.tokenizer.splits_at_blanks:
        check_tokenizer(words.tokenizer)
        header["tokenizer"] = params_of(words.tokenizer)
    if words.spelling is not None:
        header["spelling"] = words.spelling.params
    return header


def check_tokenizer(tokenizer: Splitter) -> None:
    """Raise ValueError if a file cannot hold the tokenizer: its pattern is compiled."""
    pattern = tokenizer.pattern
    if pattern is not None and not isinstance(pattern, str):
        raise ValueError(
            f"the tokenizer has a compiled pattern, {pattern!r:.200}, but a file of "
            "n-grams holds patterns as strings: set pattern to a string, with its "
            r"flags inside, such as '(?i)\w+'."
        )


def split_of(header: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a `Splitter`, or a `Tokenizer`, of a model's text.

    A file without them has words between blanks.

    Raises ValueError if the file is damaged.
    """
    split = header.get("tokenizer", AT_BLANKS)
    if split is not AT_BLANKS:
        if not _is_splitter(split):
            raise ValueError(f"its header has tokenizer={split!r:.80}")
        finder_of(Splitter(**split))  # compiles its pattern
    return split


def _is_splitter(params: object) -> bool:
    """Return whether these are parameters of a `Splitter`."""
    return (
        isinstance(params, dict)
        and params.keys() == {"pattern", "lowercase", "number", "proper_noun"}
        and isinstance(params["lowercase"], bool)
        and all(
            params[name] is None or isinstance(params[name], str)
            for name in ("pattern", "number", "proper_noun")
        )
    )


def metadata_of(header: Mapping[str, object]) -> dict[str, str]:
    """Return what a file says of the model in it, beside its arrays."""
    return {"format": FORMAT, "version": VERSION, "model": json.dumps(header)}


def damaged(path: Path, why: object) -> ValueError:
    """Return the error of a damaged file."""
    why, begin = str(why).rstrip("."), f"{path} is damaged: "
    if why.startswith(begin):  # its words have said so
        return ValueError(f"{why}.")
    return ValueError(f"{begin}{why}; copy or save it again.")


def read_header(file: TensorFile) -> dict[str, Any]:
    """Return what the file says of its model; refuse what `save_binary` never says."""
    try:
        header = json.loads(file.metadata.get("model", ""))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its header is not JSON ({error})") from None
    if not isinstance(header, dict):
        raise ValueError("its header describes no model")
    n_words: Any = header.get("n_words")
    boundary = header.get("boundary", "missing")
    if not _is_id(n_words, 1, MAX_N_WORDS):
        raise ValueError(f"its header has n_words={n_words!r:.80}")
    if boundary is not None and not _is_id(boundary, 0, n_words - 1):
        raise ValueError(f"its header has boundary={boundary!r:.80}")
    if not isinstance(header.get("quantized", {}), dict):
        raise ValueError(f"its header has quantized={header['quantized']!r:.80}")
    known = {"n_words", "boundary", "quantized", "tokenizer", "spelling"}
    if header.keys() - known:
        raise ValueError(f"its header has {sorted(header)!r:.80}")
    return header


def _is_id(value: object, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most
