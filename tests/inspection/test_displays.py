"""Displays: the data drawn equal those of another computation."""

import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from nplm import (
    InterpolatedTrigram,
    MixtureLM,
    TextLM,
    UniformLM,
    windows,
)
from nplm.inspection import (
    FeaturesDisplay,
    MixtureWeightsDisplay,
    NextWordsDisplay,
    PerplexityDisplay,
    TrainingDisplay,
)
from tests.helpers import energy_lm, neural_lm

plt = pytest.importorskip("matplotlib.pyplot")
DISPLAYS = [
    FeaturesDisplay,
    MixtureWeightsDisplay,
    NextWordsDisplay,
    PerplexityDisplay,
    TrainingDisplay,
]
V = 12
X, Y = windows(np.random.default_rng(0).zipf(1.5, 700) % V, 2)
TRAIN, TEST = (X[:500], Y[:500]), (X[500:], Y[500:])
WORDS = [
    f"${i}$ or {i}" for i in range(V)
]  # matplotlib parses text between dollars as formulas


@pytest.fixture(autouse=True)
def no_screen():
    plt.switch_backend("agg")
    yield
    plt.close("all")


def network(**parameters):
    settings = dict(n_words=V, n_hidden=4, max_iter=3, random_state=0) | parameters
    return neural_lm(**settings)


@pytest.fixture(scope="module")
def trigram():
    return InterpolatedTrigram(n_words=V).fit(*TRAIN, X_val=TEST[0], y_val=TEST[1])


def positions(display):
    return np.array([text.xy for text in display.texts_])


def test_features_of_two_dimensions_are_drawn_directly():
    lm = network(embedding_dim=2).fit(*TRAIN)
    display = FeaturesDisplay.from_estimator(lm, WORDS, of=[WORDS[3], WORDS[1]])
    np.testing.assert_array_equal(positions(display), lm.C_[[3, 1]].astype(float))
    assert [text.get_text() for text in display.texts_] == [WORDS[3], WORDS[1]]
    assert display.ax_.get_xlabel() == "first feature"
    display.figure_.canvas.draw()


def test_more_features_are_drawn_by_their_principal_components():
    lm = network(embedding_dim=5).fit(*TRAIN)
    display = FeaturesDisplay.from_estimator(lm, WORDS, n_words=9)
    C = lm.C_[:9].astype(float)
    C -= C.mean(axis=0)
    _, s, axes = np.linalg.svd(C, full_matrices=False)
    np.testing.assert_allclose(np.abs(positions(display)), np.abs(C @ axes[:2].T))
    share = s[:2] ** 2 / (s**2).sum()
    np.testing.assert_allclose(display.explained_variance_ratio, share)
    assert f"({share[1]:.0%} of the variance)" in display.ax_.get_ylabel()


def test_features_inside_text_models_and_mixtures():
    mixture = MixtureLM([("kn", UniformLM()), ("energy", energy_lm(random_state=0))])
    lm = TextLM(mixture, n_context=2).fit(["a rose is a rose"] * 20)
    display = FeaturesDisplay.from_estimator(lm, n_words=3)
    assert display.words == lm.vocabulary_.words_[:3].tolist()


def test_features_errors_name_what_is_missing(trigram):
    lm = network(embedding_dim=2).fit(*TRAIN)
    with pytest.raises(TypeError, match="InterpolatedTrigram has no features"):
        FeaturesDisplay.from_estimator(trigram, WORDS)
    with pytest.raises(ValueError, match="has no vocabulary"):
        FeaturesDisplay.from_estimator(lm)
    with pytest.raises(ValueError, match=r"words has 3 words, but len\(C_\)=12"):
        FeaturesDisplay.from_estimator(lm, WORDS[:3])
    with pytest.raises(ValueError, match="of has 'no such', which is not among"):
        FeaturesDisplay.from_estimator(lm, WORDS, of=["no such"])


def test_learning_curves_are_the_history():
    lm = network(n_iter_no_change=3).fit(*TRAIN, X_val=TEST[0], y_val=TEST[1])
    display = TrainingDisplay.from_estimator(lm, name="mine")
    training, held_out = display.lines_
    assert training.get_xdata().tolist() == [1, 2, 3]
    np.testing.assert_allclose(training.get_ydata(), np.exp(lm.history_["loss"]))
    np.testing.assert_allclose(min(held_out.get_ydata()), lm.perplexity(*TEST))
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["mine, training", "mine, validation"]
    assert training.get_color() == held_out.get_color()
    display.plot(x="seconds")
    seconds = np.cumsum(lm.history_["seconds"])
    np.testing.assert_allclose(display.lines_[0].get_xdata(), seconds)
    axes, figures = display.ax_, plt.get_fignums()
    with pytest.raises(ValueError, match="'hours'"):
        display.plot(x="hours")
    with pytest.raises(AttributeError, match="colour"):
        display.plot(colour="black")
    assert display.ax_ is axes
    assert plt.get_fignums() == figures  # none that is empty


