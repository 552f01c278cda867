"""The paper's equations by the attributes of networks, and its networks by name."""

import numpy as np
import pytest

from nplm import NeuralLM, Softmax, windows
from tests.helpers import paper_lm, text

V, M = 12, 4
SETTINGS = dict(
    n_words=V, n_hidden=6, embedding_dim=M, max_iter=2, precision="float64", alpha=0,
    learning_rate_init=0.05, random_state=0,
)  # fmt: skip
X, Y = windows(text(400, n_words=V), 3)
NETWORKS = {
    "softmax": dict(),
    "direct": dict(direct=True),
    "no hidden units": dict(direct=True, n_hidden=0),
    "blocks": dict(n_hidden=(6, 9, 5)),
    "tied": dict(tied=True),
    "tied, direct": dict(tied=True, direct=True),
    "tied, blocks": dict(tied=True, n_hidden=(6, 9)),
    "composed": dict(word_features=np.eye(V)[:, :5]),
    "tied, composed": dict(tied=True, word_features=np.eye(V)[:, :5]),
}


def activations(lm, x):
    """Return the hidden units of equation (1), through residual blocks."""
    a = np.tanh(lm.d_ + x @ lm.H_.T)
    for block in lm.blocks_:
        centred = a - a.mean(axis=1, keepdims=True)
        norm = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
        added = np.maximum(block.d + norm @ block.H.T, 0) @ block.U.T
        assert np.abs(added).max() > 0.01  # it has learned something
        a = a + added
    return a


@pytest.mark.parametrize("name", NETWORKS)
def test_probabilities_are_equation_1_of_the_attributes(name):
    lm = paper_lm(**SETTINGS | NETWORKS[name]).fit(X, Y)
    x = lm.C_[X[:, ::-1]].reshape(len(X), -1)
    a = hidden = activations(lm, x)
    is_direct = NETWORKS[name].get("direct", False)
    if lm.R_ is not None:  # tied
        assert lm.U_ is lm.W_ is None
        hidden = (np.hstack([a, x]) if is_direct else a) @ lm.R_.T
        logits = lm.b_ + hidden @ lm.C_.T
    else:
        assert (lm.W_ is not None) == is_direct
        logits = lm.b_ + a @ lm.U_.T + (x @ lm.W_.T if is_direct else 0)
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(lm.predict_proba(X), p, rtol=1e-11)
    if lm.n_hidden:
        np.testing.assert_allclose(lm.hidden(X), hidden, atol=1e-12)
    scored = lm.candidate_log_prob(X, [7, 0, 7], normalize=False)
    np.testing.assert_allclose(scored, logits[:, [7, 0, 7]], rtol=1e-11)
    assert lm.C_.shape == (V, M)
    assert lm.H_.shape == (len(lm.d_), 3 * M)
    single = (lm.C_, lm.H_, lm.d_, lm.U_, lm.W_, lm.b_, lm.R_, lm.G_)
    arrays = [
        *(a for a in single if a is not None),
        *(a for b in lm.blocks_ for a in b),
    ]
    assert lm.n_parameters_ == sum(array.size for array in arrays)


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
