"""Parameters that are NumPy's numbers, as a grid made by np.arange has them."""

import numbers
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone

from nplm import (
    CacheLM,
    ClassLM,
    InterpolatedTrigram,
    KneserNeyLM,
    MixtureLM,
    NeuralCacheLM,
    ShortlistLM,
    TextLM,
    Tokenizer,
    UniformLM,
    Vocabulary,
    WordClasses,
    contiguous_split,
    windows,
)
from tests.helpers import energy_lm, paper_lm

# With their whole parameters within a byte; there are more windows than fit in one.
N_WORDS = 100
IDS = np.random.default_rng(0).zipf(1.3, 300) % N_WORDS
X, Y = windows(IDS, 3)
TEXT = " ".join(f"w{i}" for i in IDS)
ESTIMATORS = {
    "NeuralLM": paper_lm(
        3, n_words=N_WORDS, n_hidden=100, embedding_dim=100, direct=True, max_iter=2,
        batch_size=2, early_stopping=True, n_iter_no_change=1, n_jobs=1, random_state=0,
        verbose=0, solver="adam", learning_rate_init=1e-3, epsilon=1e-3,
    ),
    "EnergyLM": energy_lm(
        3, n_words=N_WORDS, n_hidden=30, embedding_dim=20, max_iter=2, batch_size=2,
        early_stopping=True, n_iter_no_change=1, n_jobs=1, random_state=0, verbose=0,
    ),
    "InterpolatedTrigram": InterpolatedTrigram(3, n_words=N_WORDS),
    "KneserNeyLM": KneserNeyLM(3, n_words=N_WORDS, boundary=7),
    "ClassLM": ClassLM(
        3, n_words=N_WORDS, n_classes=30, uniform_weight=0.1, boundary=7, random_state=0
    ),
    "WordClasses": WordClasses(
        30, n_words=N_WORDS, boundary=7, random_state=0, max_iter=3
    ),
    "UniformLM": UniformLM(n_words=N_WORDS),
    "CacheLM": CacheLM(2, n_words=N_WORDS, boundary=7, half_life=100.0),
    "NeuralCacheLM": NeuralCacheLM(
        paper_lm(2, n_hidden=2, embedding_dim=2, max_iter=1, random_state=0),
        length=2, boundary=7, n_words=N_WORDS,
    ),
    "MixtureLM": MixtureLM(
        [("one", UniformLM()), ("two", InterpolatedTrigram(2))], n_words=N_WORDS,
        max_iter=100,
    ),
    "ShortlistLM": ShortlistLM(
        paper_lm(n_hidden=2, embedding_dim=2, max_iter=1, random_state=0),
        InterpolatedTrigram(3), n_words=N_WORDS, n_shortlist=20,
    ),
    "TextLM": TextLM(InterpolatedTrigram(3), 2, boundary=0),
    "Vocabulary": Vocabulary(2, 50),
}  # fmt: skip


def numeric(kind):
    for name, estimator in ESTIMATORS.items():
        for parameter, value in estimator.get_params().items():
            is_whole = isinstance(value, numbers.Integral)
            if not isinstance(value, numbers.Real) or isinstance(value, bool):
                continue
            if is_whole == (kind is numbers.Integral) and abs(value) < 128:
                yield pytest.param(name, parameter, id=f"{name}({parameter})")


def fitted(estimator):
    """What it learned, but for the time that it took."""
    if isinstance(estimator, Vocabulary):
        estimator.fit([TEXT.split()])
        return {"words": list(estimator.words_)}
    if isinstance(estimator, WordClasses):
        estimator.fit(IDS)
    elif isinstance(estimator, TextLM):
        return {"score": estimator.fit([IDS, IDS]).score([IDS])}
    else:
        estimator.fit(X, Y, X_val=X[:100], y_val=Y[:100])
        return {"proba": estimator.predict_proba(X)}
    return {"classes": estimator.labels_}


@cache
def fitted_with(name, **parameters):
    return fitted(clone(ESTIMATORS[name]).set_params(**parameters))


def check_same(name, parameter, value):
    # As what it is to Python: a float16 is not quite the number it was made of.
    plain = value.item()
    changed = plain != ESTIMATORS[name].get_params()[parameter]
    want = fitted_with(name, **({parameter: plain} if changed else {}))
    given = clone(ESTIMATORS[name]).set_params(**{parameter: value})
    for key, got in fitted(given).items():
        np.testing.assert_array_equal(got, want[key])


@pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate:UserWarning")
@pytest.mark.filterwarnings("ignore:.*the held-out loss was still falling")
@pytest.mark.parametrize("kind", [np.int8, np.uint8])
@pytest.mark.parametrize(("name", "parameter"), list(numeric(numbers.Integral)))
def test_a_whole_number_of_numpys(name, parameter, kind):
    check_same(name, parameter, kind(ESTIMATORS[name].get_params()[parameter]))


@pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate:UserWarning")
@pytest.mark.filterwarnings("ignore:.*the held-out loss was still falling")
@pytest.mark.parametrize(("name", "parameter"), list(numeric(numbers.Real)))
def test_a_float_of_numpys(name, parameter):
    check_same(name, parameter, np.float16(ESTIMATORS[name].get_params()[parameter]))


@pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate:UserWarning")
@pytest.mark.filterwarnings("ignore:.*the held-out loss was still falling")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_choices_of_numpys(name):
    """As a search over an array of them sets them."""
    changes = {
        parameter: kind(value)
        for parameter, value in ESTIMATORS[name].get_params(deep=False).items()
        for own, kind in ((bool, np.bool_), (str, np.str_))
        if isinstance(value, own)
    }
    given = fitted(clone(ESTIMATORS[name]).set_params(**changes))
    for key, want in fitted_with(name).items():
        np.testing.assert_array_equal(given[key], want)


# Of these more is asked than a type and a range: the estimators' own tests ask it.
BY_HAND = {"classes", "estimator", "estimators", "min_counts", "weights"}


@pytest.mark.parametrize("name", [*ESTIMATORS, "Tokenizer"])
def test_every_parameter_is_checked(name):
    model = ESTIMATORS.get(name, Tokenizer())
    for parameter in model.get_params(deep=False).keys() - BY_HAND:
        bad = clone(model).set_params(**{parameter: nothing_that_fits})
        said = rf"'{parameter}' parameter of {name} must be .* Got <function nothing"
        with pytest.raises(ValueError, match=said):
            bad.transform(["a"]) if name == "Tokenizer" else fitted(bad)


def nothing_that_fits():
    pass


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_numbers_that_functions_take(kind):
    for got, want in zip(windows(IDS, kind(4)), windows(IDS, 4), strict=True):
        np.testing.assert_array_equal(got, want)
    halves = contiguous_split(np.arange(10**6), valid=np.float16(0.5), test=kind(3))
    assert [len(part) for part in halves] == [499_997, 500_000, 3]
    lm = TextLM(UniformLM(), kind(2), boundary=0).fit([IDS])
    drawn = [lm.generate(IDS, max_words=n, random_state=0) for n in (kind(100), 100)]
    np.testing.assert_array_equal(*drawn)