def test_learning_curves_without_held_out_windows_and_of_two_fits():
    alone = network().set_params(early_stopping=False).fit(*TRAIN)
    display = TrainingDisplay.from_estimator(alone)
    assert display.val_perplexity is None
    assert len(display.lines_) == 1
    text = TextLM(energy_lm(max_iter=2, random_state=0)).fit(["a rose is a rose"] * 9)
    other = TrainingDisplay.from_estimator(text, ax=display.ax_)
    assert other.name == "EnergyLM"
    assert len(display.ax_.lines) == 2


def test_learning_curves_need_epochs(trigram):
    with pytest.raises(TypeError, match="InterpolatedTrigram has no loss per epoch"):
        TrainingDisplay.from_estimator(trigram)


@pytest.mark.parametrize("by", ["context", "word"])
def test_perplexity_by_bin_is_that_of_its_tokens(trigram, by):
    models = {"one": trigram, "two": UniformLM(n_words=V).fit(*TRAIN)}
    bins = [0, 1, 5, 20]
    display = PerplexityDisplay.from_estimator(
        models, *TEST, by=by, train=TRAIN, bins=bins
    )

    def of(windows_):
        return [tuple(row) for row in windows_[0]] if by == "context" else windows_[1]

    seen = Counter(of(TRAIN))
    frequency = [seen[row] for row in of(TEST)]
    for row, model in zip(display.perplexity, models.values()):
        for place, (low, high) in enumerate(zip(bins, [*bins[1:], 10**9])):
            inside = [low <= f < high for f in frequency]
            assert display.n_tokens[place] == sum(inside)
            if any(inside):
                expected = model.perplexity(TEST[0][inside], TEST[1][inside])
                assert row[place] == pytest.approx(expected)
            else:
                assert np.isnan(row[place])
    for line, row in zip(display.lines_, display.perplexity):
        np.testing.assert_array_equal(line.get_ydata(), row)
    labels = [tick.get_text() for tick in display.ax_.get_xticklabels()]
    assert [label.split("\n")[0] for label in labels] == [
        "never",
        "1 to 4",
        "5 to 19",
        "20 or more",
    ]
    assert labels[1].endswith(f"{display.n_tokens[1] / len(TEST[1]):.0%}")


def test_contexts_may_be_longer_or_shorter(trigram):
    display = PerplexityDisplay.from_estimator(
        trigram, *TEST, by="context", train=TRAIN, n_context=1
    )
    seen = set(TRAIN[0][:, -1])
    never = [word for word in TEST[0][:, -1] if word not in seen]
    assert display.n_tokens[0] == len(never)
    assert display.bins.tolist() == [0, 1, 10, 100]


def test_perplexity_of_all_tokens_is_a_bar_per_model(trigram):
    bigram = InterpolatedTrigram(2, n_words=V).fit(*TRAIN)
    display = PerplexityDisplay.from_estimator(
        {"trigram": trigram, "bigram": bigram}, *TEST, color="grey"
    )
    widths = [bar.get_width() for bar in display.bars_]
    assert widths == [
        pytest.approx(model.perplexity(*TEST)) for model in (trigram, bigram)
    ]
    assert PerplexityDisplay.from_estimator(trigram, *TEST).names == [
        "InterpolatedTrigram"
    ]


def test_invalid_bins_are_refused(trigram):
    with pytest.raises(ValueError, match=r"train=\(X, y\)"):
        PerplexityDisplay.from_estimator(trigram, *TEST, by="word")
    with pytest.raises(ValueError, match="'length'"):
        PerplexityDisplay.from_estimator(trigram, *TEST, by="length", train=TRAIN)
    for bins in ([1, 2], [0, 5, 5], [], [[0]]):
        with pytest.raises(ValueError, match="increasing from 0"):
            PerplexityDisplay.from_estimator(
                trigram, *TEST, by="word", train=TRAIN, bins=bins
            )


def test_next_words_of_text_and_of_windows(trigram):
    lm = TextLM(InterpolatedTrigram(), n_context=2).fit(["to be or not to be"] * 9)
    display = NextWordsDisplay.from_estimator(lm, "not to", k=9, exclude=["not"])
    words, proba = lm.next_words("not to", 9, exclude=["not"])
    assert not {"<unk>", "not"} & set(words)
    assert display.words == words
    assert [bar.get_width() for bar in display.bars_] == proba.tolist()
    assert display.ax_.get_title() == "not to …"

    display = NextWordsDisplay.from_estimator(trigram, [3, 1], words=WORDS, k=4)
    proba = trigram.predict_proba([[3, 1]])[0]
    best = sorted(range(V), key=lambda i: -proba[i])[:4]
    assert display.words == [WORDS[i] for i in best]
    np.testing.assert_array_equal(display.proba, proba[best])
    assert display.ax_.get_title() == f"{WORDS[3]} {WORDS[1]} …"
    labels = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    assert labels == display.words
    display.figure_.canvas.draw()


