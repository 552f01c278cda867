"""The paper's networks by name."""

import pytest

from nplm import NeuralLM, Softmax, windows
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
def test_from_paper_has_the_rows_of_the_tables(name, n, h, m, direct):
    lm = NeuralLM.from_paper(name, n_words=12, max_iter=1, random_state=0)
    X, y = windows(text(60), n - 1)
    lm.fit(X, y)
    V = 12
    assert lm.n_parameters_ == V * (1 + direct * (n - 1) * m + m + h) + h * (
        1 + (n - 1) * m
    )
    # Example by example: the rate after t of them, and the weight decay of Brown.
    solver = lm.solver
    assert (lm.batch_size, lm.learning_rate_init, solver.learning_rate_decay) == (
        1, 1e-3, 1e-8,
    )  # fmt: skip
    assert solver.learning_rate == "invscaling"
    assert lm.alpha == (1e-5 if name == "AP" else 1e-4)


def test_changes_override_the_paper():
    lm = NeuralLM.from_paper("MLP9", batch_size=32, precision="float64")
    assert (lm.batch_size, lm.precision, lm.n_hidden) == (32, "float64", 100)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("MLP2", "MLP2 is a mixture of MLP1 and the interpolated"),
        ("MLP10", "MLP10 is a mixture of MLP9"),
        ("MLP11", "name='MLP11' is not a network of the paper; choose among MLP1"),
    ],
)
def test_unknown_rows_are_refused(name, message):
    with pytest.raises(ValueError, match=message):
        NeuralLM.from_paper(name)


def test_from_paper_does_not_use_the_defaults():
    # What the paper trained was not tied, and had no dropout; nor does it change when
    # the default does.
    paper, default = NeuralLM.from_paper("MLP9"), NeuralLM(output=Softmax())
    assert {
        name
        for name, value in default.get_params(deep=False).items()
        if repr(getattr(paper, name)) != repr(value)  # options print their parameters
    } == {
        "order", "n_hidden", "embedding_dim", "loss", "solver", "learning_rate_init",
        "alpha", "dropout", "batch_size", "max_iter", "n_iter_no_change", "tol",
        "precision",
    }  # fmt: skip
    assert (paper.dropout, paper.loss) == (0, "exact")
    assert repr(paper.solver) == "SGD(learning_rate='invscaling')"
