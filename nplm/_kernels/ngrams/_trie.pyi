from typing import Any

from nplm.base.array_types import Floats, Ids

class Ngrams:
    @property
    def n_context(self) -> int: ...
    @property
    def n_words(self) -> int: ...

def windows_prob(ngrams: Ngrams, X: Ids, y: Ids, out: Floats) -> None: ...
def windows_log_prob(ngrams: Ngrams, X: Ids, y: Ids, out: Floats) -> bool: ...
def quick_log_prob(
    fitted: dict[str, Any], name: str, X: object, y: object
) -> Floats | None: ...
def take_logs(values: Floats) -> None: ...

class Trie:
    def __init__(
        self,
        level_start: Ids,
        context_word: Ids,
        child_start: Ids,
        start: Ids,
        words: Ids,
    ) -> None: ...
