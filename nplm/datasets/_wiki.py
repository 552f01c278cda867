"""Wikipedia, prepared as the paper prepares AP News, which is not published."""

from __future__ import annotations

import io
import lzma
import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nplm.base.files.compressed import reading
from nplm.base.files.lines import read_lines
from nplm.datasets._remote_files import RemoteFile, read_file
from nplm.datasets.corpus import Corpus
from nplm.text.vocabulary import Vocabulary

TOKEN = re.compile(r"\w+(?:[.,]\d+)*(?:['’]\w+)?|[^\w\s]")
N_TRAIN, N_VALID, N_TEST = 13_994_528, 963_138, 963_071
N_WORDS = 17_964
MIN_TOKENS = 100  # of a text that is split into three parts
NUMBER, RARE, NAME = "<num>", "<unk>", "<name>"
WIKI = RemoteFile(
    "wiki16m.txt.xz",
    None,
    "a1e782c6cfc9571e9f9ae817eb9ff9af80f026bb77ebd3502511cf3346bd35a7",
)


def load_wiki(
    path: str | os.PathLike[str] | None = None,
    *,
    n_words: int = N_WORDS,
    data_home: str | os.PathLike[str] | None = None,
) -> Corpus:
    """Load 16 million tokens of Wikipedia, prepared as the paper prepares AP News.

    The paper's second corpus is not published. This one has parts of the same sizes
    and the same preprocessing (section 4): lower case, one symbol for numbers, another
    for rare proper nouns, and ``<unk>`` for other rare words. A proper noun is a word
    that mostly begins with a capital. Compare models on this corpus with each other,
    never with the paper's figures.

    Parameters
    ----------
    path : path-like, optional
        Your own text, UTF-8, plain, gzip, bzip2, xz or zstd: running text, neither
        tokenized nor in lower case, with one paragraph per line and without markup,
        headings and lists. Blank lines between articles are optional. The order of
        articles should be arbitrary, as the parts are contiguous. Of a longer text the
        first 15,920,737 tokens are read (86 MB); a shorter one is split in the same
        proportions. By default the text of nplm's figures, ``wiki16m.txt.xz``.
    n_words : int, default=17,964
        Size of the vocabulary: the symbols ``<unk>``, ``<name>`` and ``<num>``, and the
        most frequent words of all three parts.
    data_home : path-like, optional
        Folder to search, by default ``~/.cache/nplm``. The folders in the environment
        variable ``NPLM_DATA`` are searched first. ``wiki16m.txt.xz`` cannot be
        downloaded.

    Returns
    -------
    corpus : Corpus
        13,994,528, 963,138 and 963,071 tokens, one stream.

    Raises
    ------
    FileNotFoundError
        If the file is missing.
    OSError
        If it is damaged.
    ValueError
        If your text is not UTF-8, or has too few tokens for three parts.

    References
    ----------
    English Wikipedia of 2015 (CC BY-SA 3.0) as in https://github.com/jason-feng/wikiVisual,
    text/AA to AD, without headings, lists, markup and repeated paragraphs.

    Examples
    --------
    >>> from nplm.datasets import load_wiki
    >>> wiki = load_wiki("my_wikipedia.txt.xz")                 # doctest: +SKIP
    """
    sizes = (N_TRAIN, N_VALID, N_TEST)
    if path is None:
        source = "English Wikipedia of 2015 (CC BY-SA)"
        data = read_file(WIKI, data_home, download_if_missing=False)
        with lzma.open(io.BytesIO(data)) as file:
            lines = io.TextIOWrapper(file, encoding="utf-8")
            tokens, ids = _first_tokens(lines, sum(sizes))
    else:
        source = f"The text of {os.fspath(path)}"
        tokens, ids = _own_tokens(Path(path), sum(sizes))
    words, word_ids = _words(tokens, np.bincount(ids, minlength=len(tokens)), n_words)
    ends = np.cumsum(sizes)[:2] * len(ids) // sum(sizes)
    train, valid, test = np.split(word_ids[ids], ends)
    return Corpus(
        "wiki",
        train,
        valid,
        test,
        Vocabulary.from_words(words, unknown=RARE, boundary=None),
        None,
        f"{source} in place of the paper's AP News: lower case, numbers, rare proper "
        "nouns and rare words to symbols, one stream.",
    )


def _own_tokens(path: Path, n: int) -> tuple[list[str], NDArray[np.int32]]:
    """Return the first n tokens of a user's file, as `_first_tokens` does."""
    with reading(path, pipes=True) as file:
        lines = (text for _, text in read_lines(file, str(path)))
        tokens, ids = _first_tokens(lines, n)
    if len(ids) < MIN_TOKENS:
        raise ValueError(
            f"{path} has {len(ids)} tokens: three parts need at least {MIN_TOKENS}."
        )
    return tokens, ids


def _first_tokens(lines: Iterable[str], n: int) -> tuple[list[str], NDArray[np.int32]]:
    """Return the distinct tokens among the first n of a text, and their sequence."""
    token_ids: dict[str, int] = {}
    ids = np.empty(n, np.int32)
    n_read = 0
    for line in lines:
        line_ids = [
            token_ids.setdefault(t, len(token_ids)) for t in TOKEN.findall(line)
        ]
        line_ids = line_ids[: n - n_read]
        ids[n_read : n_read + len(line_ids)] = line_ids
        n_read += len(line_ids)
    return list(token_ids), ids[:n_read]


def _words(
    tokens: list[str], counts: NDArray[np.intp], n_words: int
) -> tuple[list[str], NDArray[np.int32]]:
    """Choose the vocabulary; return its words and the word id of each token."""
    lower, capitals = Counter[str](), Counter[str]()
    spelled = [NUMBER if token[0].isdigit() else token.lower() for token in tokens]
    for token, word, count in zip(tokens, spelled, counts.tolist()):
        lower[word] += count
        capitals[word] += count * token[0].isupper()
    kept = [word for word, _ in lower.most_common() if word != NUMBER]
    words = [RARE, NAME, NUMBER, *kept[: n_words - 3]]
    id_of = {word: i for i, word in enumerate(words)}
    word_ids = np.empty(len(tokens), np.int32)
    for i, word in enumerate(spelled):
        is_name = 2 * capitals[word] > lower[word]
        word_ids[i] = id_of.get(word, id_of[NAME] if is_name else id_of[RARE])
    return words, word_ids
