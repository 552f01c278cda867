from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams._trie import Ngrams
from nplm._kernels.ngrams.decoding._word_ids import Ids
from nplm._kernels.ngrams.decoding._word_scorer import WordScorer
from nplm.base.array_types import Bytes, Counts

class KenlmNgrams(Ngrams):
    @property
    def n_types(self) -> int: ...
    @property
    def begin(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def boundary(self) -> int: ...
    def __init__(
        self,
        memory: Bytes | bytes | memoryview,
        words: tuple[int, int, int],
        unigrams: int,
        levels: list[Any],
        is_trie: bool,
    ) -> None: ...
    @property
    def unigram_prob(self) -> NDArray[np.float32]: ...
    @property
    def unigram_bow(self) -> NDArray[np.float32]: ...
    def fill_records(
        self,
        i: int,
        first: int,
        words: NDArray[np.int32],
        prob: NDArray[np.float32],
        bow: NDArray[np.float32],
    ) -> None: ...
    def fill_starts(self, i: int, first: int, starts: Counts) -> None: ...

class KenlmIds(Ids):
    def __init__(self, ngrams: KenlmNgrams) -> None: ...

class KenlmWordScorer(WordScorer):
    def __init__(
        self,
        ngrams: KenlmNgrams,
        boundary: int,
        ids: dict[Any, int] | Ids | None,
        n_words: int,
        unknown: int,
        closed: bool,
    ) -> None: ...
