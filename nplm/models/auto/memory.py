"""The memory of a fit of `AutoLM`, and where its n-grams are."""

from __future__ import annotations

from nplm.models.auto.auto_recipe import AutoRecipe
from nplm.models.auto.texts import AutoText

# Bytes of n-grams in memory, a token, by order: at most while they are estimated, and
# afterwards. Those of order 5 were measured with words at random, of which hardly any
# n-grams repeat (16 million words of Wiki took two thirds), the ratios of the others
# with 1.5 million words; n-grams of classes take less.
NGRAM_BYTES = {5: (200, 120), 4: (140, 95), 3: (90, 65), 2: (30, 20), 1: (30, 20)}
# Those of Python, of a token's ids, and of a word.
OTHER_BYTES, ID_BYTES, WORD_BYTES = 200_000_000, 20, 1000
# Bytes of a network, a feature: of a word while the first ones are computed; then of a
# word or a piece of spelling, with the solver's state and the best epoch; and of a word
# that is composed of pieces.
FIRST_FEATURE_BYTES, FEATURE_BYTES, SPELLED_BYTES = 28, 16, 10
# The share of the limit that the buffers of n-grams on disk take; and at least.
BUFFER_SHARE, LEAST_BUFFER_BYTES = 0.25, 50_000_000
# Numbers of a parameter in a file, with the solver's state.
STATES = 3


def fit_bytes(
    text: AutoText, recipe: AutoRecipe, n_features: int, *, on_disk: bool = False
) -> int:
    """Return the memory that a fit takes, about.

    - `n_features`: number of words, and of the pieces of their spelling
    - `on_disk`: whether n-grams are estimated there
    """
    estimation, a_token = _bytes_a_token(recipe)
    after = _kept_bytes(text, recipe)
    # The last n-grams are estimated beside the others.
    estimation = (estimation - a_token) * text.n_tokens + after
    if on_disk or not after:
        estimation, after = min(estimation, LEAST_BUFFER_BYTES), 0
    network = 0
    if "network" in recipe.members:
        first = FIRST_FEATURE_BYTES * text.n_words
        later = FEATURE_BYTES * n_features
        if n_features > text.n_words:
            later += SPELLED_BYTES * text.n_words
        network = max(first, later)
        network *= recipe.network["embedding_dim"]
    return _text_bytes(text) + max(estimation, after + network)


def saved_bytes(text: AutoText, recipe: AutoRecipe, n_features: int) -> int:
    """Return the disk space of a model, and of a save of its network, about.

    N-grams take as much as they do in memory after a fit; the network's features, with
    the solver's state, are in the model and in the save.
    """
    n_bytes = _kept_bytes(text, recipe)
    if "network" in recipe.members:
        n_bytes += 2 * STATES * 4 * n_features * int(recipe.network["embedding_dim"])
    return n_bytes


def _kept_bytes(text: AutoText, recipe: AutoRecipe) -> int:
    """Return the bytes of all n-grams after they are estimated."""
    kinds = len({"ngrams", "classes"} & set(recipe.members))
    return kinds * _bytes_a_token(recipe)[1] * text.n_tokens


def _bytes_a_token(recipe: AutoRecipe) -> tuple[int, int]:
    return NGRAM_BYTES[min(recipe.ngram_order, max(NGRAM_BYTES))]


def _text_bytes(text: AutoText) -> int:
    return OTHER_BYTES + ID_BYTES * text.n_tokens + WORD_BYTES * text.n_words


def ngrams_are_on_disk(
    text: AutoText, recipe: AutoRecipe, n_features: int, memory: int | None
) -> bool:
    """Return whether a fit with n-grams in memory takes more than there is."""
    return memory is not None and fit_bytes(text, recipe, n_features) > memory


def buffer_bytes(text: AutoText, memory: int) -> int:
    """Return the memory for buffers of n-grams on disk."""
    left = min(memory - _text_bytes(text), int(BUFFER_SHARE * memory))
    return max(left, LEAST_BUFFER_BYTES)
