from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams._hashed import Table
from nplm._kernels.ngrams._quantized import QuantizedTrie
from nplm._kernels.ngrams._trie import Ngrams
from nplm._kernels.ngrams.decoding._word_ids import Ids, WordIds
from nplm._kernels.ngrams.decoding._word_scorer import WordScorer
from nplm.base.array_types import Counts, Floats

class NgramScorer(WordScorer):
    def __init__(
        self,
        ngrams: Ngrams,
        boundary: int,
        ids: dict[Any, int] | Ids | None,
        n_words: int,
        unknown: int,
        closed: bool,
    ) -> None: ...
    def fill_texts(
        self, words: WordIds, texts: list[str], bos: bool, eos: bool, out: Floats
    ) -> None: ...
    def fill_tokens(
        self,
        ids: NDArray[np.int32],
        lengths: Counts,
        bos: bool,
        eos: bool,
        log_prob: Floats,
        orders: NDArray[np.int32],
    ) -> None: ...

class HashedWordScorer(NgramScorer):
    def __init__(
        self,
        table: Table,
        boundary: int,
        ids: dict[Any, int] | Ids | None,
        n_words: int,
        unknown: int,
        closed: bool,
    ) -> None: ...

class QuantizedWordScorer(NgramScorer):
    def __init__(
        self,
        trie: QuantizedTrie,
        boundary: int,
        ids: dict[Any, int] | Ids | None,
        n_words: int,
        unknown: int,
        closed: bool,
    ) -> None: ...
