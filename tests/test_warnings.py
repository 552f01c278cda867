"""Warnings point at the line that called nplm, however deep the fit is called."""

import warnings

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from nplm import KneserNeyLM, MixtureLM, NeuralLM, WordClasses, windows
from nplm._warnings import warn

X, y = windows(np.arange(60) % 3, 1)
DOCUMENTS = np.arange(60) % 3


def line_of(caught):
    """The one line of this file that warnings point at."""
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
def test_discounts(name):
    with pytest.warns(UserWarning, match="Kneser-Ney cannot estimate") as caught:
        fits()[name]()
    assert line_of(caught).endswith(f"# here: {name}")


def interrupt(*args):
    raise KeyboardInterrupt


@pytest.mark.parametrize("pipeline", [False, True])
def test_an_interrupted_network(pipeline, monkeypatch):
    lm = NeuralLM(n_words=3, n_hidden=2, early_stopping=False, verbose=1)
    monkeypatch.setattr("nplm.neural.training.epochs.Epochs._report", interrupt)
    model = make_pipeline(lm) if pipeline else lm
    with (
        pytest.warns(RuntimeWarning, match="NeuralLM: interrupted") as caught,
        pytest.raises(KeyboardInterrupt),
    ):
        model.fit(X, y)  # here
    assert line_of(caught).endswith("# here")


@pytest.mark.parametrize("pipeline", [False, True])
def test_interrupted_classes(pipeline, monkeypatch):
    classes = WordClasses(2, random_state=0)
    monkeypatch.setattr("nplm.classes.annealing.Annealing.figure", interrupt)
    model = make_pipeline(classes, "passthrough") if pipeline else classes
    with (
        pytest.warns(RuntimeWarning, match="WordClasses: interrupted") as caught,
        pytest.raises(KeyboardInterrupt),
    ):
        model.fit(DOCUMENTS)  # here
    assert line_of(caught).endswith("# here")


def test_a_warning_is_shown_once_a_line():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            warn("so it is", UserWarning)
        warn("so it is", UserWarning)
    assert len(caught) == 2
    assert {warning.filename for warning in caught} == {__file__}


def test_a_fit_warns_once_of_all_its_orders():
    with pytest.warns(UserWarning, match="of the 1-grams") as caught:
        KneserNeyLM().fit(*windows(DOCUMENTS, 3))
    (warning,) = caught
    assert all(f"of the {k}-grams" in str(warning.message) for k in (1, 2, 3, 4))
