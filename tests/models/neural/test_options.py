"""Options of the neural models: hyper-parameters in objects, and their shorthands."""

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from nplm import (
    NCE,
    SGD,
    Adam,
    Classes,
    EnergyLM,
    Exact,
    Features,
    Importance,
    NeuralLM,
    Softmax,
    TextLM,
    Tree,
    load,
    save,
    windows,
)
from nplm.experiments import grouped
from tests.helpers import assert_same_weights, text

N_WORDS = 12
SMALL = dict(
    n_words=N_WORDS, n_hidden=4, embedding_dim=3, dropout=0, batch_size=16, max_iter=2,
    early_stopping=False, learning_rate_init=0.02, random_state=0,
)  # fmt: skip
SOLVER = dict(learning_rate="auto", learning_rate_decay=1e-8)
NOISE = dict(n_noise=512, proposal="unigram", proposal_power=1.0)
# The defaults of each option, and the parameters that take it.
DEFAULTS = {
    SGD: ("solver", SOLVER),
    Adam: ("solver", SOLVER | dict(beta_1=0.9, beta_2=0.999, epsilon=1e-5)),
    Exact: ("loss", {}),
    NCE: ("loss", NOISE),
    Importance: ("loss", NOISE | dict(min_effective_samples=0.0)),
    Softmax: ("output", dict(direct=False, tied=False, n_outputs=None)),
    Classes: ("output", dict(classes=None, direct=False)),
    Tree: ("output", dict(tree=None, n_branches=128, direct=False)),
    Features: (
        "features",
        dict(embeddings="auto", trained=True, word_features=None, n_senses=1),
    ),
}
SHORTHANDS = {
    ("solver", "adam"): Adam, ("solver", "sgd"): SGD, ("loss", "exact"): Exact,
    ("loss", "importance"): Importance, ("loss", "nce"): NCE,
    ("output", "softmax"): Softmax, ("output", "classes"): Classes,
    ("output", "tree"): Tree, ("features", "learned"): Features,
}  # fmt: skip
START = np.random.default_rng(1).normal(size=(N_WORDS, 3))
# Options that are not as they are by default, arrays among them.
OTHER = {
    "sgd": dict(solver=SGD("invscaling", learning_rate_decay=0.1)),
    "adam": dict(solver=Adam("linear", beta_1=0.8, beta_2=0.99, epsilon=1e-3)),
    "nce": dict(loss=NCE(5, proposal=list(range(1, 13)), proposal_power=0.5)),
    "importance": dict(loss=Importance(3, min_effective_samples=2.0)),
    "tied": dict(output=Softmax(direct=True, tied=True)),
    "classes": dict(output=Classes([i % 3 for i in range(N_WORDS)], direct=True)),
    "tree": dict(output=Tree("huffman", direct=True)),
    "features": dict(features=Features(START, word_features=np.eye(N_WORDS)[:, :4])),
    "fixed": dict(features=Features(START, trained=False), loss=Exact()),
    "senses": dict(features=Features(n_senses=2)),
}
each_other = pytest.mark.parametrize("other", OTHER.values(), ids=OTHER)


@pytest.fixture(scope="module")
def data():
    return windows(text(300, n_words=N_WORDS), 2)


# -- options, and strings that stand for them ------------------------------------


@pytest.mark.parametrize("option", DEFAULTS, ids=lambda option: option.__name__)
def test_defaults_of_an_option(option):
    parameter, defaults = DEFAULTS[option]
    assert option().get_params() == defaults
    assert repr(option()) == f"{option.__name__}()"
    nested = NeuralLM(**{parameter: option()}).get_params()
    assert {f"{parameter}__{name}" for name in defaults} <= nested.keys()


@pytest.mark.parametrize("estimator", [NeuralLM, EnergyLM])
def test_an_estimator_has_few_parameters(estimator):
    parameters = inspect.signature(estimator).parameters
    assert len(parameters) <= 26
    assert estimator().get_params().keys() == parameters.keys()  # shorthands have none
    given = ("loss", "solver", "features", "output")
    defaults = ("auto", "adam", "learned", "softmax")
    for name, default in zip(given, defaults):
        assert name not in parameters or parameters[name].default == default


