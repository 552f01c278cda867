"""Every item of the fitted state of every estimator is checked when it is loaded."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import nplm
from nplm.base.fitted import INVALID_VALUE_ERRORS, restore, saved, schema
from tests.helpers.saving import OTHERS

WINDOWED = [
    "adam, distant", "tied, blocks, adam", "of parts", "classes", "tree", "nce",
    "seed of its own", "energy, adam", "Kneser-Ney, cut", "unigrams", "trigram",
    "class model", "uniform", "cache", "neural cache", "mixture by context",
    "short-list",
]  # fmt: skip


@pytest.fixture(scope="module")
def models(fitted, others):
    return {n: fitted[n] for n in WINDOWED} | others


# Items that files of earlier versions lack.
MAY_BE_ABSENT = {"n_branches", "n_memory"}
# Whole numbers without a bound.
UNBOUNDED = {"n_iter", "n_noise", "n_seen", "n_tokens"}
# Numbers of either sign.
SIGNED = {
    "arrays", "classes", "length_weight", "metric_value", "moments",
    "mutual_information", "offset", "val_loss",
}  # fmt: skip
# What loads, with the reason.
ACCEPTED = {
    "val_loss, NaN",  # without held-out windows
    "labels, shorter",  # classes of fewer words
    "tokenizer, None", "vocabulary, None",  # a model of ids
    "tokenizer, unfitted",  # a Tokenizer needs no fit
    "classes, list",  # as labels that are text
}  # fmt: skip


def changed(array, value):
    """Return an array whose first number is another."""
    array = array.copy()
    array.reshape(-1)[0] = value
    return array


def damaged(name, value, is_signed=False):
    """Yield what the item of a file must not be, each with a description."""
    is_signed = is_signed or name in SIGNED
    if isinstance(value, np.ndarray):
        yield f"{name}, list", value.tolist()
        yield f"{name}, more dimensions", value[None]
        if value.size and value.dtype.kind in "fi":
            yield f"{name}, type", value.astype(np.complex64)
            yield f"{name}, shorter", value[:-1]
        if value.size and value.dtype.kind == "f":
            yield f"{name}, NaN", changed(value, np.nan)
        if value.size and value.dtype.kind in "fi" and not is_signed:
            yield f"{name}, negative", changed(value, -9)
    elif isinstance(value, dict):
        yield f"{name}, text", "text"
        if name in ("recipe", "scores"):  # a recipe has a test of its own
            return
        yield f"{name}, extra", value | {"extra": 1}
        for key, item in value.items():
            for what, damage in damaged(key, item, is_signed):
                yield f"{name}.{what}", value | {key: damage}
            if key not in MAY_BE_ABSENT:
                yield f"{name}.{key}, missing", without(value, key)
    elif isinstance(value, list):
        yield f"{name}, text", "text"
        yield f"{name}, set inside", [*value, {1, 2}]
    elif isinstance(value, BaseEstimator):
        yield f"{name}, None", None
        yield f"{name}, unfitted", clone(value)
    elif isinstance(value, bool):
        yield f"{name}, number", 1
    elif isinstance(value, (int, float)):
        yield f"{name}, text", "text"
        yield f"{name}, boolean", True
        yield f"{name}, NaN", float("nan")
        if not is_signed:
            yield f"{name}, negative", -1
        if isinstance(value, int) and name not in UNBOUNDED:
            yield f"{name}, large", 2**70
    else:
        yield f"{name}, list", [1]


def without(items, name):
    return {key: value for key, value in items.items() if key != name}


def refused(model, items):
    """Return whether loading refuses the items."""
    try:
        with np.errstate(over="ignore"):
            restore(clone(model), items)
    except INVALID_VALUE_ERRORS as error:
        assert str(error)
        return True
    return False


ALL = [*WINDOWED, *OTHERS]


def test_every_kind_of_estimator_is_here(models):
    assert list(models) == ALL
    public = (getattr(nplm, name) for name in nplm.__all__)
    kinds = {kind for kind in public if getattr(kind, "can_be_saved", False)}
    assert {type(model) for model in models.values()} == kinds


@pytest.mark.parametrize("name", ALL)
def test_damaged_items_are_refused(models, name):
    model = models[name]
    items = saved(model)
    restore(clone(model), items)
    changes = {"extra": items | {"extra": 1}}
    for key, value in items.items():
        changes |= {what: items | {key: x} for what, x in damaged(key, value)}
        if not schema(type(model))[key].is_optional:
            changes[f"{key}, missing"] = without(items, key)
    accepted = {what for what, change in changes.items() if not refused(model, change)}
    assert accepted <= ACCEPTED


CONTRADICTIONS = [
    ("frozen", "order", 2),  # members would get fewer columns than they were fitted on
    ("short-list", "order", 2),
    ("uniform", "order", 9),
    ("memory", "architecture.n_memory", 1),
    ("memory", "architecture.n_memory", 9.0),
    *(("tree", "architecture.n_branches", n) for n in (0, 1, 2048, 8.0)),
    ("Kneser-Ney, cut", "trie.prob", lambda prob: prob * np.float32(0.9)),
    ("adam, distant", "arrays.d", lambda d: np.full_like(d, 3e38)),
    ("adam, distant", "arrays.C", np.transpose),
    ("tied, blocks, adam", "arrays.H1", np.transpose),
    ("memory", "arrays.V", lambda V: np.full_like(V, 3e38)),
    ("mixture by context", "names", ["a", "a", "a"]),
    ("classifier of text", "classes", ["b", "a"]),
    ("text", "boundary", 99),
    ("vocabulary", "words", ["a", "a", "b"]),
    ("vocabulary", "boundary_id", 99),
    ("quantized", "trie.bits", 2),
]


@pytest.mark.parametrize(("name", "path", "value"), CONTRADICTIONS)
def test_items_that_contradict_others_are_refused(models, fitted, name, path, value):
    model, (*outer, key) = models.get(name) or fitted[name], path.split(".")
    items = saved(model)
    inner = items[outer[0]] if outer else items
    change = inner | {key: value(inner[key]) if callable(value) else value}
    assert refused(model, items | {outer[0]: change} if outer else change)
