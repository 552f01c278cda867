"""Subwords: units of three libraries, characters and bytes."""

import copy
import io
import json
import pickle
import sys
from functools import cache, partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import nplm
from nplm import KneserNeyLM, Subwords, TextLM, Vocabulary, static_mixture
from nplm.text.subwords.models import (
    BYTES,
    bytes_to_unicode,
    library_of,
    packed,
    unicode_to_text,
    unpacked,
)

TEXTS = ["The cat sat on the mat.", "A dog didn't sit?", "नमस्ते 日本語 café!"] * 20
NGRAMS = KneserNeyLM(discount_fallback=(0.5, 1, 1.5))
REASON = "needs the extra subwords"


def word_pieces():
    tokenizers = pytest.importorskip("tokenizers", reason=REASON)
    model = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    model.decoder = tokenizers.decoders.WordPiece()
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=80, special_tokens=["[UNK]", "[CLS]"], show_progress=False
    )
    model.train_from_iterator(TEXTS, trainer)
    return model


def sentence_pieces():
    library = pytest.importorskip("sentencepiece", reason=REASON)
    written = io.BytesIO()
    library.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS), model_writer=written, vocab_size=100,
        hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    return library.SentencePieceProcessor(model_proto=written.getvalue())


def encoding():
    tiktoken = pytest.importorskip("tiktoken", reason=REASON)
    ranks = {bytes([i]): i for i in range(256)} | {b"th": 256, b"he": 257, b" t": 258}
    return tiktoken.Encoding(
        "of the tests", pat_str=r"\s?\w+|[^\w\s]+|\s+", mergeable_ranks=ranks,
        special_tokens={"<|end|>": 259},
    )  # fmt: skip


@cache
def model_of(kind):
    makers = {"WordPiece": word_pieces, "SentencePiece": sentence_pieces}
    return (makers | {"tiktoken": encoding})[kind]()


KINDS = [
    "bpe",
    "unigram",
    "characters",
    "bytes",
    "WordPiece",
    "SentencePiece",
    "tiktoken",
]
OF_BYTES = ["bpe", "unigram", "bytes", "tiktoken"]


@cache
def units(kind):
    if kind in ("bpe", "unigram"):
        pytest.importorskip("tokenizers", reason=REASON)
    if kind in ("bpe", "unigram", "characters", "bytes"):
        return Subwords(kind, n_words=280).fit(TEXTS)
    return Subwords(model_of(kind)).fit()


@pytest.mark.parametrize("kind", [*OF_BYTES, "characters"])
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_units_spell_every_text(kind, text):
    tokens = units(kind).transform([text])
    assert units(kind).inverse_transform(tokens) == [text]
    if kind in OF_BYTES:
        assert set(tokens[0]) <= set(units(kind).words_)


@given(st.binary())
def test_bytes_are_spelled_as_printable_characters(data):
    text = bytes_to_unicode(data)
    assert len(text) == len(data)
    assert text.isprintable()
    assert not any(map(str.isspace, text))
    assert unicode_to_text([text]) == data.decode("utf-8", "replace")


def test_the_alphabet_is_that_of_the_tokenizers_package():
    tokenizers = pytest.importorskip("tokenizers", reason=REASON)
    assert sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()) == sorted(BYTES)
    split = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    for text in TEXTS:
        [(expected, _)] = split.pre_tokenize_str(text)
        assert bytes_to_unicode(text.encode()) == expected


def test_units_are_those_of_the_libraries():
    assert units("WordPiece").transform(["The catdog zebra"]) == [
        model_of("WordPiece").encode("The catdog zebra").tokens
    ]
    pieces = model_of("SentencePiece").encode(TEXTS, out_type=str)
    assert units("SentencePiece").transform(TEXTS) == pieces
    model = model_of("tiktoken")
    ids = model.encode_ordinary("the thé")
    data = [model.decode_single_token_bytes(i) for i in ids]
    assert units("tiktoken").transform(["the thé"]) == [
        [bytes_to_unicode(d) for d in data]
    ]


def test_words_leave_special_tokens_out():
    assert units("WordPiece").unknown_ == "[UNK]"
    assert "[CLS]" not in units("WordPiece").words_
    assert units("SentencePiece").unknown_ == "<unk>"
    assert not {"<s>", "</s>"} & set(units("SentencePiece").words_)
    assert "<|end|>" not in units("tiktoken").words_
    assert len(units("tiktoken").words_) == 259
    assert units("characters").words_ is None
    for kind in ("bpe", "unigram", "bytes"):
        assert set(BYTES) <= set(units(kind).words_)
        assert units(kind).unknown_ is None
    assert len(units("bpe").words_) == 280


