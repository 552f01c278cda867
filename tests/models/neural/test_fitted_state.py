"""What a fit leaves, and what changes it: no aliases, nothing half done."""

import pickle

import numpy as np
import pytest
from sklearn.utils import check_random_state

import nplm
from nplm import NCE, CheckpointError, Classes, Features, Importance, Softmax, Tree
from nplm.base.fitted import restore, saved
from nplm.base.word_trees import Joined
from tests.helpers import energy_lm, neural_lm, text

N_WORDS = 12
X, Y = nplm.windows(text(300, n_words=N_WORDS), 2)
SMALL = dict(n_words=N_WORDS, n_hidden=4, embedding_dim=3, max_iter=2, random_state=0)


def test_added_words_are_saved_with_a_proposal_of_the_others(tmp_path):
    loss = Importance(5, proposal=np.ones(N_WORDS))
    lm = energy_lm(**SMALL).set_params(loss=loss).fit(X, Y)
    lm.add_words([[1, 2]], [N_WORDS])
    nplm.save(lm, tmp_path / "model")
    loaded = nplm.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.log_prob(X, Y), lm.log_prob(X, Y))
    assert loaded.loss_.proposal.tolist() == [1.0] * N_WORDS


def test_parameters_set_during_a_fit_stay():
    lm = neural_lm(**SMALL)
    lm.fit(X, Y, progress=lambda *_: lm.set_params(n_jobs=2, solver="sgd"))
    assert (lm.n_jobs, lm.solver) == (2, "sgd")
    assert lm.n_iter_ == 2


def test_options_are_not_shared_by_set_params():
    solver = nplm.Adam()
    lm = neural_lm(**SMALL).set_params(solver=solver)
    lm.set_params(solver__beta_1=0.5)
    assert (lm.solver.beta_1, solver.beta_1) == (0.5, 0.9)


@pytest.mark.parametrize("option", ["classes", "tree", "matrix", "proposal"])
def test_fitted_model_keeps_copies_of_given_arrays(option):
    rng = check_random_state(0)
    given = {
        "classes": np.arange(N_WORDS, dtype=np.int32) % 3,
        "matrix": np.asarray(rng.randint(0, 2, (N_WORDS, 4)), float),
        "proposal": np.ones(N_WORDS),
    }
    lm = neural_lm(**SMALL)
    if option == "tree":
        given["tree"] = neural_lm(**SMALL).set_params(output="tree").fit(X, Y).tree_
        given["tree"] = given["tree"].copy()
    array = given[option]
    lm.set_params(**{
        "classes": dict(output=Classes(array)),
        "tree": dict(output=Tree(array)),
        "matrix": dict(features=Features(word_features=array)),
        "proposal": dict(loss=NCE(5, proposal=array)),
    }[option])  # fmt: skip
    lm.fit(X, Y)
    again = pickle.loads(pickle.dumps(lm))
    array[:] = 0
    np.testing.assert_array_equal(lm.log_prob(X, Y), again.log_prob(X, Y))
    if option in ("classes", "tree"):
        fitted = lm.word_classes_ if option == "classes" else lm.tree_
        with pytest.raises(ValueError, match="read-only"):
            fitted[0] = 1
    if option == "proposal":
        assert lm.loss_.proposal.all()


def test_next_words_beyond_the_outputs_are_refused():
    lm = neural_lm(**SMALL).set_params(output=Softmax(n_outputs=5))
    few, other = Y % 5, Y % 5
    other[3] = 7
    with pytest.raises(ValueError, match="y has 7, but output__n_outputs=5"):
        lm.fit(X, other)
    with pytest.raises(ValueError, match="y_val has 7, but"):
        lm.fit(X, few, X_val=X, y_val=other)
    lm.fit(X, few)
    with pytest.raises(ValueError, match="y has 7, but"):
        lm.log_prob(X, other)
    with pytest.raises(ValueError, match="candidates has 7, but"):
        lm.candidate_log_prob(X, [1, 7])


def test_scoring_changes_no_pickle():
    lm = neural_lm(**SMALL).fit(X, Y)
    before = pickle.dumps(lm)
    lm.log_prob(X, Y)
    assert pickle.dumps(lm) == before


def test_partial_fit_reports_its_epoch(capsys):
    neural_lm(**SMALL).set_params(verbose=1).partial_fit(X, Y)
    assert "[NeuralLM] epoch 1: training loss" in capsys.readouterr().out


def test_files_with_a_tree_of_the_first_version_are_refused_in_a_sentence():
    lm = neural_lm(**SMALL).set_params(output=Tree("huffman", n_branches=2))
    items = saved(lm.fit(X, Y))
    del items["architecture"]["n_branches"]
    items["arrays"]["E"] = items["arrays"]["E"][: N_WORDS - 1]
    with pytest.raises(ValueError, match=r"nplm 0\.1 made its tree.*fit the network"):
        restore(lm, items)


def test_numbers_of_a_tree_are_made_once_for_all_calls(monkeypatch):
    lm = neural_lm(**SMALL, output="tree").fit(X, Y)
    lm.log_prob(X, Y)
    monkeypatch.delattr(Joined, "deepest")
    assert np.isfinite(lm.log_prob(X[:1], Y[:1])).all()


def test_training_continues_with_the_same_n_branches_alone(tmp_path):
    lm = neural_lm(**SMALL).set_params(output=Tree("huffman", n_branches=4))
    lm.fit(X, Y, checkpoint=tmp_path)
    lm.set_params(output__n_branches=np.int64(4)).partial_fit(X, Y)
    lm.set_params(output__n_branches=8)
    with pytest.raises(ValueError, match=r"output__n_branches=8 is not .* \(4\)"):
        lm.partial_fit(X, Y)
    with pytest.raises(CheckpointError, match="its output__n_branches was 4, now it"):
        lm.fit(X, Y, checkpoint=tmp_path)
