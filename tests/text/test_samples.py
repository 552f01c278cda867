"""Validation of documents and its error messages."""

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix, dok_array, dok_matrix
from sklearn.pipeline import make_pipeline

from nplm import InterpolatedTrigram, TextLM, Tokenizer, Vocabulary

TEXTS = ["the cat sat on the mat .", "the dog sat on the cat .", "a dog saw a zebra ."]


def pipeline():
    return make_pipeline(Tokenizer(), Vocabulary(), TextLM(InterpolatedTrigram()))


@pytest.fixture(params=["pandas", "polars"])
def tables(request):
    return pytest.importorskip(request.param)


def test_single_column_is_documents(tables):
    expected = pipeline().fit(TEXTS)
    for documents in (tables.Series(TEXTS), tables.DataFrame({"text": TEXTS})):
        model = pipeline().fit(documents)
        assert model["vocabulary"].ids_ == expected["vocabulary"].ids_
        np.testing.assert_array_equal(
            model.score_samples(documents), expected.score_samples(TEXTS)
        )


@pytest.mark.parametrize("kind", [str, object])
def test_an_array_of_one_column_of_strings_is_documents(kind):
    column = np.array(TEXTS, dtype=kind)[:, np.newaxis]
    expected = TextLM(InterpolatedTrigram()).fit(TEXTS)
    model = TextLM(InterpolatedTrigram()).fit(column)
    assert model.vocabulary_.ids_ == expected.vocabulary_.ids_
    assert model.perplexity(column) == expected.perplexity(TEXTS)
    ids = np.array([[1], [2], [1]])  # documents of one word each
    assert TextLM(InterpolatedTrigram()).fit(ids).n_words_ == 3


def test_several_columns_are_not_documents(tables):
    table = tables.DataFrame({"text": TEXTS, "year": range(len(TEXTS))})
    model = pipeline().fit(TEXTS)
    for use in (pipeline().fit, model.score, Vocabulary().fit, model["textlm"].score):
        with pytest.raises(TypeError, match=r"has 2 columns.*one of 'text', 'year'"):
            use(table)


def test_a_sparse_matrix_is_refused_in_its_own_words():
    # Those of the kind dok are mappings in some releases of SciPy.
    for kind in (csr_array, csr_matrix, dok_array, dok_matrix):
        message = rf"X is a sparse {kind.__name__}, which has counts"
        with pytest.raises(TypeError, match=message):
            TextLM(InterpolatedTrigram()).fit(kind(np.eye(3)))


def test_a_missing_document_is_named(tables):
    with pytest.raises(TypeError, match=r"X\[1\] is missing"):
        pipeline().fit(tables.Series(["a text", None, "another"]))


@pytest.mark.parametrize(
    "use",
    [
        Tokenizer().transform,
        Vocabulary().fit,
        Vocabulary().fit([["a"]]).transform,
        Vocabulary().fit([["a"]]).inverse_transform,
        Vocabulary().fit([["a"]]).count_unknown,
        TextLM(InterpolatedTrigram()).fit,
        TextLM(InterpolatedTrigram()).fit([[1]]).score,
    ],
    ids=lambda use: use.__qualname__,
)
def test_unordered_collections_are_refused(use):
    with pytest.raises(TypeError, match=r"X is of type dict.* keys 'one', 'two'"):
        use({"one": "a text", "two": "another"})
    for X in ("a text", b"a text", bytearray(b"a text"), {"a", "text"}, None, 3):
        with pytest.raises(TypeError, match="X must be a list of documents"):
            use(X)


@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan")])
@pytest.mark.parametrize(
    "use", [Tokenizer().transform, Vocabulary().fit, Vocabulary().fit([[]]).transform]
)
def test_missing_document_is_refused(use, missing):
    with pytest.raises(TypeError, match=r"X\[0\] is missing"):
        use([missing])