def test_special_tokens_in_a_document_are_text():
    tokenizers = pytest.importorskip("tokenizers", reason=REASON)
    library = tokenizers.Tokenizer(tokenizers.models.BPE())
    library.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=280, special_tokens=["<|end|>"], initial_alphabet=BYTES,
        show_progress=False,
    )  # fmt: skip
    library.train_from_iterator(TEXTS, trainer)
    text = "the cat<|end|> sat"
    for model in (library, encoding()):
        lm = TextLM(NGRAMS, tokenizer=model).fit([*TEXTS, text])
        assert lm.text_scores([text]).n_unknown == 0
        [units] = lm.tokenizer_.transform([text])
        assert "<|end|>" not in units
        assert lm.tokenizer_.inverse_transform([units]) == [text]
    assert "[CLS]" not in Subwords(word_pieces()).transform(["the [CLS]"])[0]
    assert library.encode_special_tokens is False  # the given one is as it was


@pytest.mark.parametrize("kind", ["bpe", "unigram", "SentencePiece", "tiktoken"])
def test_lone_surrogates_are_replaced(kind):
    pytest.importorskip("tokenizers", reason=REASON)
    given = kind if kind in ("bpe", "unigram") else model_of(kind)
    units = Subwords(given, n_words=280).fit([*TEXTS, "a \ud800 b"])
    replaced = units.transform(["the \ufffd cat"])
    assert units.transform(["the \ud83d cat"]) == replaced


def test_units_are_learned_from_every_kind_of_documents():
    pytest.importorskip("tokenizers", reason=REASON)
    pandas = pytest.importorskip("pandas")
    words = Subwords(n_words=280).fit(TEXTS).words_
    frame = pandas.DataFrame({"text": TEXTS})
    for documents in (frame, frame["text"], iter(TEXTS), lambda: iter(TEXTS)):
        assert Subwords(n_words=280).fit(documents).words_ == words
    for wrong in (None, "a text", {"a": 1}):
        with pytest.raises(TypeError, match=r"X (must be a list of|is of type dict)"):
            Subwords().fit(wrong)


def test_truncation_of_a_tokenizer_is_not_used():
    model = word_pieces()
    whole = Subwords(model).transform(TEXTS)
    model.enable_truncation(2)
    model.enable_padding()
    assert Subwords(model).fit().transform(TEXTS) == whole
    assert model.truncation is not None  # the given one is as it was


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_model_takes_units_and_joins_what_it_generates(kind):
    lm = TextLM(NGRAMS, 4, tokenizer=units(kind)).fit(TEXTS)
    text = lm.generate("The cat", top_k=1, max_words=99, with_context=True)
    assert text.startswith("The cat s")
    words = lm.tokenizer_.words_
    expected = lm.vocabulary_.words_ if words is None else words
    assert set(lm.vocabulary_.words_) - {"</s>"} == set(expected) - {"</s>"}
    scorer = lm.scorer()
    assert scorer.score(TEXTS[0]) == pytest.approx(lm.score_samples(TEXTS[:1])[0])


def test_a_vocabulary_of_given_size_is_that_of_frequent_units():
    lm = TextLM(NGRAMS, tokenizer=Subwords("bytes"), vocabulary=Vocabulary(max_words=9))
    assert lm.fit(TEXTS).n_words_ == 9


@pytest.mark.parametrize("kind", ["WordPiece", "SentencePiece", "tiktoken"])
def test_a_model_of_a_library_is_a_tokenizer(kind, tmp_path):
    lm = TextLM(NGRAMS, tokenizer=model_of(kind)).fit(TEXTS)
    assert isinstance(lm.tokenizer_, Subwords)
    wrapped = TextLM(NGRAMS, tokenizer=units(kind)).fit(TEXTS)
    assert lm.score(TEXTS) == wrapped.score(TEXTS)
    nplm.save(lm, tmp_path / "lm")
    assert nplm.load(tmp_path / "lm").score(TEXTS) == lm.score(TEXTS)
    saved = (tmp_path / "lm").read_bytes()
    assert saved.count(packed(model_of(kind))) == 1  # equal units are there once
    words = lm.vocabulary_.words_
    again = TextLM.from_model(lm.estimator_, words, tokenizer=model_of(kind))
    assert again.score_samples(TEXTS[:3]) == pytest.approx(lm.score_samples(TEXTS[:3]))