@pytest.mark.parametrize(("parameter", "word"), SHORTHANDS)
def test_string_selects_the_option_with_its_defaults(data, parameter, word):
    for estimator in (NeuralLM, EnergyLM):
        lm = estimator().set_params(n_words=N_WORDS, max_iter=1, random_state=0)
        if parameter not in lm.get_params():
            continue
        option = SHORTHANDS[parameter, word]()
        by_word = clone(lm).set_params(**{parameter: word}).fit(*data)
        assert_same_weights(
            by_word, clone(lm).set_params(**{parameter: option}).fit(*data)
        )
        assert getattr(by_word, parameter) == word  # a fit leaves it as it was


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (SGD("cosine"), "'learning_rate' parameter of SGD must be"),
        (SGD(learning_rate_decay=-1), "'learning_rate_decay' parameter of SGD"),
        (Adam("cosine"), "'learning_rate' parameter of Adam must be"),
        (Adam(beta_1=1), "'beta_1' parameter of Adam"),
        (Adam(beta_2=-0.1), "'beta_2' parameter of Adam"),
        (Adam(epsilon=0), "'epsilon' parameter of Adam"),
        (NCE(0), "'n_noise' parameter of NCE must be"),
        (NCE(True), "'n_noise' parameter of NCE must be"),
        (NCE(proposal="bigram"), "'proposal' parameter of NCE must be"),
        (NCE(proposal=[1.0]), r"proposal has shape \(1,\)"),
        (NCE(proposal_power=2), "'proposal_power' parameter of NCE"),
        (Importance(1.5), "'n_noise' parameter of Importance must be"),
        (Importance(min_effective_samples=-1), "'min_effective_samples' parameter of"),
        (Softmax(direct="yes"), "'direct' parameter of Softmax must be"),
        (Softmax(tied=1.5), "'tied' parameter of Softmax must be"),
        (Softmax(n_outputs=0), "'n_outputs' parameter of Softmax must be"),
        (Softmax(n_outputs=3), "y has 11, but output__n_outputs=3"),
        (Classes("frequency"), "'classes' parameter of Classes must be"),
        (Classes(direct=None), "'direct' parameter of Classes must be"),
        (Tree("balanced"), "'tree' parameter of Tree must be"),
        (Tree(direct=2), "'direct' parameter of Tree must be"),
        (Tree(n_branches=1), "'n_branches' .* must be an int in the range .2, 1024."),
        (Tree(n_branches=2048), "'n_branches' .* must be an int in the range .2, 1024"),
        (Tree(n_branches=True), "'n_branches' parameter of Tree must be"),
        (Tree(n_branches=4.0), "'n_branches' parameter of Tree must be"),
        (Features("word2vec"), "'embeddings' parameter of Features must be"),
        (Features(START, trained="no"), "'trained' parameter of Features must be"),
        (Features(trained=False), "trained=False with embeddings='auto' would"),
        (Features(None, trained=False), "with embeddings=None would keep random"),
        (Features(word_features="colour"), "'word_features' parameter of Features"),
        (Features(n_senses=0), "'n_senses' parameter of Features must be"),
    ],
    ids=repr,
)
def test_a_fit_checks_its_options(data, option, message):
    parameter, _ = DEFAULTS[type(option)]
    lm = NeuralLM(**SMALL | {parameter: option})
    before = vars(lm).copy()
    with pytest.raises(ValueError, match=message):
        lm.fit(*data)
    assert vars(lm) == before


