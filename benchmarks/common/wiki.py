"""The Wiki protocol: 16 million tokens of Wikipedia, as the paper reads AP News."""

from __future__ import annotations

import lzma
import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

TOKEN = re.compile(r"\w+(?:[.,]\d+)*(?:['’]\w+)?|[^\w\s]")
N_TRAIN, N_VALID, N_TEST = 13_994_528, 963_138, 963_071
N_WORDS = 17_964
NUMBER, RARE, NAME = "<num>", "<unk>", "<name>"


def wiki(
    n_words: int = N_WORDS,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], list[str]]:
    """Ids of the training, validation and test part, and the `n_words` words.

    Section 4 of the paper: lower case, numbers to one symbol, rare words and
    (rare) proper nouns to symbols. Here a proper noun is a word that mostly
    begins with a capital.
    """
    folders = os.environ.get("NPLM_DATA", "").split(os.pathsep)
    paths = [Path(f) / "wiki16m.txt.xz" for f in folders if f]
    path = next((p for p in paths if p.exists()), None)
    if path is None:
        raise SystemExit("Set NPLM_DATA to the folder that holds wiki16m.txt.xz.")
    number: dict[str, int] = {}
    ids = np.empty(N_TRAIN + N_VALID + N_TEST, dtype=np.int32)
    n = 0
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            found = [number.setdefault(t, len(number)) for t in TOKEN.findall(line)]
            found = found[: len(ids) - n]
            ids[n : n + len(found)] = found
            n += len(found)
    counts = np.bincount(ids[:n], minlength=len(number))
    lower, capitals = Counter(), Counter()
    for token, count in zip(number, counts.tolist()):
        word = NUMBER if token[0].isdigit() else token.lower()
        lower[word] += count
        capitals[word] += count * token[0].isupper()
    kept = [word for word, _ in lower.most_common() if word != NUMBER]
    words = [RARE, NAME, NUMBER, *kept[: n_words - 3]]
    place = {word: i for i, word in enumerate(words)}
    new_id = np.zeros(len(number), dtype=np.int32)
    for i, token in enumerate(number):
        word = NUMBER if token[0].isdigit() else token.lower()
        is_name = 2 * capitals[word] > lower[word]
        new_id[i] = place.get(word, 1 if is_name else 0)
    ids = new_id[ids[:n]]
    end = N_TRAIN + N_VALID
    return ids[:N_TRAIN], ids[N_TRAIN:end], ids[end:], words
