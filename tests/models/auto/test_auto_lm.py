"""AutoLM: the best model that some minutes make of a text."""

import re
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline

import nplm
from nplm import (
    Adam,
    AutoLM,
    AutoRecipe,
    Exact,
    Importance,
    LMClassifier,
    LMDetector,
    Tokenizer,
    Vocabulary,
    windows,
)
from nplm.models.auto.describing import Shown
from nplm.models.auto.fitting import AutoFit, Budget, Scores, network_of
from nplm.models.auto.memory import fit_bytes
from nplm.models.auto.texts import AutoText
from nplm.models.training.plan import TimedPlan
from nplm.text.documents import Documents
from tests.helpers import markov_stream
from tests.helpers.auto import ENDLESS, NGRAMS, SMALL, TEXTS, equal

pytestmark = pytest.mark.usefixtures("simulated_clock")
SECONDS = 4.0


def text_of_ids(lm):
    """A text of the size of the training text of a model."""
    n = lm.n_tokens_ - 1
    documents = Documents(np.zeros(n, np.int32), np.array([n]))
    return AutoText(documents, None, lm.n_words_, lm.boundary_)


@pytest.fixture(scope="module")
def timed(simulated_clock):
    """A fitted model, and the seconds of the fit."""
    began = time.perf_counter()
    lm = AutoLM(SECONDS / 60, settings=ENDLESS, random_state=0).fit(TEXTS)
    return lm, time.perf_counter() - began


@pytest.fixture(scope="module")
def fitted(timed):
    return timed[0]


def test_fit_ends_on_time_with_all_members(timed):
    lm, seconds = timed
    assert 0.8 * SECONDS < seconds < 1.05 * SECONDS + 3
    recipe = lm.recipe_
    assert {"ngrams", "network"} <= set(recipe.members)
    assert sum(recipe.weights) == pytest.approx(1)
    assert len(recipe.corrections) <= 20
    assert set(lm.scores_) == {*recipe.members, "mixture"}


def test_mixture_is_not_behind_a_member(fitted):
    *members, mixture = fitted.scores_.values()
    assert mixture <= min(members) * 1.001


def test_recipe_makes_the_same_bits_without_a_clock(fitted, monkeypatch):
    recipe = eval(repr(fitted.recipe_))
    assert recipe == fitted.recipe_

    def no_clock(*args):
        raise AssertionError("the clock was read")

    monkeypatch.setattr(Budget, "left", property(no_clock))
    monkeypatch.setattr(TimedPlan, "__init__", no_clock)
    monkeypatch.setattr("nplm.models.auto.choosing.choose", no_clock)
    again = AutoLM(recipe=recipe, random_state=5).fit(TEXTS)
    equal(again, fitted)
    assert again.recipe_ == recipe


def test_members_of_weight_0_are_not_fitted_again(fitted, monkeypatch):
    recipe = fitted.recipe_
    weights = [0.0 if name == "network" else 1.0 for name in recipe.members]
    weights = tuple(np.array(weights) / sum(weights))
    recipe = replace(recipe, weights=tuple(map(float, weights)))
    monkeypatch.setattr(AutoFit, "_network", None)
    again = AutoLM(recipe=recipe).fit(TEXTS)
    assert again.recipe_ == recipe
    assert again.scores_.keys() == {*recipe.members, "mixture"} - {"network"}
    without = {"members": [name for name in recipe.members if name != "network"]}
    other = AutoLM(1.0, settings=without).fit(TEXTS)
    assert again.scores_["ngrams"] == other.scores_["ngrams"]