@pytest.mark.parametrize(
    ("estimator", "parameter", "value", "error", "message"),
    [
        (
            NeuralLM,
            "solver",
            "lbfgs",
            ValueError,
            "must be one of 'adam', 'sgd', .* Got 'lbfgs'",
        ),
        (NeuralLM, "loss", "sampled", ValueError, "must be one of 'auto', 'exact', 'i"),
        (NeuralLM, "output", "energy", ValueError, "must be one of 'softmax', 'class"),
        (NeuralLM, "features", "fixed", ValueError, r"one of 'learned', Features"),
        (NeuralLM, "solver", "auto", ValueError, "must be one of 'adam'"),
        (NeuralLM, "solver", None, TypeError, "one of .* Got None"),
        (NeuralLM, "solver", SGD, TypeError, "'solver' .* Got .*SGD"),
        (NeuralLM, "loss", Adam(), TypeError, r"'loss' .* Got Adam\(\)"),
        (NeuralLM, "output", True, TypeError, "'output' .* Got True"),
        (
            NeuralLM,
            "features",
            START,
            TypeError,
            "'features' parameter of NeuralLM must be",
        ),
        (
            EnergyLM,
            "solver",
            Exact(),
            TypeError,
            r"'solver' .* EnergyLM .* Got Exact\(\)",
        ),
        (EnergyLM, "loss", "softmax", ValueError, "'loss' .* Got 'softmax'"),
    ],
)
def test_other_values_are_refused(data, estimator, parameter, value, error, message):
    lm = estimator(**{parameter: value})
    with pytest.raises(error, match=message):
        lm.fit(*data)


def test_numpy_scalars_are_accepted(data):
    settings = dict(
        learning_rate_decay=0.1, beta_1=0.8, beta_2=0.99, epsilon=1e-3, n_noise=3,
        proposal_power=0.5, min_effective_samples=2.0, direct=True, n_senses=2,
    )  # fmt: skip
    lm = NeuralLM(**SMALL, loss="importance").set_params(**grouped(settings))
    others = {name: np.asarray(value)[()] for name, value in settings.items()}
    other = clone(lm).set_params(**grouped(others)).fit(*data)
    assert_same_weights(other, lm.fit(*data))


# -- set_params --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameter", "word", "name", "value"),
    [
        ("solver", "adam", "beta_1", 0.8),
        ("solver", "sgd", "learning_rate", "constant"),
        ("loss", "importance", "min_effective_samples", 3),
        ("loss", "nce", "n_noise", 5),
        ("output", "softmax", "tied", True),
        ("output", "classes", "direct", True),
        ("output", "tree", "tree", "huffman"),
        ("features", "learned", "n_senses", 2),
    ],
)
def test_set_params_reaches_through_shorthands(parameter, word, name, value):
    option = SHORTHANDS[parameter, word]
    lm = NeuralLM().set_params(**{parameter: word})
    assert lm.set_params(**{f"{parameter}__{name}": value}) is lm
    assert repr(getattr(lm, parameter)) == repr(option(**{name: value}))
    assert lm.get_params()[f"{parameter}__{name}"] == value
    # Together, in any order; other parameters of the option have their defaults.
    names = {f"{parameter}__{name}": value, parameter: word}
    again = NeuralLM(**{parameter: option()}).set_params(**names)
    assert repr(getattr(again, parameter)) == repr(option(**{name: value}))
    assert repr(option()) == f"{option.__name__}()"
    text_lm = TextLM(NeuralLM(), 2).set_params(estimator__solver__beta_1=0.5)
    assert text_lm.estimator.solver.beta_1 == 0.5


