"""Validation of documents and its error messages."""

import mmap
from array import array

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix, dok_array, dok_matrix
from sklearn.pipeline import make_pipeline

from nplm import InterpolatedTrigram, TextLM, Tokenizer, Vocabulary, windows

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
        with pytest.raises(TypeError, match=r"has 2 columns.*X\['text'\]; .* 'text'\."):
            use(table)


def test_the_column_with_the_longest_text_is_named(tables):
    columns = {f"c{i}": [float("nan"), i, i] for i in range(11)}
    columns |= {"label": ["x", "y", "x"], "story": TEXTS}
    with pytest.raises(
        TypeError, match=r"13 columns.*X\['story'\].* 'story', 'label'\."
    ):
        pipeline().fit(tables.DataFrame(columns))
    numbers = tables.DataFrame({f"c{i}": [i] for i in range(13)})
    with pytest.raises(TypeError, match=r"X\['c0'\]; they are 'c0', .*'c9' and 3 more"):
        pipeline().fit(numbers)


def arrow_texts(pa, texts):
    """Return texts in arrays and tables of Arrow of several types."""
    array = pa.array(texts)
    return [
        array,
        pa.chunked_array([array[:1], array[1:]]),
        pa.array(texts, pa.large_string()),
        pa.array(texts, pa.string_view()),
        array.dictionary_encode(),
        pa.table({"text": array}),
        pa.record_batch({"text": array}),
    ]


def test_strings_of_arrow_are_text():
    pa = pytest.importorskip("pyarrow")
    expected = TextLM(InterpolatedTrigram()).fit(TEXTS)
    for texts in arrow_texts(pa, TEXTS):
        lm = TextLM(InterpolatedTrigram()).fit(texts)
        assert lm.vocabulary_.ids_ == expected.vocabulary_.ids_
        for method in ("score_samples", "perplexity", "text_scores"):
            np.testing.assert_array_equal(
                getattr(lm, method)(texts), getattr(expected, method)(TEXTS)
            )


def test_lists_of_arrow_are_tokens_or_ids():
    pa = pytest.importorskip("pyarrow")
    for documents in ([text.split() for text in TEXTS], [[1, 2, 2], [2]]):
        expected = TextLM(InterpolatedTrigram()).fit(documents)
        array = pa.array(documents)
        for own in (array, [pa.array(document) for document in documents]):
            lm = TextLM(InterpolatedTrigram()).fit(own)
            assert lm.perplexity(own) == expected.perplexity(documents)
        words, proba = lm.next_words(pa.array(documents[0][:2]))
        expected_words, expected_proba = expected.next_words(documents[0][:2])
        assert list(words) == list(expected_words)
        np.testing.assert_array_equal(proba, expected_proba)
    vocabulary = Vocabulary(words=pa.array(["a", "b"])).fit()
    assert vocabulary.words_.tolist() == ["</s>", "<unk>", "a", "b"]
    with pytest.raises(TypeError, match=r"StringScalar: 'a'>.*to_pylist"):
        Vocabulary().fit([[pa.scalar("a")]])
    for texts in (list(pa.array(TEXTS)), iter(pa.array(TEXTS))):
        with pytest.raises(TypeError, match=r"X\[0\] is .*of Arrow.*to_pylist"):
            TextLM(InterpolatedTrigram()).fit(texts)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, np.bytes_, "mmap"])
def test_bytes_are_no_documents(kind, tmp_path):
    """Bytes are neither text nor ids, alone and in a list."""
    data = TEXTS[0].encode()
    if kind == "mmap":
        (tmp_path / "text").write_bytes(data)
        with open(tmp_path / "text", "rb") as file:
            document = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    else:
        document = kind(data)
    models = [
        TextLM(InterpolatedTrigram()).fit(documents)
        for documents in (TEXTS, [text.split() for text in TEXTS], [[1, 2], [2]])
    ]
    uses = [use for lm in models for use in (lm.score_samples, lm.perplexity)]
    for use in (TextLM(InterpolatedTrigram()).fit, Vocabulary().fit, *uses):
        with pytest.raises(TypeError, match=r"X\[0\] is of type .*decode it first"):
            use([document])
        with pytest.raises(TypeError, match=f"got {type(document).__name__}; pass"):
            use(document)
    for lm in models:
        with pytest.raises(TypeError, match="context is of type"):
            lm.next_words(document)
    with pytest.raises((TypeError, ValueError), match="ids"):
        windows(document, 2)


def test_arrays_of_small_numbers_are_ids():
    expected = TextLM(InterpolatedTrigram()).fit([[1, 2, 2]])
    for kind in (np.uint8, np.int8):
        ids = np.array([1, 2, 2], kind)
        for document in (ids, array(ids.dtype.char, ids.tolist())):
            lm = TextLM(InterpolatedTrigram()).fit([document])
            assert lm.perplexity([document]) == expected.perplexity([[1, 2, 2]])
    numbers = memoryview(np.array([1, 2, 2], np.int32))
    assert expected.perplexity([numbers]) == expected.perplexity([[1, 2, 2]])


def lazy_frames():
    polars = pytest.importorskip("polars")
    return [polars.LazyFrame({"text": TEXTS})]


def dask_frames():
    dask = pytest.importorskip("dask.dataframe")
    table = pytest.importorskip("pandas").DataFrame({"text": TEXTS})
    frame = dask.from_pandas(table, npartitions=2)
    return [frame, frame["text"]]


@pytest.mark.parametrize(
    ("make", "remedy"),
    [
        (lazy_frames, "collect"),
        # Dask takes long to import.
        pytest.param(dask_frames, "compute", marks=pytest.mark.slow),
    ],
)
def test_what_is_not_computed_is_refused(make, remedy):
    lm = TextLM(InterpolatedTrigram()).fit(TEXTS)
    for X in make():
        for use in (lm.fit, lm.score_samples, Tokenizer().transform):
            with pytest.raises(TypeError, match=rf"not computed yet: pass X\.{remedy}"):
                use(X)


def test_a_sparse_matrix_is_refused_in_its_own_words():
    # Those of the kind dok are mappings in some releases of SciPy.
    for kind in (csr_array, csr_matrix, dok_array, dok_matrix):
        message = rf"X is a sparse {kind.__name__}, which has counts"
        with pytest.raises(TypeError, match=message):
            TextLM(InterpolatedTrigram()).fit(kind(np.eye(3)))


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


def test_raw_held_out_text_behind_a_pipeline_is_refused():
    with pytest.raises(TypeError, match=r"X_val\[0\] .*transform_input=\['X_val'\]"):
        pipeline().fit(TEXTS, textlm__X_val=TEXTS)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
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