def test_n_grams_on_disk_are_those_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("nplm.models.auto.memory.LEAST_BUFFER_BYTES", 1 << 16)
    settings = {"members": ["ngrams", "classes"], "n_classes": 10}
    given = {"settings": settings, "random_state": 0}
    within = AutoLM(1.0, **given, memory=None).fit(TEXTS)
    text = text_of_ids(within)
    recipe, n = within.recipe_, within.n_words_
    memory = fit_bytes(text, recipe, n, on_disk=True)
    assert memory < fit_bytes(text, recipe, n)
    released = []
    monkeypatch.setattr(
        "nplm.models.auto.fitting.release_pages", lambda *a: released.extend(a)
    )
    on_disk = AutoLM(1.0, **given, memory=memory).fit(TEXTS)
    pages = {id(a) for a in released if isinstance(a, np.memmap)}
    assert pages
    assert on_disk.recipe_ == recipe
    assert on_disk.scores_ == within.scores_
    for lm, has_index in (within, True), (on_disk, False):
        ngrams = lm.estimator_.named_estimators_["ngrams"].estimator
        assert (ngrams.index_ is not None) is has_index
        is_mapped = {id(a) in pages for a in (ngrams.trie_.prob, ngrams.trie_.words)}
        assert is_mapped == {not has_index}  # and released after it was scored
        assert ngrams.counts_ is None
        state = ngrams.trie_.__getstate__()
        assert not any(isinstance(array, np.memmap) for array in state.values())
        with pytest.raises(ValueError, match="keeps no counts"):
            ngrams.partial_fit([[1] * (recipe.ngram_order - 1)], [1])
    equal(on_disk, within)
    nplm.save(on_disk, tmp_path / "model")
    equal(nplm.load(tmp_path / "model"), within)


def test_networks_that_do_not_fit_in_the_memory_are_left_out():
    ids = [np.arange(1, 30)] * 200
    lm = AutoLM(1.0, n_words=10**6).fit(ids)
    assert lm.recipe_.members == ("ngrams",)
    with pytest.raises(ValueError, match="too small for a network of 1,000,000 words"):
        AutoLM(1.0, n_words=10**6, settings={"members": ["network"]}).fit(ids)
    with pytest.raises(ValueError, match=r"too small: a fit of .* takes about 1\.2"):
        AutoLM(1.0, n_words=10**6, memory=10**9).fit(ids)


def test_saved_model_has_its_recipe(fitted, tmp_path):
    nplm.save(fitted.set_params(recipe=AutoRecipe(3.0)), tmp_path / "model")
    loaded = nplm.load(tmp_path / "model")
    fitted.set_params(recipe=None)
    assert loaded.recipe == AutoRecipe(3.0)
    assert (loaded.recipe_, loaded.scores_) == (fitted.recipe_, fitted.scores_)


@pytest.mark.parametrize(
    ("name", "value"),
    [("weights", ["a"]), ("members", []), ("planned", -1), ("minutes", "3"),
     ("corrections", [[1]]), ("network", "ab"), ("unheard", 1)],
)  # fmt: skip
def test_damaged_recipe_is_refused(fitted, name, value):
    values = fitted.recipe_.as_dict() | {name: value}
    with pytest.raises(ValueError, match=r"recipe"):
        AutoRecipe.of(values)


def test_running_text_goes_on_across_documents():
    # The last word of a document is the first one of the next.
    words = [f"w{i}" for i in np.random.default_rng(0).integers(60, size=3000)]
    documents = [" ".join(pair) for pair in pairwise(words)]
    settings = {
        "members": ["network"], "n_memory": 20, "n_hidden": 64, "embedding_dim": 32,
        "learning_rate_init": 0.02, "alpha": 1e-3, "dropout": 0.0, "epochs": 60,
    }  # fmt: skip
    lm = AutoLM(0.2, running_text=True, settings=settings, random_state=0)
    lm.fit(documents)
    apart = clone(lm).set_params(running_text=False).fit(documents)
    # Of three tokens, one is drawn from 60 (a perplexity of 3.9), or two (of 15).
    assert lm.perplexity(documents[:300]) < 6 < 12 < apart.perplexity(documents[:300])
    together, scorer = lm.score_samples(documents[:5]), lm.scorer()
    one_by_one = [scorer.tokens([text]).log_prob.sum() for text in documents[:5]]
    np.testing.assert_allclose(together, one_by_one)
    assert together[1] > lm.score_samples([documents[1]])[0]