@pytest.mark.parametrize(
    ("lm", "params", "error", "message"),
    [
        (NeuralLM(), dict(loss__n_noise=3), ValueError,
         "loss='auto' .* loss__n_noise .* set loss='importance' or loss='nce'"),
        (EnergyLM(), dict(loss__n_noise=3), ValueError, "loss='auto' chooses the loss"),
        (NeuralLM(), dict(solver__momentum=0.9), ValueError,
         r"Invalid parameter 'momentum' for estimator Adam\(\)"),
        (NeuralLM(solver="sgd"), dict(solver__beta_1=0.9), ValueError,
         r"Invalid parameter 'beta_1' for estimator SGD\(\)"),
        (NeuralLM(loss="exact"), dict(loss__n_noise=3), ValueError,
         r"Invalid parameter 'n_noise' for estimator Exact\(\)"),
        (NeuralLM(output="tree"), dict(output__tied=True), ValueError,
         r"Invalid parameter 'tied' for estimator Tree\(\)"),
        (NeuralLM(output="classes"), dict(output__tied=True), ValueError,
         r"Invalid parameter 'tied' for estimator Classes\(\)"),
        (NeuralLM(), dict(output__tree="huffman"), ValueError,
         r"Invalid parameter 'tree' for estimator Softmax\(\)"),
        (NeuralLM(), dict(n_samples=3), ValueError, "Invalid parameter 'n_samples'"),
        (NeuralLM(), dict(learning_rate="constant"), ValueError,
         "Invalid parameter 'learning_rate'"),
        (NeuralLM(), dict(optimizer__beta_1=0.9), ValueError,
         "Invalid parameter 'optimizer'"),
        (EnergyLM(), dict(output__direct=True), ValueError,
         "Invalid parameter 'output'"),
        (NeuralLM(solver="lbfgs"), dict(solver__beta_1=0.9), ValueError,
         "'solver' parameter .* one of 'adam', 'sgd', .* Got 'lbfgs'"),
        (NeuralLM(solver=None), dict(solver__beta_1=0.9), TypeError,
         "'solver' parameter of .* Got None"),
        (NeuralLM(solver=SGD), dict(solver__learning_rate="linear"), TypeError,
         "'solver' parameter of NeuralLM must be one of"),
        (NeuralLM(), dict(n_hidden__x=99), ValueError, "parameter"),
    ],
)  # fmt: skip
def test_set_params_error_names_the_parameter(lm, params, error, message):
    lm = clone(lm, safe=False)
    before = dict(vars(lm))
    with pytest.raises(error, match=message):
        lm.set_params(n_hidden=99, **params)
    assert vars(lm) == before


# -- clones, searches, pickles and files -------------------------------------------


@each_other
def test_options_survive_clone_pickle_and_save(data, tmp_path, other):
    lm = NeuralLM(**SMALL | other)
    own, [*names] = repr(lm), other
    copies = clone(lm), pickle.loads(pickle.dumps(lm))
    lm.fit(*data)
    save(lm, tmp_path / "lm")
    copies += pickle.loads(pickle.dumps(lm)), load(tmp_path / "lm")
    for copy in copies:
        for name in names:
            assert type(getattr(copy, name)) is type(getattr(lm, name))
            assert getattr(copy, name) is not getattr(lm, name)
        for name, value in lm.get_params().items():
            if name not in names:
                np.testing.assert_array_equal(copy.get_params()[name], value)
        assert_same_weights(clone(copy).fit(*data), lm)
    for copy in copies[2:]:
        np.testing.assert_array_equal(copy.log_prob(*data), lm.log_prob(*data))
    assert repr(lm) == own


def test_strings_survive_clone_pickle_and_save(data, tmp_path):
    lm = NeuralLM(**SMALL, loss="nce", solver="sgd", output="softmax").fit(*data)
    save(lm, tmp_path / "lm")
    for copy in (clone(lm), pickle.loads(pickle.dumps(lm)), load(tmp_path / "lm")):
        assert copy.get_params() == lm.get_params()


@pytest.mark.parametrize("loss", ["nce", NCE(proposal_power=0.5)], ids=repr)
@pytest.mark.parametrize("solver", ["adam", Adam(beta_1=0.8)], ids=repr)
def test_a_search_over_parameters_of_options(data, solver, loss):
    lm = NeuralLM(**SMALL, solver=solver, loss=loss)
    before = repr(lm)
    grid = {"solver__learning_rate": ["constant", "linear"], "loss__n_noise": [1, 5]}
    search = GridSearchCV(lm, grid, cv=2, error_score="raise").fit(*data)
    assert len(set(search.cv_results_["mean_test_score"])) == 4
    best = clone(lm).set_params(**search.best_params_)
    assert_same_weights(search.best_estimator_, best.fit(*data))
    assert repr(lm) == before