def test_next_words_exclude_unknown_by_default(trigram):
    lm = TextLM(InterpolatedTrigram(), n_context=2).fit(["to be or not to be"] * 9)
    words = ["<unk>", *WORDS[1:]]
    show = NextWordsDisplay.from_estimator
    for given in [(lm, "to"), (trigram, [3, 1], words)]:
        options = {"words": given[2]} if given[2:] else {}
        assert "<unk>" not in show(*given[:2], k=99, **options).words
        display = show(*given[:2], k=99, unknown=True, **options)
        assert "<unk>" in display.words
        assert display.proba.sum() == pytest.approx(1)
    assert show(trigram, [3, 1], words=words, k=99).proba.sum() == pytest.approx(1)


def test_next_words_need_words(trigram):
    with pytest.raises(ValueError, match=r"words is None, but .* n_words_=12"):
        NextWordsDisplay.from_estimator(trigram, [3, 1])
    with pytest.raises(ValueError, match="exclude has 'no such'"):
        NextWordsDisplay.from_estimator(
            trigram, [3, 1], words=WORDS, exclude=["no such"]
        )
    lm = TextLM(InterpolatedTrigram(), n_context=2).fit(["to be or not to be"] * 9)
    with pytest.raises(ValueError, match="a TextLM has its own"):
        NextWordsDisplay.from_estimator(lm, "to", words=WORDS)


def heights(display):
    return np.array([[bar.get_height() for bar in bars] for bars in display.bars_]).T


def test_weights_are_stacked(trigram):
    display = MixtureWeightsDisplay.from_estimator(trigram)
    np.testing.assert_allclose(heights(display), trigram.weights_)
    tops = [bar.get_y() + bar.get_height() for bar in display.bars_[-1]]
    np.testing.assert_allclose(tops, 1)
    middles = [bar.get_x() + bar.get_width() / 2 for bar in display.bars_[0]]
    np.testing.assert_allclose(middles, trigram.bins_)
    assert display.names == ["uniform", "unigram", "bigram", "trigram"]


def test_weights_of_one_row_and_of_long_ngrams():
    members = [("trigram", InterpolatedTrigram()), ("bigram", InterpolatedTrigram(2))]
    fixed = MixtureLM(members, [0.25, 0.75], n_words=V).fit(*TRAIN)
    display = MixtureWeightsDisplay.from_estimator(fixed)
    assert heights(display).tolist() == [[0.25, 0.75]]
    assert display.names == ["trigram", "bigram"]
    wide, next_words = windows(np.random.default_rng(1).integers(0, 5, 300), 4)
    lm = InterpolatedTrigram(5).fit(wide, next_words)
    names = MixtureWeightsDisplay.from_estimator(lm).names
    assert names[3:] == ["trigram", "4-gram", "5-gram"]
    with pytest.raises(TypeError, match="UniformLM is not a mixture"):
        MixtureWeightsDisplay.from_estimator(UniformLM(n_words=V).fit(*TRAIN))


@pytest.mark.parametrize("display", DISPLAYS, ids=lambda d: d.__name__)
def test_the_axes_given_are_drawn_on(display, trigram):
    figure, ax = plt.subplots()
    arguments = {
        FeaturesDisplay: (network().fit(*TRAIN), WORDS),
        MixtureWeightsDisplay: (trigram,),
        NextWordsDisplay: (trigram, [1, 2]),
        PerplexityDisplay: (trigram, *TEST),
        TrainingDisplay: (network().fit(*TRAIN),),
    }[display]
    words = {"words": WORDS} if display is NextWordsDisplay else {}
    shown = display.from_estimator(*arguments, **words, ax=ax)
    assert shown.ax_ is ax
    assert shown.figure_ is figure
    assert shown.plot().ax_ is not ax


@pytest.mark.parametrize("display", DISPLAYS, ids=lambda d: d.__name__)
def test_missing_matplotlib_is_reported_before_computing(display, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    arguments = {NextWordsDisplay: (None, None), PerplexityDisplay: (None,) * 3}
    message = f"{display.__name__}.from_estimator requires matplotlib: python -m pip"
    with pytest.raises(ImportError, match=message):
        display.from_estimator(*arguments.get(display, (None,)))


@pytest.mark.parametrize("display", DISPLAYS, ids=lambda d: d.__name__)
def test_unfitted_models_are_refused(display):
    arguments = {NextWordsDisplay: ([1, 2],), PerplexityDisplay: TEST}
    with pytest.raises(NotFittedError):
        display.from_estimator(network(), *arguments.get(display, ()))


@pytest.mark.slow
def test_matplotlib_is_imported_late():
    code = "import nplm.inspection, sys; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