@pytest.mark.parametrize(
    "documents",
    [["a"], ["a b c d e f g h i j"], [""], ["a b"] * 300, ["x" * 5000],
     ["\x01\x02 \xff\xfe"] * 3],
    ids=["one word", "one line", "nothing", "two words", "one long word", "binary"],
)  # fmt: skip
def test_small_texts_have_n_grams(documents):
    lm = AutoLM(0.05).fit(documents)
    assert lm.recipe_.members == ("ngrams",)
    assert np.isfinite(lm.score([*documents, "a b"]))


def test_impossible_fits_are_refused():
    with pytest.raises(ValueError, match=r"minutes=1e-05 is too short: n-grams of"):
        AutoLM(1e-5).fit(TEXTS)
    with pytest.raises(ValueError, match="0 documents and no token"):
        AutoLM(0.1).fit([])
    with pytest.raises(ValueError, match="X_val has 0 documents and no token"):
        AutoLM(0.1).fit(TEXTS[:9], X_val=[])
    for settings, message in (
        ({"n_hiden": 3}, "settings has 'n_hiden'"),
        ({"members": ["netwerk"]}, "must be some of ngrams, classes, network"),
        ({"ngram_order": 0}, "settings: ngram_order must be an int above 0, got 0"),
        ({"n_classes": 1}, "settings: n_classes must be 0, or an int of 2 or more"),
        ({"spelling": "no"}, "settings: spelling must be True or False, got 'no'"),
        ({"dropout": 5}, "settings: dropout=5"),
        ({"epochs": 0}, "epochs must be a number above 0, got 0"),
        ({"epochs": np.inf}, "epochs must be a number above 0, got inf"),
        ({"max_iter": 5}, "settings has 'max_iter'"),
        ({"solver": Adam("constant")}, "settings has 'solver__learning_rate'"),
        ({"solver": Exact()}, "The 'solver' parameter of NeuralLM must be one of"),
        ({"n_words": 5}, "any parameter of NeuralLM but n_words"),
    ):
        with pytest.raises(ValueError, match=message):
            AutoLM(0.1, settings=settings).fit(TEXTS)
    with pytest.raises(ValueError, match=r"a network needs 2,000 tokens, or held-out"):
        AutoLM(0.1, settings={"members": ["network"]}).fit(TEXTS[:9])
    with pytest.raises(TypeError, match="no parameter 'folder'"):
        AutoLM(0.1).fit(TEXTS, folder="here")


def test_settings_hold_for_small_vocabularies_and_in_saved_recipes(tmp_path):
    settings = {
        "members": ["network"], "epochs": np.float64(1), "spelling": np.False_,
        "n_hidden": np.array([16]), "embedding_dim": np.int64(8),
        "solver": Adam(beta_1=0.8), "loss__n_noise": 16,
    }  # fmt: skip
    lm = AutoLM(0.5, settings=settings).fit(TEXTS, checkpoint=tmp_path / "state")
    network = lm.estimator_
    assert (network.solver.beta_1, network.solver.beta_2) == (0.8, Adam().beta_2)
    assert repr(network.loss_) == repr(Importance(n_noise=16))
    nplm.save(lm, tmp_path / "model")
    recipe = nplm.load(tmp_path / "model").recipe_
    assert recipe == lm.recipe_
    equal(AutoLM(recipe=recipe).fit(TEXTS), lm)


def test_held_out_documents_may_be_given():
    lm = AutoLM(0.05, settings={"members": ["ngrams", "classes"], "n_classes": 5})
    lm.fit(TEXTS[:1000], X_val=TEXTS[1000:1500])
    assert lm.recipe_.n_classes == 5
    assert set(lm.scores_) == {"ngrams", "classes", "mixture"}


def test_works_in_a_pipeline_and_a_cross_validation():
    steps = [("words", Tokenizer()), ("ids", Vocabulary()), ("lm", AutoLM(0.05))]
    scores = cross_val_score(Pipeline(steps), TEXTS[:200], cv=2)
    assert np.isfinite(scores).all()


