import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams._trie import Trie
from nplm.base.array_types import Bytes, Floats, Ids

def backoff_prob(
    trie: Trie,
    prob: NDArray[np.float32],
    bow: NDArray[np.float32],
    X: Ids,
    words: Ids,
    path: Ids,
    out: Floats,
) -> None: ...
def backoff_distribution(
    trie: Trie,
    prob: NDArray[np.float32],
    bow: NDArray[np.float32],
    X: Ids,
    path: Ids,
    out: Floats,
) -> None: ...
def backoff_masses(
    trie: Trie,
    prob: NDArray[np.float32],
    bow: NDArray[np.float32],
    parent: Ids,
    chosen: Bytes | bytes | memoryview,
    first: int,
    last: int,
    mass: Floats,
) -> None: ...
def longest_contexts(trie: Trie, X: Ids, path: Ids, out: Ids) -> None: ...
def weights_in_turn(
    words: Ids,
    next_context: Ids,
    bow: NDArray[np.float32],
    first: int,
    weight: NDArray[np.float32],
) -> None: ...
def find_contexts(trie: Trie, X: Ids, path: Ids, out: Ids) -> None: ...
def find_ngrams(trie: Trie, contexts: Ids, y: Ids, out: Ids) -> None: ...
def contexts_made(
    trie: Trie, parent: Ids, first: int, last: int, slot: Ids, path: Ids, made: Ids
) -> None: ...
