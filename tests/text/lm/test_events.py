"""What is a document and what is an event, in every method of a text model."""

import gc
import weakref

import numpy as np
import pytest

from nplm import (
    InterpolatedTrigram,
    KneserNeyLM,
    LMDetector,
    TextLM,
    Tokenizer,
    Vocabulary,
)
from nplm.inspection import expected_words, surprisals
from tests.helpers import energy_lm, paper_lm

TONIC, FOURTH, FIFTH = (0, 4, 7), (5, 9, 0), (7, 11, 2)
CHORDS = [[TONIC, FOURTH, FIFTH, TONIC], [TONIC, FIFTH]] * 10
FALLBACK = {"discount_fallback": (0.5, 1, 1.5)}
MODELS = {
    "trigram": InterpolatedTrigram(),
    "Kneser-Ney": KneserNeyLM(3, **FALLBACK),
    "network": paper_lm(n_hidden=2, max_iter=1, random_state=0),
}


def document_methods(lm):
    """Return the functions of a list of documents."""
    names = ("score_samples", "score", "perplexity", "token_scores", "score_many")
    scorer = lm.scorer()
    methods = [getattr(lm, name, None) or getattr(scorer, name) for name in names]
    return [*methods, lambda X: surprisals(lm, X)]


def context_methods(lm):
    """Return the functions of one document."""
    return [
        lm.next_words,
        lambda document: lm.generate(document, with_context=True, random_state=0),
        lm.scorer().score,
        lambda document: expected_words(lm, document),
    ]


def word_methods(lm):
    """Return the functions of one event."""
    scorer = lm.scorer()
    start = scorer.begin()
    return [
        lambda word: scorer.step(start, word),
        lambda word: scorer.steps([start], [word]),
        lambda word: scorer.candidates(start, [word]),
        lambda word: lm.next_words(exclude=[word]),
        lambda word: lm.perplexity(CHORDS, skip=word),
    ]


@pytest.fixture(params=MODELS)
def lm(request):
    return TextLM(MODELS[request.param]).fit(CHORDS)


def test_an_event_is_no_document(lm):
    """The rule: the items of a document are events, so a tuple in it is one event."""
    for use in document_methods(lm):
        use([[TONIC], [TONIC, FIFTH]])
        for event in (TONIC, TONIC[::-1]):  # of the vocabulary, and another
            with pytest.raises(TypeError, match=r"pass \[\(\d, 4, \d\)\]"):
                use([[TONIC], event])
    for use in context_methods(lm):
        use([TONIC])
        for event in (TONIC, TONIC[::-1]):
            with pytest.raises(TypeError, match=r"is \(\d, 4, \d\), .*pass \[\(\d, 4"):
                use(event)
    with pytest.raises(TypeError, match=r"X\[0\] is \(0, 4, 7\)"):
        LMDetector(MODELS["trigram"]).fit(CHORDS).predict([TONIC])
    with pytest.raises(TypeError, match=r"words is \(0, 4, 7\)"):
        lm.scorer().candidates(lm.scorer().begin(), TONIC)


def test_tuples_are_documents_as_lists_are(lm):
    tuples = [tuple(chords) for chords in CHORDS]
    own = TextLM(lm.estimator).fit(tuples)
    np.testing.assert_array_equal(own.score_samples(tuples), lm.score_samples(CHORDS))
    np.testing.assert_array_equal(lm.score_samples(tuples), lm.score_samples(CHORDS))
    for words, proba in (
        lm.next_words((TONIC, FOURTH)),
        own.next_words((TONIC, FOURTH)),
    ):
        assert words == lm.next_words([TONIC, FOURTH])[0]
        np.testing.assert_array_equal(proba, lm.next_words([TONIC, FOURTH])[1])
    assert lm.next_words(())[0] == lm.next_words([])[0]


def test_a_tuple_of_known_events_is_a_document():
    """A tuple may be an event and a document: its place decides."""
    pairs = [["a", "b", ("a", "b")]] * 9
    lm = TextLM(InterpolatedTrigram()).fit(pairs)
    assert lm.score_samples([("a", "b")]) == lm.score_samples([["a", "b"]])
    assert lm.score_samples([[("a", "b")]]) != lm.score_samples([["a", "b"]])
    with pytest.raises(TypeError, match=r"no event 'c'"):
        TextLM(InterpolatedTrigram()).fit([[("a", "c"), "a"]]).score([("a", "c")])


