from typing import Any

from nplm._kernels.ngrams._hashed import Table
from nplm._kernels.ngrams._quantized import QuantizedTrie
from nplm._kernels.ngrams.decoding._word_ids import Ids
from nplm._kernels.ngrams.decoding._word_scorer import WordScorer

class NgramScorer(WordScorer): ...

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
