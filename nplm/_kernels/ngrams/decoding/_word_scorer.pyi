from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nplm._kernels.ngrams._trie import Ngrams
from nplm._kernels.ngrams.decoding._kenlm import Steps
from nplm._kernels.ngrams.decoding._word_ids import Ids, WordIds
from nplm.base.array_types import Counts, Floats

class State:
    @property
    def words(self) -> tuple[int, ...]: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

def restored_state(
    words: Sequence[int], weights: Sequence[float], n_telling: int
) -> State: ...

class WordScorer(Steps):
    def __init__(
        self,
        ngrams: Ngrams,
        boundary: int,
        ids: dict[Any, int] | Ids | None,
        n_words: int,
        unknown: int,
        closed: bool,
    ) -> None: ...
    def begin(self, bos: bool = True) -> State: ...
    def step(self, state: State, word: object) -> tuple[float, State]: ...
    def end(self, state: State) -> float: ...
    def fill_steps(
        self, states: Sequence[State], words: Sequence[object], out: Floats
    ) -> list[State]: ...
    def full_step(self, state: State, word: object) -> tuple[float, int, State]: ...
    def full_scores(
        self,
        words: Iterable[object],
        base: float,
        zero: float,
        bos: bool = True,
        eos: bool = True,
    ) -> list[tuple[float, int, bool]]: ...
    def fill_candidates(
        self, state: State, words: Iterable[object], out: Floats
    ) -> None: ...
    def sentence(
        self, words: Iterable[object], bos: bool = True, eos: bool = True
    ) -> float: ...
    def text(self, words: WordIds, text: str, bos: bool, eos: bool) -> float: ...
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
