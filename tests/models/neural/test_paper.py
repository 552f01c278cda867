"""The paper's networks by name."""

import pytest

from nplm import NeuralLM, windows
from tests.helpers import text


@pytest.mark.parametrize(
    ("name", "n", "h", "m", "direct"),
    [
        ("MLP1", 5, 50, 60, True),
        ("MLP3", 5, 0, 60, True),
        ("MLP5", 5, 50, 30, True),
        ("MLP7", 3, 50, 30, True),
        ("MLP9", 5, 100, 30, False),
        ("AP", 6, 60, 100, True),
    ],
)
def test_the_rows_of_the_tables(name, n, h, m, direct):
    lm = NeuralLM.from_paper(name, n_words=12, max_iter=1, random_state=0)
    X, y = windows(text(60), n - 1)
    lm.fit(X, y)
    V = 12
    assert lm.n_parameters_ == V * (1 + direct * (n - 1) * m + m + h) + h * (
        1 + (n - 1) * m
    )
    # Example by example: the rate after t of them, and the weight decay of Brown.
    assert (lm.batch_size, lm.learning_rate_init, lm.learning_rate_decay) == (
        1, 1e-3, 1e-8,
    )  # fmt: skip
    assert lm.alpha == (1e-5 if name == "AP" else 1e-4)


def test_changes_come_on_top():
    lm = NeuralLM.from_paper("MLP9", batch_size=32, precision="float64")
    assert (lm.batch_size, lm.precision, lm.n_hidden) == (32, "float64", 100)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("MLP2", "MLP2 is MLP1 mixed with the interpolated trigram"),
        ("MLP10", "MLP10 is MLP9 mixed"),
        ("MLP11", "name='MLP11' is no network of the paper: choose among MLP1"),
    ],
)
def test_rows_that_are_no_network(name, message):
    with pytest.raises(ValueError, match=message):
        NeuralLM.from_paper(name)


def test_the_papers_training_is_not_the_defaults():
    # What the paper trained was not tied, and had no dropout; nor does it change when
    # the default does.
    paper, default = NeuralLM.from_paper("MLP9").get_params(), NeuralLM().get_params()
    assert {name for name in paper if paper[name] != default[name]} == {
        "order", "n_hidden", "embedding_dim", "loss", "solver", "learning_rate",
        "learning_rate_init", "alpha", "dropout", "batch_size", "max_iter",
        "n_iter_no_change", "tol",
    }  # fmt: skip
    assert (paper["tied"], paper["dropout"], paper["loss"]) == (False, 0, "exact")
    assert (paper["solver"], paper["learning_rate"]) == ("sgd", "invscaling")
