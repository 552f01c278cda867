"""What "auto" decides: what the other parameters and the words allow."""

import re

import numpy as np
import pytest

from nplm import NeuralLM, load, save, windows
from nplm.models.neural.conflicts import check_shared
from tests.helpers import text

N_WORDS = 30
SMALL = dict(
    loss="auto", n_words=N_WORDS, n_hidden=4, embedding_dim=3, max_iter=1,
    random_state=0,
)  # fmt: skip
FIXED = dict(embeddings=np.ones((N_WORDS, 3)), train_embeddings=False)


@pytest.fixture(scope="module")
def data():
    return windows(text(300, n_words=N_WORDS), 2)


@pytest.mark.parametrize(
    ("settings", "loss"),
    [
        (dict(), "exact"),
        (dict(n_samples=14), "importance"),  # 30 words are more than twice 14
        (dict(n_samples=15), "exact"),
        (dict(tied=True, n_samples=14), "importance"),
        (dict(n_samples=14, n_jobs=2, parallel="async"), "importance"),
        (dict(n_jobs=2, parallel="async"), "exact"),
        (dict(tied=True, n_jobs=2, parallel="async"), "importance"),
        (dict(n_samples=14, output="classes"), "exact"),
        (dict(n_samples=14, output="tree"), "exact"),
        (dict(n_samples=14, **FIXED), "importance"),
    ],
    ids=str,
)
def test_it_is_decided_by_what_can_be(data, tmp_path, settings, loss):
    lm = NeuralLM(**SMALL | settings).fit(*data)
    assert ("effective_samples" in lm.history_) == (loss == "importance")
    # It is the network of who says so himself, goes on, and comes back from a file.
    if lm.parallel == "rows":
        asked = SMALL | settings | dict(loss=loss)
        said = NeuralLM(**asked).fit(*data)
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
def test_what_threads_train_on_is_the_same_on_any_machine(
    data, monkeypatch, n_cores, n_jobs
):
    monkeypatch.setattr(
        "nplm.training.parallel.threads.effective_n_jobs",
        lambda n: n if n > 0 else n_cores,
    )
    lm = NeuralLM(**SMALL | dict(n_samples=14, n_jobs=n_jobs))
    with pytest.warns(UserWarning, match=f"n_jobs={n_jobs} .*'rows' .* all 30 words"):
        lm.fit(*data)
    assert "effective_samples" not in lm.history_
    for settled in (dict(loss="exact"), dict(parallel="async"), dict(n_samples=15)):
        lm.set_params(**settled).fit(*data)  # without a word
        lm.set_params(loss="auto", parallel="rows", n_samples=14)


@pytest.mark.parametrize("output", ["softmax", "classes"])
def test_processes_are_told_what_to_ask_for(data, output):
    lm = NeuralLM(**SMALL, n_samples=3, output=output).fit(*data)
    with pytest.raises(ValueError, match="loss='auto': fit it in") as told:
        check_shared(lm)
    [asked] = re.findall(r"set_params\((.*?)\)", str(told.value))
    check_shared(eval(f"lm.set_params({asked})").fit(*data))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (dict(loss="nce", n_jobs=2), "and loss='nce' trains the rows of few words"),
        (dict(output="tree", n_jobs=2), "and output='tree' has other units"),
        (dict(tied=True, loss="exact", parallel="async"), "tied=True with parallel"),
        (dict(loss="nce", output="tree"), "output='tree' has no such softmax"),
        (dict(validation_fraction=0.999), "early_stopping='auto' holds out 298 of 298"),
    ],
)
def test_what_stands_in_the_way_is_named(data, settings, message):
    with pytest.raises(ValueError, match=message):
        NeuralLM(**SMALL | settings).fit(*data)


def test_going_on_as_another_network_is_refused(data):
    lm = NeuralLM(**SMALL).fit(*data)
    with pytest.raises(ValueError, match="tied=True is not that of the network"):
        lm.set_params(tied=True).partial_fit(*data)
    lm.set_params(tied=False).partial_fit(*data)