def special_pieces():
    """Return a tokenizer whose special token is split in text by a flag of its own."""
    tokenizers = pytest.importorskip("tokenizers", reason=REASON)
    model = tokenizers.ByteLevelBPETokenizer()
    model.train_from_iterator(
        TEXTS, vocab_size=280, special_tokens=["<|end|>"], show_progress=False
    )
    return model


def pieces_with(**options):
    library = pytest.importorskip("sentencepiece", reason=REASON)
    proto = sentence_pieces().serialized_model_proto()
    return library.SentencePieceProcessor(model_proto=proto, **options)


COPIES = {
    "pickle": lambda lm, _: pickle.loads(pickle.dumps(lm)),
    "deepcopy": lambda lm, _: copy.deepcopy(lm),
    "saved and fitted again": lambda lm, path: [
        nplm.save(lm, path), clone(nplm.load(path)).fit(TEXTS)
    ][1],
    "pickled and saved": lambda lm, path: [
        nplm.save(pickle.loads(pickle.dumps(lm)), path), nplm.load(path)
    ][1],
}  # fmt: skip
MODELS = {
    **{kind: partial(units, kind) for kind in KINDS},
    "special tokens": special_pieces,
    "from right to left": lambda: pieces_with(reverse=True),
    "marks added": lambda: pieces_with(add_bos=True, add_eos=True),
}


@pytest.mark.filterwarnings("ignore:X has .* unknown tokens")
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("how", COPIES)
def test_copies_split_as_the_model_does(kind, how, tmp_path):
    lm = TextLM(NGRAMS, tokenizer=MODELS[kind]()).fit(TEXTS)
    texts = [*TEXTS, "the cat<|end|> sat", "<s> a zebra </s> 新"]
    again = COPIES[how](lm, tmp_path / "lm")
    assert again.tokenizer_.transform(texts) == lm.tokenizer_.transform(texts)
    assert again.text_scores(texts) == lm.text_scores(texts)
    assert again.generate("The cat", top_k=1) == lm.generate("The cat", top_k=1)


def test_options_of_sentence_pieces_are_kept_but_for_marks():
    units = Subwords(pieces_with(reverse=True)).fit()
    marked = Subwords(pieces_with(add_bos=True, add_eos=True)).fit()
    assert marked.transform(TEXTS) == model_of("SentencePiece").encode(
        TEXTS, out_type=str
    )
    [tokens] = units.transform(TEXTS[:1])
    assert tokens == pieces_with(reverse=True).encode(TEXTS[0], out_type=str)
    assert tokens[::-1] == model_of("SentencePiece").encode(TEXTS[0], out_type=str)
    assert units.inverse_transform([tokens]) == TEXTS[:1]
    lm = TextLM(NGRAMS, tokenizer=units).fit(TEXTS)
    other = TextLM(NGRAMS, tokenizer=model_of("SentencePiece")).fit(TEXTS)
    with pytest.raises(ValueError, match="train both with the same tokenizer"):
        static_mixture([lm, other], [0.5, 0.5])


def test_what_becomes_of_the_given_model_changes_nothing():
    for model, change in (
        (special_pieces(), lambda model: model.enable_truncation(1)),
        (pieces_with(), lambda model: setattr(model, "_reverse", True)),
    ):
        units = Subwords(model).fit()
        before = units.transform(TEXTS)
        change(model)
        assert units.transform(TEXTS) == before


