from nplm.base.array_types import Floats, Ids

def cache_prob(
    X: Ids,
    y: Ids,
    boundary: int,
    weights: Floats,
    unigram: Floats,
    prior: float,
    bigram_prior: float,
    out: Floats,
) -> None: ...
def cache_distribution(
    X: Ids,
    boundary: int,
    weights: Floats,
    unigram: Floats,
    prior: float,
    bigram_prior: float,
    out: Floats,
) -> None: ...