# -- what a fit came to ------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "loss"),
    [
        (dict(), "Exact()"),
        (dict(n_words=2049), "Importance()"),
        (dict(loss="importance"), "Importance()"),
        (dict(loss=NCE(5, proposal_power=1)), "NCE(n_noise=5)"),
        (dict(loss=Importance(3, min_effective_samples=2)),
         "Importance(min_effective_samples=2.0, n_noise=3)"),
    ],
)  # fmt: skip
def test_loss_attribute_is_the_training_loss(data, tmp_path, settings, loss):
    lm = NeuralLM(**SMALL | settings)
    with pytest.raises(AttributeError, match="no loss_ before it is fitted"):
        lm.loss_  # noqa: B018
    assert repr(lm.fit(*data).loss_) == loss
    lm.set_params(loss="exact")
    save(lm, tmp_path / "lm")
    for same in (lm, pickle.loads(pickle.dumps(lm)), load(tmp_path / "lm")):
        assert repr(same.loss_) == loss
    assert repr(lm.fit(*data).loss_) == "Exact()"


# -- networks by name --------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("small", dict(n_hidden=192, embedding_dim=96)),
        ("default", dict()),
        ("large_vocabulary", dict(n_hidden=384, embedding_dim=256, alpha=0.03)),
        ("distant", dict(order=6, n_distant=128)),
        (
            "memory",
            dict(
                order=2,
                n_memory=128,
                output__tied=True,
                output__direct=True,
                n_hidden=256,
                embedding_dim=192,
                learning_rate_init=8e-3,
                alpha=0.1,
                dropout=(0.2, 0.0, 0.1),
                batch_size=1024,
                solver__beta_2=0.99,
                solver__learning_rate="linear",
            ),
        ),
    ],
)
def test_presets(name, params):
    lm = NeuralLM.preset(name, max_iter=1, solver__beta_1=0.8)
    own = lm.get_params()
    assert params.items() <= own.items()
    assert (own["max_iter"], own["solver__beta_1"]) == (1, 0.8)
    default = NeuralLM().get_params()
    others = {key for key in default if repr(own[key]) != repr(default[key])}
    if name == "default":
        assert others == {"max_iter", "solver"}
    n_window = 2 if lm.order is None else lm.order - 1
    n_context = max(n_window, lm.n_distant, lm.n_memory)
    lm.set_params(n_hidden=4, embedding_dim=3, n_words=N_WORDS)
    lm.fit(*windows(text(300, n_words=N_WORDS), n_context))


@pytest.mark.parametrize(("name", "n_epochs"), [("memory", 7), ("large_vocabulary", 4)])
def test_cells_of_presets_train_for_max_iter_epochs(name, n_epochs):
    small = dict(n_hidden=4, embedding_dim=3, n_words=N_WORDS, early_stopping=False)
    ids = text(300, n_words=N_WORDS)
    lm = NeuralLM.preset(name, **small)
    assert lm.fit_stream(ids).n_iter_ == n_epochs
    assert lm.set_params(max_iter=6).fit_stream(ids).n_iter_ == 6


def test_unknown_preset_is_refused():
    with pytest.raises(
        ValueError, match="name='big' is not a preset; choose among default, small"
    ):
        NeuralLM.preset("big")


@pytest.mark.parametrize(
    ("changes", "solver", "output"),
    [
        (dict(), "SGD(learning_rate='invscaling')", "Softmax(direct=True)"),
        # An option replaces that of the paper whole, and so does a string.
        (dict(solver="adam", output="tree"), "'adam'", "'tree'"),
        (dict(solver=Adam("linear"), output=Tree()),
         "Adam(learning_rate='linear')", "Tree()"),
        (dict(solver__learning_rate="constant", output__direct=False),
         "SGD(learning_rate='constant')", "Softmax()"),
        (dict(solver=Adam(), solver__beta_1=0.8), "Adam(beta_1=0.8)",
         "Softmax(direct=True)"),
    ],
)  # fmt: skip
def test_from_paper_accepts_other_options(changes, solver, output):
    lm = NeuralLM.from_paper("MLP1", **changes)
    assert (repr(lm.solver), repr(lm.output)) == (solver, output)
    tied = NeuralLM.preset("large_vocabulary", output="classes").output
    assert tied == "classes"