def test_a_context_of_another_kind_is_named():
    of_text = TextLM(InterpolatedTrigram()).fit(["a b c"] * 9)
    of_tokens = TextLM(InterpolatedTrigram()).fit([["a", "b"]] * 9)
    with pytest.raises(TypeError, match=r"^context is of type list: .* on strings"):
        of_text.next_words(["a", "b"])
    with pytest.raises(TypeError, match=r"^context is a string, 'a b': .* of tokens"):
        of_tokens.generate("a b")


def test_scores_of_a_stream_need_a_list():
    lm = TextLM(InterpolatedTrigram(), 2).fit(iter(["a b", "b"]))
    for use in (lm.score, lm.score_samples, lm.perplexity, lm.token_scores):
        with pytest.raises(TypeError, match=r"got list_iterator; pass list\(X\)"):
            use(iter(["a b"]))


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ("raw text", TypeError, "list of documents"),
        ([[1], "raw text"], TypeError, "Put a Tokenizer and a Vocabulary"),
        (["raw text", ["a", "b"]], TypeError, r"X\[1\] is of type list"),
        ([["a", "b"], "raw text"], TypeError, r"X\[1\] is a string"),
        ([["a", None]], TypeError, "token is missing"),
        ([1, 2, 3], TypeError, "single document in a list"),
        ([[1], [2, -3]], ValueError, r"X\[1\] has -3 at 1"),
        ([[1.5]], ValueError, "not a whole number"),
        ([[1], None], TypeError, r"X\[1\] is missing \(None\)"),
        ([[1], float("nan")], TypeError, r"X\[1\] is missing \(nan\)"),
        ([{1, 2}], TypeError, r"X\[0\] is of type set"),
        (b"bytes", TypeError, "list of documents"),
        (None, TypeError, "list of documents"),
        ([], ValueError, "no token"),
        ([""], ValueError, "n_samples=1 windows are too few"),
        ([[1, [2]]], ValueError, r"X\[0\] must have 1 dim.*, got sequences in"),
        ([[1, {2}]], TypeError, r"X\[0\] must hold .* items are not numbers"),
        ([[1, None], ["a"]], TypeError, r"token is missing \(None\)"),
        (["", b"bytes"], TypeError, r"X\[1\] is of type bytes: .*; decode it first"),
    ],
)
def test_fit_refuses_what_is_not_documents(X, error, message):
    with pytest.raises(error, match=message):
        TextLM(InterpolatedTrigram()).fit(X)


@pytest.mark.parametrize(
    "documents",
    [
        [[1, "a"], ["a", 1]],
        [["a", 1], [1, "a"]],
        [[1, (2, 3)]],
        [[1, 2], [3, b"a"]],
        [[], (1, frozenset({2}))],
        [np.array([1, 2]), ["a"]],
        [np.array([1, "a"], dtype=object)],
    ],
)
def test_one_non_number_makes_all_tokens_events(documents):
    lm = TextLM(InterpolatedTrigram()).fit(documents)
    tokens = {token for document in documents for token in document}
    assert set(lm.vocabulary_.words_[2:]) == tokens
    assert lm.score_samples(documents).shape == (len(documents),)
    again = Vocabulary().fit(documents)
    assert again.words_.tolist() == lm.vocabulary_.words_.tolist()


@pytest.mark.parametrize("words", [["a", "b"], ("a",), np.array(["a"]), {"a": 0}])
def test_list_as_vocabulary_error_names_from_words(words):
    with pytest.raises(TypeError, match=r"vocabulary=Vocabulary\.from_words\(words\)"):
        TextLM(InterpolatedTrigram(), vocabulary=words).fit(["a b"])


@pytest.mark.parametrize("document", [[[1, 2], [3]], [{}], [[1], None]])
def test_invalid_document_of_ids_is_named(document):
    lm = TextLM(InterpolatedTrigram()).fit([[1, 2, 3]])
    for use in (TextLM(InterpolatedTrigram()).fit, lm.score):
        with pytest.raises((TypeError, ValueError), match=r"^X\[1\] must h"):
            use([[1], document])
    with pytest.raises((TypeError, ValueError), match=r"^context must h"):
        lm.next_words(document)