def test_events_are_added_by_the_same_rule():
    lm = TextLM(energy_lm(max_iter=1)).fit(CHORDS)
    with pytest.raises(TypeError, match=r"pass \[\(0, 4, 7\)\]"):
        lm.add_words([TONIC])
    with pytest.raises(TypeError, match=r"hashable events, got .* of type list"):
        lm.add_words([[TONIC, [0, 3, 7]]])
    minor = (0, 3, 7)
    assert lm.add_words([[TONIC, minor]]).vocabulary_.words_[-1] == minor


def test_events_that_no_vocabulary_has_are_freed():
    class Event:
        pass

    rare = Event()
    rare_is_alive = weakref.ref(rare)
    gc.disable()
    try:
        lm = TextLM(InterpolatedTrigram(), vocabulary=Vocabulary(min_count=2))
        lm.fit([["a", "b", rare], ["a", "b"]])
        del rare
        assert not rare_is_alive()
    finally:
        gc.enable()


def test_unhashable_events_are_named(lm):
    for bad, kind in (
        ([0, 4, 7], "list"),
        (np.array(TONIC), "ndarray"),
        ({0: 4}, "dict"),
    ):
        message = f"must be strings or hashable events, got .* of type {kind}"
        for use in document_methods(lm):
            with pytest.raises(TypeError, match=message):
                use([[TONIC], [TONIC, bad]])
        for use in context_methods(lm):
            with pytest.raises(TypeError, match=message):
                use([TONIC, bad])
        for use in word_methods(lm):
            with pytest.raises(TypeError, match=message):
                use(bad)


def test_a_string_is_no_list_of_events(lm):
    for use in (*context_methods(lm), lambda word: lm.scorer().score_many([word])):
        with pytest.raises(TypeError, match="is a string, 'typo'"):
            use("typo")
    with pytest.raises(TypeError, match="words is a string, 'typo'"):
        lm.scorer().candidates(lm.scorer().begin(), "typo")


def test_unknown_events_are_refused_on_request(lm):
    kept = lm.score_samples([[TONIC, "typo"]])
    lm.set_params(handle_unknown="error")
    np.testing.assert_array_equal(
        lm.score_samples(CHORDS), TextLM(lm.estimator).fit(CHORDS).score_samples(CHORDS)
    )
    message = r"'typo' is not (among the \d words of|in) the vocabulary"
    for use in document_methods(lm):
        with pytest.raises(ValueError, match=message):
            use([[TONIC], [TONIC, "typo"]])
    for use in context_methods(lm):
        with pytest.raises(ValueError, match=message):
            use(["typo"])
    for use in word_methods(lm):
        with pytest.raises(ValueError, match=message):
            use("typo")
    lm.set_params(handle_unknown="symbol")
    np.testing.assert_array_equal(lm.score_samples([[TONIC, "typo"]]), kept)
    with pytest.raises(ValueError, match="handle_unknown"):
        lm.set_params(handle_unknown="raise").fit(CHORDS)


@pytest.mark.parametrize("pattern", [r"[^ \t\r\n]+", None])
def test_unknown_words_of_text_are_refused_on_request(pattern):
    texts = ["a rose is a rose", "is a rose <unk>"] * 9
    for estimator in MODELS.values():
        lm = TextLM(
            estimator,
            tokenizer=Tokenizer(pattern),
            vocabulary=Vocabulary(min_count=9),
            handle_unknown="error",
        ).fit([*texts, "rare"])  # counted as <unk> in the fit
        for use in (*document_methods(lm), lm.text_scores):
            use(["a rose"])
            with pytest.raises(
                ValueError, match=r"'tulip' .*unknown words are refused"
            ):
                use(["a rose", "a tulip"])
        with pytest.raises(ValueError, match=r'set handle_unknown="symbol"'):
            lm.next_words("rare")
        assert lm.generate("a", random_state=0, max_words=3)
