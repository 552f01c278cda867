from nplm._kernels.ngrams._trie import Trie
from nplm.base.array_types import Counts, Floats

def kneser_ney(
    trie: Trie,
    level: int,
    parent: int,
    first: int,
    last: int,
    counts: Counts,
    discounts: Floats,
    tested: Counts,
    min_counts: Counts,
    interpolate: bool,
    spread: bool,
    impossible: int,
    lower: Floats,
    prob: Floats,
    bow: Floats,
) -> None: ...
