"""ShortlistLM: its formula worked out by hand, and what it asks of its two models."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from nplm import (
    Exact,
    Importance,
    InterpolatedTrigram,
    KneserNeyLM,
    MixtureLM,
    ShortlistLM,
    TextLM,
    windows,
)
from nplm.models.neural import network_parameters
from nplm.models.neural.network.network import Network
from nplm.models.ngrams.backoff_model import BackoffLM
from tests.helpers import energy_lm, neural_lm, paper_lm, published_corpus, text
from tests.helpers.networks import interrupted_after

# Text of a few words cannot give discounts.
pytestmark = pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate")

N_WORDS = 30
SMALL = dict(n_hidden=4, embedding_dim=3, max_iter=2, random_state=0)


def network(**parameters):
    return paper_lm(**SMALL | parameters)


def shortlist(backoff=None, n_shortlist=6, **parameters):
    backoff = KneserNeyLM() if backoff is None else backoff
    return ShortlistLM(
        network(), backoff, n_shortlist=n_shortlist, n_words=N_WORDS
    ).set_params(**parameters)


@pytest.fixture(scope="module")
def parts():
    ids = text(1500, n_words=N_WORDS - 3)
    return windows(ids[:1200], 3), windows(ids[1200:], 3)


BACKOFFS = [KneserNeyLM(), KneserNeyLM(2), KneserNeyLM(1), InterpolatedTrigram()]


@pytest.mark.parametrize("backoff", BACKOFFS, ids=str)
def test_probabilities_are_those_of_the_formula(parts, backoff):
    (X, y), (X_val, y_val) = parts
    model = shortlist(backoff).fit(X, y)
    S = model.words_
    assert len(S) == 6
    counts = np.bincount(y, minlength=N_WORDS)
    assert_array_equal(counts[S], np.sort(counts)[::-1][:6])
    expected = model.backoff_.predict_proba(X_val)
    mass = expected[:, S].sum(axis=1, keepdims=True)
    share = model.network_.predict_proba(X_val)
    assert share.shape == (len(X_val), 6)
    expected[:, S] = share * mass
    proba = model.predict_proba(X_val)
    assert_allclose(proba, expected, rtol=1e-6)
    assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
    own = np.log(proba[np.arange(len(y_val)), y_val])
    assert_allclose(model.log_prob(X_val, y_val), own, atol=1e-5)
    n = model.network_.n_parameters_ + model.backoff_.n_parameters_
    assert model.n_parameters_ == n


def test_network_is_fitted_to_windows_of_the_list(parts):
    """What it learns is what a network of those outcomes learns, to the bit."""
    X, y = parts[0]
    model = shortlist().fit(X, y)
    place = {word: j for j, word in enumerate(model.words_.tolist())}
    inside = np.isin(y, model.words_)
    alone = network(n_words=N_WORDS)
    alone.set_params(output__n_outputs=6)
    alone.fit(X[inside], np.array([place[w] for w in y[inside].tolist()]))
    assert_array_equal(alone.U_, model.network_.U_)
    assert model.network_.C_.shape == (N_WORDS, 3)
    assert model.network_.U_.shape == (6, 4)
    assert model.network_.n_seen_ == 2 * inside.sum()
    # At the start it has the unigrams of the list.
    assert model.network_.n_parameters_ == 30 * 3 + 4 * (1 + 3 * 3) + 6 * (4 + 1)


def test_default_network_trains_on_all_words_of_the_list(parts, monkeypatch):
    # Noise samples are of all words, and this network predicts some.
    monkeypatch.setattr(network_parameters, "MIN_WORDS_PER_NOISE_SAMPLE", 0)
    (X, y), (X_val, _) = parts
    own = neural_lm(**SMALL)
    assert isinstance(clone(own).fit(X, y).loss_, Importance)
    model = shortlist().set_params(network=own).fit(X, y)
    assert isinstance(model.network_.loss_, Exact)
    assert_allclose(model.predict_proba(X_val).sum(axis=1), 1, rtol=1e-6)


def test_list_may_have_all_training_words(parts):
    """The back-off model is left with the words that training lacks."""
    X, y = parts[0]
    model = shortlist(n_shortlist=1000).fit(X, y)
    assert set(model.words_) == set(y)
    whole = network(n_words=N_WORDS).fit(X, y).log_prob(X, y)
    unseen = model.backoff_.predict_proba(X)[:, N_WORDS - 3 :].sum(axis=1)
    got = model.log_prob(X, y) - np.log1p(-unseen)
    # The same network but for its initial draws; both know little but the unigrams.
    assert abs(got.mean() - whole.mean()) < 0.05


def test_held_out_windows_are_passed_on(parts):
    (X, y), (X_val, y_val) = parts
    model = shortlist(network__max_iter=4, network__early_stopping="auto")
    model.fit(X, y, X_val=X_val, y_val=y_val)
    inside = np.isin(y_val, model.words_)
    places = model._place[y_val[inside]]
    val_loss = model.network_.history_["val_loss"]
    assert len(val_loss) >= 2
    best = -model.network_.score(X_val[inside], places)
    assert best == pytest.approx(min(val_loss))
    with pytest.raises(ValueError, match="none of the 3 held-out windows has a next"):
        model.fit(X, y, X_val=X_val[:3], y_val=[N_WORDS - 1] * 3)


@pytest.mark.parametrize("interpolate", [True, False])
def test_mass_follows_pruning_and_more_counts(parts, interpolate):
    """The mass of the list is that of the back-off model as it is now."""
    (X, y), (X_val, _) = parts
    model = shortlist(KneserNeyLM(interpolate=interpolate)).fit(X, y)
    model.backoff_.prune(1e-3)
    assert_allclose(model.predict_proba(X_val).sum(axis=1), 1, atol=1e-6)
    model.backoff_.partial_fit(X_val, y[: len(X_val)])
    assert_allclose(model.predict_proba(X_val).sum(axis=1), 1, atol=1e-6)


def test_a_frozen_back_off_model(parts):
    (X, y), (X_val, y_val) = parts
    kn = KneserNeyLM(n_words=N_WORDS + 5).fit(X[:, 1:], y)
    read = BackoffLM.from_trie(kn.trie_)
    model = ShortlistLM(network(), FrozenEstimator(read), n_shortlist=4).fit(X, y)
    assert model.n_words_ == N_WORDS + 5
    assert model.network_.C_.shape[0] == N_WORDS + 5
    outside = ~np.isin(y_val, model.words_)
    assert_array_equal(
        model.log_prob(X_val, y_val)[outside],
        kn.log_prob(X_val[outside, 1:], y_val[outside]),
    )
    assert_allclose(model.predict_proba(X_val).sum(axis=1), 1, atol=1e-6)
    wide = ShortlistLM(network(), FrozenEstimator(KneserNeyLM().fit(X, y)))
    with pytest.raises(ValueError, match="fitted on 3 words of context, but X has 2"):
        wide.fit(X[:, 1:], y)


def test_frozen_backoff_model_with_added_words_is_refused(parts):
    X, y = parts[0]
    energy = energy_lm(n_words=N_WORDS, n_hidden=2, embedding_dim=2, max_iter=1)
    frozen = FrozenEstimator(energy.fit(X, y))
    model = ShortlistLM(network(), frozen, n_shortlist=4).fit(X, y)
    energy.add_words(X[:1], [N_WORDS])
    with pytest.raises(
        ValueError, match="this ShortlistLM has 31 words, but the ShortlistLM"
    ):
        model.predict_proba(X)


def test_documents_give_the_back_off_model_their_boundary():
    documents = [1 + text(40, seed=i, n_words=8) for i in range(6)]
    model = ShortlistLM(network(), KneserNeyLM(), n_shortlist=4)
    lm = TextLM(model, n_context=2).fit(documents)
    assert lm.estimator_.n_words_ == 9
    assert lm.estimator_.backoff_.boundary == 0
    assert np.isfinite(lm.score(documents))
    _, proba = lm.next_words(documents[0], k=9)
    assert proba.sum() == pytest.approx(1, abs=1e-5)


def test_threads_score_the_same_bits(parts):
    (X, y), (X_val, y_val) = parts
    model = shortlist().fit(X, y)
    candidates = np.arange(10)
    want = model.log_prob(X_val, y_val), model.candidate_log_prob(X_val, candidates)
    model.network_.set_params(n_jobs=2)
    assert_array_equal(model.log_prob(X_val, y_val), want[0])
    assert_array_equal(model.candidate_log_prob(X_val, candidates), want[1])
    for rows in (slice(0, 1), slice(5, 40)):
        assert_array_equal(model.log_prob(X_val[rows], y_val[rows]), want[0][rows])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_shortlist": 0}, "'n_shortlist' .* Got 0"),
        ({"network": KneserNeyLM()}, "'network' .* must be an instance"),
        ({"backoff": 3}, "'backoff' .* Got 3"),
        ({"network__warm_start": True}, "warm_start=True of the network"),
        ({"network__n_words": 40}, "network has n_words=40, but the back-off model 30"),
        ({"backoff__n_words": 40}, "back-off model has n_words=40, but .* 30"),
        ({"network__output": "tree"}, "a softmax with .* has output='tree': set"),
        (
            {"network__output__tied": True},
            r"a softmax with .* has output=Softmax\(.*tied=True\): set",
        ),
        ({"network__loss": "nce"}, "has loss='nce': set loss='exact'"),
        ({"network__n_memory": 3}, "n_memory=3 of the network would train no state"),
        ({"network__order": 9}, "order=9 needs contexts of 8 words"),
    ],
)
def test_bad_parameters(parts, parameters, message):
    with pytest.raises(ValueError, match=message):
        shortlist().set_params(**parameters).fit(*parts[0])


def test_interrupted_fit_goes_on_from_its_checkpoint(parts, monkeypatch, tmp_path):
    X, y = parts[0]
    model, wanted = shortlist(), shortlist().fit(X, y)
    with monkeypatch.context() as patch:
        patch.setattr(Network, "train", interrupted_after(1000))
        with (
            pytest.raises(KeyboardInterrupt),
            pytest.warns(RuntimeWarning, match="NeuralLM: interrupted"),
        ):
            model.fit(X, y, checkpoint=tmp_path / "fit")
    model.fit(X, y, checkpoint=tmp_path / "fit", progress=went_on(1000))
    assert_array_equal(model.predict_proba(X), wanted.predict_proba(X))


def went_on(n):
    def progress(done, total, loss):
        assert done > n

    return progress


@pytest.mark.corpora
def test_brown():
    """A list of 2000 words covers three tokens of four, and the whole sums to 1."""
    corpus = published_corpus("brown")
    (X, y), _, (X_test, y_test) = corpus.windows(4)
    X, y = X[:50_000], y[:50_000]
    kn = KneserNeyLM(n_words=corpus.n_words).fit(X, y)
    model = ShortlistLM(
        paper_lm(n_hidden=10, embedding_dim=10, batch_size=128, max_iter=2,
                 solver="adam", learning_rate_init=2e-3, random_state=0),
        FrozenEstimator(kn),
    ).fit(X, y)  # fmt: skip
    X_test, y_test = X_test[:30_000], y_test[:30_000]
    assert 0.7 < np.isin(y_test, model.words_).mean() < 0.9
    assert_allclose(model.predict_proba(X_test[:300]).sum(axis=1), 1, atol=1e-5)
    mixture = 0.5 * np.exp(model.log_prob(X_test, y_test))
    mixture += 0.5 * np.exp(kn.log_prob(X_test, y_test))
    assert np.log(mixture).mean() > kn.score(X_test, y_test)


def test_network_of_a_shortlist_is_refused_in_another_model(parts):
    (X, y), _ = parts
    inner = shortlist().fit(X, y).network_
    message = "predicts 6 outputs of a short-list instead of 30 words: .* ShortlistLM"
    for name, model in [
        ("member 'one'", MixtureLM([("one", FrozenEstimator(inner))])),
        ("the back-off model", shortlist(FrozenEstimator(inner))),
    ]:
        with pytest.raises(ValueError, match=f"{name} {message}"):
            model.fit(X, y)
    with pytest.raises(ValueError, match=f"the estimator {message}"):
        TextLM(FrozenEstimator(inner), boundary=0).fit([y])
    with pytest.raises(ValueError, match=f"the model {message}"):
        TextLM.from_model(inner, boundary=0)
    # A clone of it is to predict the places of a list too.
    with pytest.raises(ValueError, match=r"y has \d+, but output__n_outputs=6"):
        MixtureLM([("one", inner)]).fit(X, y)
