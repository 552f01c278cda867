"""Warnings point at the line that called nplm, at any depth of calls."""

import multiprocessing
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from nplm import ClassLM, KneserNeyLM, MixtureLM, NeuralLM, WordClasses, windows
from nplm.base.warnings import warn

X, y = windows(np.arange(60) % 3, 1)
DOCUMENTS = np.arange(60) % 3


def line_of(caught):
    """Return the one line of this file that the warnings point at."""
    assert {warning.filename for warning in caught} == {__file__}
    (number,) = {warning.lineno for warning in caught}
    with open(__file__, encoding="utf-8") as file:
        return file.read().splitlines()[number - 1]


def fits():
    lm = KneserNeyLM(n_words=3)
    folds = [(np.arange(40), np.arange(40, 59))]
    search = GridSearchCV(lm, {"interpolate": [True, False]}, cv=folds)
    mixture = MixtureLM([("lm", lm)], weights=[1.0])
    return {
        "fit": lambda: lm.fit(X, y),  # here: fit
        "fit_stream": lambda: KneserNeyLM(2).fit_stream(DOCUMENTS),  # here: fit_stream
        "plain": lambda: KneserNeyLM(2, discounts="plain").fit(X, y),  # here: plain
        "mixture": lambda: mixture.fit(X, y),  # here: mixture
        "pipeline": lambda: make_pipeline(lm).fit(X, y),  # here: pipeline
        "search": lambda: search.fit(X, y),  # here: search
        "both": lambda: make_pipeline(search).fit(X, y),  # here: both
        "joblib": lambda: Parallel()([delayed(lm.fit)(X, y)]),  # here: joblib
    }


@pytest.mark.parametrize("name", fits())
def test_discount_warning_points_at_the_caller(name):
    with pytest.warns(UserWarning, match="Kneser-Ney cannot estimate") as caught:
        fits()[name]()
    assert line_of(caught).endswith(f"# here: {name}")


def interrupt(*args):
    raise KeyboardInterrupt


@pytest.mark.parametrize("pipeline", [False, True])
@pytest.mark.parametrize(
    ("model", "data", "method"),
    [
        (
            NeuralLM(n_words=3, n_hidden=2, early_stopping=False, verbose=1),
            (X, y),
            "nplm.models.neural.fitting.epochs.Epochs._report",
        ),
        (
            WordClasses(2, random_state=0),
            (DOCUMENTS,),
            "nplm.models.classes.partition.Annealing.figure",
        ),
    ],
)
def test_warning_of_an_interrupt_points_at_the_caller(
    model, data, method, pipeline, monkeypatch
):
    monkeypatch.setattr(method, interrupt)
    name = type(model).__name__
    model = clone(model)
    if pipeline:  # which calls `fit_transform` of a step that is not the last
        model = make_pipeline(model, *["passthrough"] * hasattr(model, "transform"))
    with (
        pytest.warns(RuntimeWarning, match=f"{name}: interrupted") as caught,
        pytest.raises(KeyboardInterrupt),
    ):
        model.fit(*data)  # here
    assert line_of(caught).endswith("# here")


def test_warning_is_shown_once_per_line():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            warn("so it is", UserWarning)
        warn("so it is", UserWarning)
    assert len(caught) == 2
    assert {warning.filename for warning in caught} == {__file__}


def test_folds_with_other_numbers_warn_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for n in range(40, 59, 3):
            KneserNeyLM(2).fit_stream(DOCUMENTS[:n])  # here
        search = GridSearchCV(KneserNeyLM(), {"order": [1, 2]}, cv=3)
        search.fit(X, y)  # here
    assert len(caught) == 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(X, y)  # here
    assert len({str(warning.message) for warning in caught}) > 1
    assert line_of(caught).endswith("# here")
    with warnings.catch_warnings(), pytest.raises(UserWarning, match="Kneser-Ney"):
        for _ in range(2):
            warnings.simplefilter("error")
            KneserNeyLM().fit(X, y)


@pytest.mark.slow
def test_warnings_of_workers_name_them(capfd):
    """No line of the user's is on the stack of a worker."""
    lm = KneserNeyLM(n_words=3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with ThreadPoolExecutor(1, thread_name_prefix="own") as pool:
            pool.submit(lm.fit, X, y).result()
        Parallel(n_jobs=2, prefer="threads")(delayed(lm.fit)(X, y) for _ in range(2))
    names = [warning.filename for warning in caught]
    assert len(names) == 3
    assert names[0] == "<worker own_0>"
    assert all(name.startswith("<worker Thread-") for name in names[1:])
    Parallel(n_jobs=2)(delayed(lm.fit)(X, y) for _ in range(2))
    shown = capfd.readouterr().err
    assert "<worker LokyProcess-" in shown
    assert "process.py" not in shown
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        pool.apply(lm.fit, (X, y))
    assert "<worker SpawnPoolWorker-" in capfd.readouterr().err


def test_fit_warns_once_about_all_orders_with_a_remedy():
    with pytest.warns(UserWarning, match="of the 1-grams") as caught:
        KneserNeyLM().fit(*windows(DOCUMENTS, 3))
    (warning,) = caught
    message = str(warning.message)
    assert all(f"the {k}-grams (" in message for k in (1, 2, 3, 4))
    remedy = "discount_fallback=(0.5, 1.0, 1.5)"
    assert message.endswith(f"without a warning, set {remedy}.")
    # The remedy silences the warning.
    KneserNeyLM(discount_fallback=(0.5, 1, 1.5)).fit(*windows(DOCUMENTS, 3))


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_search_with_discount_fallback_does_not_warn(n_jobs, capfd):
    lm = KneserNeyLM(n_words=3, discount_fallback=(0.5, 1, 1.5))
    folds = [(np.arange(40), np.arange(40, 59))]
    grid = {"interpolate": [True, False]}
    GridSearchCV(lm, grid, cv=folds, n_jobs=n_jobs).fit(X, y)
    assert "Kneser-Ney" not in capfd.readouterr().err


def test_class_lm_warns_only_about_longer_ngrams():
    """Single classes are few, and none is rare."""
    ids = np.random.default_rng(0).zipf(1.5, 400) % 12
    labels = np.arange(12) % 4
    lm = ClassLM(n_words=12, classes=labels)
    with pytest.warns(UserWarning, match="Kneser-Ney cannot estimate") as caught:
        lm.fit(*windows(ids, 2))  # here
    assert line_of(caught).endswith("# here")
    (message,) = {str(warning.message) for warning in caught}
    assert "the 1-grams" not in message
    assert "the 2-grams (" in message
    lm.set_params(discount_fallback=(0.4, 1, 1.5)).fit(*windows(ids, 2))
    assert lm.class_model_.discounts_[0].tolist() == [0.4, 1, 1.5]
    with pytest.raises(ValueError, match="discount_fallback must be None"):
        lm.set_params(discount_fallback=2).fit(*windows(ids, 2))
