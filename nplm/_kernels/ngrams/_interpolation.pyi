from nplm._kernels.ngrams._trie import Trie
from nplm.base.array_types import Counts, Floats, Ids

def relative_frequencies(
    trie: Trie, counts: Counts, totals: Counts, X: Ids, y: Ids, path: Ids, out: Floats
) -> None: ...
def context_frequencies(
    trie: Trie, totals: Counts, X: Ids, path: Ids, out: Counts
) -> None: ...
def mixed_frequencies(
    trie: Trie,
    counts: Counts,
    totals: Counts,
    weights: Floats,
    X: Ids,
    path: Ids,
    out: Floats,
) -> None: ...