def test_sampling_and_parts_in_python_are_refused():
    tokenizers = pytest.importorskip("tokenizers", reason=REASON)
    unigrams = tokenizers.models.Unigram([("a", -1.0), ("b", -2.0)], 0, False)
    unigrams.alpha = 0.0
    wrapped = special_pieces()
    wrapped._tokenizer.model.dropout = 0.125
    for model, name in (
        (tokenizers.Tokenizer(tokenizers.models.BPE(dropout=0.5)), "dropout=0.5"),
        (tokenizers.Tokenizer(unigrams), "alpha=0.0"),
        (pieces_with(enable_sampling=True), "enable_sampling=True"),
        (wrapped, "dropout=0.125"),
    ):
        with pytest.raises(ValueError, match=rf"samples how .* \({name}\)"):
            TextLM(NGRAMS, tokenizer=model).fit(TEXTS)
    Subwords(tokenizers.Tokenizer(tokenizers.models.BPE(dropout=0.0))).fit()
    model = special_pieces()._tokenizer
    model.pre_tokenizer = tokenizers.pre_tokenizers.PreTokenizer.custom(Coder())
    for fit in (
        Subwords(model).fit,
        lambda: TextLM(NGRAMS, tokenizer=model).fit(TEXTS),
    ):
        with pytest.raises(ValueError, match=r"cannot be kept \(Custom PreTokenizer"):
            fit()


def test_a_forged_tokenizer_raises_a_value_error():
    given = json.loads(packed(word_pieces()))
    forged = given | {"normalizer": {"type": "Precompiled", "precompiled_charsmap": ""}}
    with pytest.raises(ValueError, match="tokenizer of tokenizers is damaged"):
        unpacked("tokenizers", json.dumps(forged).encode())
    for kind in ("WordLevel", "WordPiece"):
        forged = json.loads(packed(word_pieces()))
        forged["model"] |= {"type": kind}
        forged["model"]["vocab"]["[UNK]"] = 2**31
        with pytest.raises(ValueError, match="a unit has the id 2147483648, in a file"):
            unpacked("tokenizers", json.dumps(forged).encode())
    forged = json.loads(packed(encoding())) | {"mergeable_ranks": [["YQ==", 0]]}
    units = Subwords(unpacked("tiktoken", json.dumps(forged).encode())).fit()
    with pytest.raises(ValueError, match="of tiktoken cannot split the text"):
        units.transform(TEXTS)


def test_damaged_units_are_refused(tmp_path):
    for kind in ("WordPiece", "SentencePiece", "tiktoken"):
        data = packed(model_of(kind))
        library = library_of(model_of(kind))
        for damaged in (b"", b"{}", b"\xff", data[: len(data) // 2]):
            if kind == "SentencePiece" and damaged == b"":
                continue
            with pytest.raises(ValueError, match=rf"tokenizer of {library} is damaged"):
                unpacked(library, damaged)
    with pytest.raises(ValueError, match="'os' is not a library of subwords"):
        unpacked("os", b"")


def test_wrong_arguments_are_named():
    with pytest.raises(NotFittedError, match=r"Subwords\('bpe'\) learns its units"):
        Subwords().transform(["a"])
    with pytest.raises(ValueError, match="'model' parameter of Subwords must be"):
        Subwords("words").fit(TEXTS)
    with pytest.raises(ValueError, match="n_words"):
        Subwords("bpe", n_words=255).fit(TEXTS)
    with pytest.raises(TypeError, match=r"model is a .*Coder: pass a tokenizers\."):
        Subwords(Coder()).fit()
    with pytest.raises(TypeError, match=r"X\[1\] is of type int"):
        Subwords("bytes").transform(["a", 1])
    with pytest.raises(TypeError, match="single document in a list"):
        Subwords("bytes").transform("a text")


def test_models_of_different_units_are_not_mixed():
    pytest.importorskip("tokenizers", reason=REASON)
    bpe = TextLM(NGRAMS, tokenizer=Subwords(n_words=280))
    models = [bpe.fit(TEXTS), clone(bpe).fit(TEXTS[:1] * 9)]
    with pytest.raises(ValueError, match="train both with the same tokenizer"):
        static_mixture(models, [0.5, 0.5])
    units = models[0].tokenizer_.model_
    models = [TextLM(NGRAMS, tokenizer=Subwords(units)).fit(TEXTS[:n]) for n in (9, 99)]
    assert static_mixture(models, [0.5, 0.5]).lm.score(TEXTS) < 0
    for kind in ("bytes", "characters"):
        models[1] = TextLM(NGRAMS, tokenizer=Subwords(kind)).fit(TEXTS)
        with pytest.raises(ValueError, match="train both with the same tokenizer"):
            static_mixture(models, [0.5, 0.5])


class Coder:
    """It has the methods of a model of units, and is none."""

    def encode(self, text):
        return text

    decode = encode


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(
        ImportError, match=r"Subwords\('bpe'\) requires tokenizers: .* install"
    ):
        Subwords("bpe").fit(TEXTS)