def test_classifies_and_detects(capsys):
    labels = ["a"] * 100 + ["b"] * 100
    other = [text.replace("w", "v") + " v" for text in TEXTS[:100]]
    classifier = LMClassifier(AutoLM(0.05, verbose=1))
    classifier.fit([*TEXTS[:100], *other], labels)
    said = "LMClassifier: 2 fits of 0.05 minutes each, 0.1 in all\n"
    assert capsys.readouterr().out.startswith(said)
    assert classifier.score(["w1 w2 w3", "v1 v3"], ["a", "b"]) == 1
    detector = LMDetector(AutoLM(0.05), validation_fraction=0.5).fit(TEXTS[:300])
    LMDetector(AutoLM(0.01, verbose=1)).fit(TEXTS[:20])
    said = "LMDetector: 10 fits of 0.01 minutes each, 0.1 in all\n"
    assert capsys.readouterr().out.startswith(said)
    parallel = LMClassifier(AutoLM(0.01, verbose=1), n_jobs=2)
    with parallel_config("threading"):
        parallel.fit(TEXTS[:30], ["a", "b", "c"] * 10)
    said = "3 fits of 0.01 minutes each, 2 at the same time, 0.02 in all\n"
    assert said in capsys.readouterr().out
    unlikely = detector.score_samples(["w49 w48 w47"])
    assert unlikely < detector.score_samples(["w1 w1 w2"])


@pytest.mark.parametrize("minutes", ["3", -1])
def test_tasks_refuse_minutes_before_they_print(capsys, minutes):
    for task in LMClassifier, LMDetector:
        with pytest.raises(ValueError, match="The 'minutes' parameter of AutoLM"):
            task(AutoLM(minutes, verbose=1)).fit(TEXTS[:20], ["a", "b"] * 10)
        assert capsys.readouterr().out == ""


def test_ids_and_tokens_are_documents_too():
    ids = [np.array([1, 2, 3, 4, 5] * 3)] * 200
    lm = AutoLM(0.05, n_words=9).fit(ids)
    assert lm.n_words_ == 9
    assert lm.next_words([1, 2])[0][0] == 3
    events = AutoLM(0.05).fit([["login", ("read", 3), "logout"]] * 200)
    assert events.next_words(["login"], k=1)[0] == [("read", 3)]


def test_cache_adapts_to_the_words_before():
    # Each document repeats a word of its own.
    random = np.random.default_rng(0)
    documents = [" ".join([f"w{random.integers(200)}"] * 8) for _ in range(600)]
    train, test = documents[:500], documents[500:]
    settings = NGRAMS | {"ngram_order": 1}
    fixed = AutoLM(0.1, settings=settings).fit(train)
    lm = AutoLM(0.1, settings=settings, adapt=True).fit(train)
    assert lm.recipe_.members == ("ngrams", "cache")
    assert lm.perplexity(test) < 0.5 * fixed.perplexity(test)
    one_by_one = np.concatenate([lm.score_samples([text]) for text in test])
    np.testing.assert_allclose(lm.score_samples(test), one_by_one)
    # In a running text the words of the documents before are read, too.
    lm = AutoLM(0.1, settings=settings, adapt=True, running_text=True).fit(train)
    first, again = lm.score_samples([test[0]] * 2)
    assert again > first
    equal(AutoLM(recipe=lm.recipe_).fit(train), lm)


def test_hint_at_running_text(capsys):
    # The topic of a text changes after 30 lines.
    random = np.random.default_rng(0)
    lines = [
        " ".join(f"w{20 * topic + i}" for i in random.integers(20, size=2))
        for topic in [*range(20), 3, 7, 11]
        for _ in range(30)
    ]
    lm = AutoLM(0.1, settings=NGRAMS, verbose=1)
    lm.fit(lines[:600], X_val=lines[600:])
    assert "or --text running) may be better" in capsys.readouterr().out
    lm.fit(lines[:600], X_val=random.permutation(lines)[:90].tolist())
    assert "Hint" not in capsys.readouterr().out


