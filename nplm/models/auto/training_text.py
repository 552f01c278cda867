"""From documents or windows to the text of a fit of `AutoLM`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.validation import check_consistent_length

from nplm.base.checks import check_ids
from nplm.models.auto.auto_recipe import AutoRecipe
from nplm.models.auto.choosing import MIN_TOKENS
from nplm.models.auto.fitting import Budget
from nplm.models.auto.rules import MAX_TYPES, N_SUBWORDS
from nplm.models.auto.texts import AutoText, runs_of, split
from nplm.text.codec_fitting import fit_codec
from nplm.text.codecs import Codec
from nplm.text.documents import Documents
from nplm.text.lm.fitted_text import no_token
from nplm.text.lm.text_lm import TextLM
from nplm.text.subwords.subwords import Subwords
from nplm.text.vocabulary import Vocabulary

SPELLING: dict[str, Any] = {"ngrams": (3, 4), "min_words": 5}
# Held-out tokens: a share of the text, and at most so many, and so many a second.
HELD_OUT_SHARE, MAX_HELD_OUT, HELD_OUT_A_SECOND = 0.05, 30_000, 150
# Learning and splitting subwords takes as long as reading the text so many times, and
# may take at most this share of the minutes.
SUBWORD_READINGS, SUBWORD_SHARE = 6, 0.2
# Seconds of the processor that tell which share of it the fit has.
MEASURED_SECONDS = 0.5


def are_windows(X: object, y: object, sample_weight: object = None) -> bool:
    """Return whether data are windows, which have no weights, and their next words."""
    is_array = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "iu"
    if is_array and y is not None and sample_weight is not None:
        raise TypeError(
            "sample_weight is for documents: AutoLM has no weights of windows."
        )
    return is_array and y is not None


def runs_of_windows(X: Any, y: Any, n_words: int | None, suffix: str = "") -> Documents:
    """Return the runs of windows, whose names end so; raise if they are none."""
    X = check_ids(X, f"X{suffix}", ndim=2, n_words=n_words)
    y = check_ids(y, f"y{suffix}", ndim=1, n_words=n_words)
    check_consistent_length(X, y)
    if X.size == 0:
        raise ValueError(
            f"X{suffix}, of shape {X.shape}, has no window: pass at least one window "
            "of one word."
        )
    return runs_of(X, y)


def runs_of_windows_held_out(
    X_val: Any, y_val: object, n_words: int | None, n_columns: int
) -> Documents | None:
    """Return the runs of held-out windows, if there are any."""
    if (X_val is None) != (y_val is None):
        raise ValueError("X_val and y_val go together: give both, or neither.")
    if X_val is None:
        return None
    held_out = runs_of_windows(X_val, y_val, n_words, "_val")
    if np.shape(X_val)[1] != n_columns:
        raise ValueError(
            f"X_val has {np.shape(X_val)[1]} columns, and X has {n_columns}: make "
            "windows of the same width."
        )
    return held_out


def learned_codec(
    X: Iterable[object], lm: TextLM, recipe: AutoRecipe | None, budget: Budget
) -> tuple[Codec, Documents]:
    """Learn the codec of documents, and return their ids too.

    A text with too many types is split into subwords, or keeps its frequent words.

    - `recipe`: of the fit that this one repeats or resumes
    """
    parts: tuple[Any, Any] = lm.tokenizer, lm.vocabulary
    is_auto = all(isinstance(part, str) and part == "auto" for part in parts)
    units: tuple[Any, Any] = Subwords(n_words=N_SUBWORDS), "auto"
    if recipe is not None and is_auto:
        if recipe.tokens == "subwords":
            parts = units
        elif recipe.max_words is not None:
            parts = "auto", Vocabulary(max_words=recipe.max_words)
    is_open = recipe is None and is_auto
    left = budget.left if is_open else 0.0  # a repeated fit reads no clock
    options: dict[str, Any] = {"refuse_zero": isinstance(lm.boundary, str)}
    most = MAX_TYPES if is_open else None
    began = time.perf_counter(), time.process_time()
    codec, documents = fit_codec(X, *parts, lm, max_types=most, **options)
    if recipe is None and isinstance(X, Sequence):  # a stream may wait for its source
        seconds, of_process = (
            time.perf_counter() - began[0],
            time.process_time() - began[1],
        )
        if of_process > MEASURED_SECONDS:
            budget.slowness = max(1.0, seconds / of_process)
    has_all = getattr(codec.vocabulary, "max_words", None) is None
    # Subwords read the documents again.
    if not is_open or has_all or hasattr(X, "__next__"):
        return codec, documents
    takes = SUBWORD_READINGS * (left - budget.left)
    if find_spec("tokenizers") is None or takes > SUBWORD_SHARE * budget.left:
        return codec, documents
    return fit_codec(X, *units, lm, **options)


def text_of(
    documents: Documents,
    held_out: Documents | None,
    recipe: AutoRecipe,
    *,
    is_new: bool,
    n_columns: int,
    least_words: int,
    n_words: int | None,
    boundary: int | None,
) -> tuple[AutoText, AutoRecipe]:
    """Return the training and held-out text, and the recipe with its size.

    - `is_new`: whether the recipe does not say what is held out
    - `least_words`, `n_words`: number of ids at least, and as it was given
    """
    n = len(documents.ids)
    if n + len(documents.lengths) == 0:
        raise no_token(len(documents.lengths))
    wanted = recipe.held_out
    if is_new:
        # Of the text of a network before, no more than was held out from it.
        most = recipe.held_out or MAX_HELD_OUT
        wanted = min(most, round(60 * recipe.minutes * HELD_OUT_A_SECOND))
        if held_out is None:
            wanted = min(wanted, round(HELD_OUT_SHARE * n))
    if held_out is not None:
        if len(held_out.lengths) == 0:
            raise no_token(0, "X_val")
        if 0 < wanted < len(held_out.ids):
            held_out = split(held_out, wanted)[1]
    elif wanted and n >= MIN_TOKENS:
        documents, held_out = split(documents, wanted)
    else:
        wanted = 0
    parts = [documents] if held_out is None else [documents, held_out]
    largest = max(int(part.ids.max(initial=0)) for part in parts)
    n_ids = max(least_words, largest + 1)
    if n_words is not None and n_ids > n_words:
        raise ValueError(f"n_words={n_words} is too small: X has the id {n_ids - 1}.")
    text = AutoText(
        documents, held_out, n_words or n_ids, boundary, recipe.running_text, n_columns
    )
    if recipe.n_tokens not in (0, text.n_tokens):
        raise ValueError(
            f"recipe was made for a text of {recipe.n_tokens:,} tokens, and this one "
            f"has {text.n_tokens:,}: it repeats a fit of the same text. For another "
            "text, give the minutes."
        )
    return text, replace(recipe, held_out=int(wanted), n_tokens=text.n_tokens)


def spelling_of(vocabulary: Vocabulary | None) -> csr_array | None:
    """Return features of the words' spelling, if they share any."""
    if vocabulary is None:
        return None
    try:
        return vocabulary.spelling_features(**SPELLING)[0]
    except (ValueError, TypeError):  # none is shared, or the words are no text
        return None
