"""Compact binary files of n-grams: logarithms are rounded to 16 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm.formats.binary.arrays import dtypes_of_trie
from nplm.models.ngrams.trie.backoff_trie import BackoffTrie

__all__ = ["restored", "rounded"]

# 0 is the code of probability 0; the others are even steps of the logarithm.
N_CODES = 1 << 16


def rounded(trie: BackoffTrie) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the ranges of the codes, and the arrays of a compact file."""
    word_type = dtypes_of_trie(trie.n_words, compact=True)["words"]
    prob_range, prob = _encode(trie.prob)
    bow_range, bow = _encode(trie.bow)
    arrays = {
        "level_start": trie.level_start,
        "context_word": trie.context_word.astype(word_type),
        # The longest contexts have no children.
        "child_start": trie.child_start[: trie.level_start[-2]],
        "start": trie.start,
        "words": trie.words.astype(word_type),
        "prob": prob,
        "bow": bow,
    }
    return {"prob": prob_range, "bow": bow_range}, arrays


def restored(
    arrays: dict[str, NDArray[Any]], codes: dict[str, Any]
) -> dict[str, NDArray[Any]]:
    """Return the arrays of a trie from those of a compact file."""
    n_contexts = int(arrays["level_start"][-1])
    child_start = np.full(n_contexts + 1, n_contexts, dtype=np.int32)
    child_start[: len(arrays["child_start"])] = arrays["child_start"]
    return arrays | {
        "context_word": arrays["context_word"].astype(np.int32),
        "child_start": child_start,
        "words": arrays["words"].astype(np.int32),
        "prob": _decode(arrays["prob"], codes["prob"]),
        "bow": _decode(arrays["bow"], codes["bow"]),
    }


def _encode(values: NDArray[np.float32]) -> tuple[list[float], NDArray[np.uint16]]:
    """Return the range of the logarithms, and 16-bit codes of them."""
    positive = values > 0
    log = np.log(values, out=np.zeros_like(values), where=positive)
    low, high = float(log.min(initial=0)), float(log.max(initial=0))
    step = (high - low) / (N_CODES - 2) or 1.0
    codes = np.rint((log - low) / step) + 1
    return [low, high], np.where(positive, codes, 0).astype(np.uint16)


def _decode(codes: NDArray[np.uint16], span: list[float]) -> NDArray[np.float32]:
    low, high = span
    table = np.exp(np.linspace(low, high, N_CODES - 1), dtype=np.float64)
    return np.concatenate([[0.0], table]).astype(np.float32)[codes]
