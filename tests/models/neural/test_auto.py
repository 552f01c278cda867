"""What "auto" decides: what the other parameters and the words allow."""

import re

import numpy as np
import pytest
from sklearn.base import clone

from nplm import Exact, Importance, Softmax, available_tiers, load, save, windows
from nplm.models.neural import recipe
from tests.helpers import check_shared, neural_lm, text

MANY, FEW = 2049, 2048  # more than twice as many as noise samples, and just not
SMALL = dict(
    loss="auto", n_words=FEW, n_hidden=4, embedding_dim=3, max_iter=1,
    random_state=0,
)  # fmt: skip
FIXED = dict(embeddings=np.ones((MANY, 3)), trained=False)


@pytest.fixture(scope="module")
def data():
    return windows(text(300, n_words=30), 2)


@pytest.mark.parametrize(
    ("settings", "loss"),
    [
        (dict(), "exact"),
        (dict(n_words=MANY), "importance"),
        (dict(tied=True, n_words=MANY), "importance"),
        (dict(n_words=MANY, n_jobs=2, parallel="async"), "importance"),
        (dict(n_jobs=2, parallel="async"), "exact"),
        (dict(tied=True, n_jobs=2, parallel="async"), "importance"),
        (dict(n_words=MANY, output="classes"), "exact"),
        (dict(n_words=MANY, output="tree", tree="huffman"), "exact"),
        (dict(n_words=MANY, **FIXED), "importance"),
    ],
    ids=str,
)
def test_auto_loss_follows_the_other_parameters(data, tmp_path, settings, loss):
    lm = neural_lm(**SMALL | settings).fit(*data)
    assert ("effective_samples" in lm.history_) == (loss == "importance")
    assert isinstance(lm.loss_, Importance if loss == "importance" else Exact)
    # It is the network of who says so himself, goes on, and comes back from a file.
    if lm.parallel == "sync":
        said = clone(lm).set_params(loss=loss).fit(*data)
        np.testing.assert_array_equal(lm.b_, said.b_)
    lm.partial_fit(*data)
    save(lm, tmp_path / "lm")
    again = load(tmp_path / "lm")
    np.testing.assert_array_equal(
        again.predict_proba(data[0]), lm.predict_proba(data[0])
    )
    again.partial_fit(*data)


@pytest.mark.parametrize("n_jobs", [2, -1])
@pytest.mark.parametrize("n_cores", [1, 2])
def test_auto_loss_does_not_depend_on_threads(data, monkeypatch, n_cores, n_jobs):
    monkeypatch.setattr("joblib._parallel_backends.cpu_count", lambda: n_cores)
    lm = neural_lm(**SMALL | dict(n_words=MANY, n_jobs=n_jobs)).fit(*data)
    assert "effective_samples" in lm.history_


@pytest.mark.parametrize("output", ["softmax", "classes"])
def test_error_for_processes_names_parameters_to_set(data, output):
    lm = neural_lm(**SMALL | dict(n_words=MANY, output=output)).fit(*data)
    stands = dict(softmax="loss='importance'", classes="output='classes'")[output]
    with pytest.raises(ValueError, match=f"has {stands}; set keep=") as told:
        check_shared(lm, MANY)
    [asked] = re.findall(r"set_params\((.*?)\)", str(told.value))
    check_shared(eval(f"lm.set_params({asked})").fit(*data), MANY)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (dict(tied=True, loss="exact", parallel="async"), "tied=True with parallel"),
        (dict(loss="nce", output="tree"), "output='tree' has no such softmax"),
        (dict(validation_fraction=0.999), "early_stopping='auto' holds out 298 of 298"),
    ],
)
def test_error_names_the_incompatible_parameter(data, settings, message):
    with pytest.raises(ValueError, match=message):
        neural_lm(**SMALL | settings).fit(*data)


def test_a_fit_of_very_many_words_advises_on_the_output_unless_it_was_chosen(data):
    lm = neural_lm(**SMALL | dict(n_words=100_001))
    with pytest.warns(UserWarning, match='output="classes" is tens of times as fast'):
        lm.fit(*data)
    lm.partial_fit(*data)
    clone(lm).set_params(output=Softmax()).fit(*data)
    clone(lm).set_params(loss="importance").fit(*data)
    clone(lm).set_params(n_words=100_000).fit(*data)


WIDE = dict(
    precision="auto",
    n_words=30,
    n_hidden=64,
    embedding_dim=4,
    batch_size=16,
    max_iter=1,
)


@pytest.mark.parametrize(
    ("settings", "rounds"),
    [
        (dict(), True),
        (dict(n_hidden=63), False),
        (dict(batch_size=15), False),
        (dict(tied=True), False),
        (dict(tied=True, embedding_dim=64, n_hidden=5), True),
        (dict(n_hidden=56, direct=True), True),  # and two words of 4 features
        (dict(n_hidden=(64, 3)), True),
        (dict(loss="importance", n_noise=8), True),
        (dict(output="classes"), False),
        (dict(output="tree"), False),
    ],
    ids=str,
)
@pytest.mark.parametrize("is_here", [False, True])
def test_auto_precision_follows_sizes_and_kernels(
    data, monkeypatch, settings, rounds, is_here
):
    if is_here:
        if available_tiers("bfloat16") == ["plain"]:
            pytest.skip("no instructions for bfloat16")
        monkeypatch.delenv("NPLM_TIER", raising=False)
    else:
        monkeypatch.setenv("NPLM_TIER", "plain")
    expected = "bfloat16" if rounds and is_here else "float32"
    lm = neural_lm(**WIDE | settings, random_state=0).fit(*data)
    assert lm.precision_ == expected
    named = clone(lm).set_params(precision=expected).fit(*data)
    np.testing.assert_array_equal(named.b_, lm.b_)
    np.testing.assert_array_equal(named.log_prob(*data), lm.log_prob(*data))


def test_auto_precision_is_that_of_the_training(data, monkeypatch, tmp_path):
    monkeypatch.setattr(recipe, "multiplies_bfloat16", lambda: True)
    monkeypatch.setenv("NPLM_TIER", "plain")
    for trained, file in (("bfloat16", "rounded"), ("float32", "whole")):
        lm = neural_lm(**WIDE | dict(precision=trained), random_state=0).fit(*data)
        scores = lm.log_prob(*data)
        save(lm.set_params(precision="auto"), tmp_path / file)
        again = load(tmp_path / file)
        assert again.precision_ == trained
        np.testing.assert_array_equal(again.log_prob(*data), scores)
        again.partial_fit(*data)  # goes on in it
        assert again.precision_ == trained
    # Elsewhere its parameters are those of float32.
    monkeypatch.setattr(recipe, "multiplies_bfloat16", lambda: False)
    lm = load(tmp_path / "rounded")
    scores = lm.log_prob(*data)
    np.testing.assert_array_equal(
        scores, lm.set_params(precision="float32").log_prob(*data)
    )