def test_recipe_is_of_the_same_fit(fitted):
    recipe = fitted.recipe_
    with pytest.raises(ValueError, match=r"a text of .* tokens, and this one has"):
        AutoLM(recipe=recipe).fit(TEXTS[:10])
    with pytest.raises(ValueError, match="leave settings and adapt out"):
        AutoLM(recipe=recipe, settings=SMALL).fit(TEXTS)
    with pytest.raises(ValueError, match=r"continues no model .* leave it out"):
        AutoLM(recipe=recipe).fit(TEXTS, before=fitted)
    further = AutoLM(0.1, settings={"epochs": 1}, random_state=0)
    further.fit(TEXTS, before=fitted)
    again = AutoLM(recipe=further.recipe_).fit(TEXTS, before=fitted)
    equal(again, further)
    with pytest.raises(ValueError, match=r"continues another model .* give that, too"):
        AutoLM(recipe=further.recipe_).fit(TEXTS)


def test_settings_may_be_another_loss_and_solver():
    settings = SMALL | {"loss": "exact", "solver": "sgd", "epochs": 0.5}
    lm = AutoLM(0.1, settings=settings).fit(TEXTS)
    assert lm.recipe_.network["solver"] == "sgd"
    assert not any(name.startswith("solver__") for name in lm.recipe_.network)
    further = AutoLM(0.1, settings={"solver": "adam", "epochs": 1}).fit(
        TEXTS, before=lm
    )
    assert further.recipe_.network["solver"] == "adam"


def test_model_before_needs_a_network():
    X, y = windows(markov_stream(99), 3)
    for before, error in ((AutoLM(), NotFittedError), ("model", TypeError)):
        for data in ((TEXTS,), (X, y)):
            with pytest.raises(error):
                AutoLM(0.1).fit(*data, before=before)
    ngrams = AutoLM(0.05, settings=NGRAMS).fit(TEXTS)
    with pytest.raises(ValueError, match="has no network to train further"):
        AutoLM(0.1).fit(TEXTS, before=ngrams)


def test_network_before_is_not_lost(fitted):
    with pytest.raises(ValueError, match=r"give more text, or held-out text\."):
        AutoLM(0.1).fit(TEXTS[:9], before=fitted)
    with pytest.raises(ValueError, match="is too short: a network and n-grams of"):
        AutoLM(0.02).fit(TEXTS, before=fitted)


def test_network_that_takes_too_long_to_make_is_left_out(monkeypatch):
    measured = [(3.0, 1e3, 1e2), (0.1, 1e5, 1e5)]  # other programs ran at first
    with monkeypatch.context() as context:
        context.setattr(
            "nplm.models.auto.choosing.NetworkChooser._measured",
            lambda *args: measured.pop(0),
        )
        lm = AutoLM(0.1, settings={"epochs": 1}).fit(TEXTS)
    assert "network" in lm.recipe_.members

    def speeds(*args):
        return 1e3, 1e4, 1e4

    monkeypatch.setattr("nplm.models.auto.choosing.NetworkChooser._measured", speeds)
    lm = AutoLM(0.1).fit(TEXTS)
    assert lm.recipe_.members == ("ngrams",)
    with pytest.raises(ValueError, match=r"is too short: a network and n-grams of"):
        AutoLM(0.1, settings={"members": ["network"]}).fit(TEXTS)


def test_network_on_a_machine_with_other_work_is_left_out(monkeypatch):
    monkeypatch.setattr("nplm.models.auto.training_text.MEASURED_SECONDS", 0.0)
    monkeypatch.setattr(time, "perf_counter", lambda: 100 * time.process_time())
    assert AutoLM(5).fit(TEXTS).recipe_.members == ("ngrams",)


def test_units_without_time_are_frequent_words(monkeypatch, capsys):
    monkeypatch.setattr("nplm.models.auto.training_text.MAX_TYPES", 20)
    monkeypatch.setattr("nplm.models.auto.training_text.SUBWORD_SHARE", -1.0)
    lm = AutoLM(0.1, settings=NGRAMS, verbose=1).fit(TEXTS)
    assert (lm.n_words_, lm.recipe_.max_words) == (20, 20)
    assert "of 20 types (rarer ones are <unk>), " in capsys.readouterr().out
    monkeypatch.undo()
    equal(AutoLM(recipe=lm.recipe_).fit(TEXTS), lm)


@pytest.mark.parametrize(
    "settings",
    [{}, {"output__tied": False, "order": 3, "n_memory": 0}, {"solver": "sgd"}],
    ids=["cells", "windows", "sgd"],
)
@pytest.mark.parametrize("spelling", [False, True])
def test_samples_of_held_out_text_are_shown_and_change_nothing(
    monkeypatch, settings, spelling
):
    notes, settings = [], SMALL | settings | {"epochs": 0.7, "spelling": spelling}
    monkeypatch.setattr(TimedPlan, "wants_sample", True)
    monkeypatch.setattr("nplm.models.training.pace.SECONDS_A_CALL", 0.01)
    for name in ("SAMPLE", "LEAST_SAMPLE"):
        monkeypatch.setattr(f"nplm.models.auto.fitting.{name}", 100)
    monkeypatch.setattr(Shown, "__call__", lambda shown, *note: notes.append(note[1]))
    lm = AutoLM(1.0, settings=settings, random_state=0, verbose=1).fit(TEXTS)
    sampled = [re.search("held-out about ([0-9.]+)$", note) for note in notes]
    sampled = [float(match[1]) for match in sampled if match]
    # The last one is that of almost the whole fit.
    assert sampled[-1] == pytest.approx(lm.scores_["network"], rel=0.3)
    again = AutoLM(recipe=lm.recipe_).fit(TEXTS)
    equal(again, lm)
    one, other = (network_of(model.estimator_) for model in (lm, again))
    assert one.history_["val_loss"] == other.history_["val_loss"]
    np.testing.assert_array_equal(one.C_, other.C_)


def test_text_that_was_held_out_before_is_held_out_again():
    settings = SMALL | {"epochs": 1, "members": ["network"]}
    before = AutoLM(0.05, settings=settings).fit(TEXTS)
    after = AutoLM(0.5, settings={"epochs": 1}).fit(TEXTS, before=before)
    assert after.recipe_.held_out == before.recipe_.held_out


def test_model_that_goes_on_keeps_what_is_no_better(tmp_path):
    settings = SMALL | {"n_classes": 7, "ngram_order": 3, "epochs": 3}
    settings["members"] = ["ngrams", "classes", "network"]
    before = AutoLM(0.3, settings=settings, random_state=0).fit(TEXTS)
    settings = {"epochs": 0.2, "learning_rate_init": 0.3, "n_classes": 5}
    other = AutoLM(0.3, settings=settings, random_state=0).fit(TEXTS, before=before)
    assert other.recipe_.n_classes == 5
    del settings["n_classes"]
    further = AutoLM(0.3, settings=settings, random_state=0).fit(TEXTS, before=before)
    assert further.recipe_.ngram_order == 3
    assert further.recipe_.last == 0  # the rate is too high
    assert further.scores_ == pytest.approx(before.scores_)
    was, now = (lm.estimator_.named_estimators_ for lm in (before, further))
    labels = [models["classes"].estimator.labels_ for models in (was, now)]
    np.testing.assert_array_equal(*labels)
    np.testing.assert_array_equal(
        was["network"].estimator.C_, now["network"].estimator.C_
    )
    nplm.save(further, tmp_path / "further")
    equal(nplm.load(tmp_path / "further"), further)
    equal(AutoLM(recipe=further.recipe_).fit(TEXTS, before=before), further)


def test_speed_is_finite_where_the_clock_shows_no_time():
    assert Scores("network", np.zeros(30), 0.0).speed == 30 / 1e-6
