"""Check what comes of a damaged file: a valid result, or an error that names it."""

import contextlib
import io
import pickle
import re

import numpy as np
from sklearn.base import clone

import nplm
from nplm import BackoffLM, CheckpointError, EnergyLM, KneserNeyLM, QuantizedLM, kenlm
from nplm.cli._text import lines_of
from nplm.datasets import load_text
from nplm.formats import (
    CountTables,
    estimate_binary,
    load_binary,
    read_arpa,
    read_class_definitions,
    read_classes,
    read_counts,
    read_vectors,
    save_binary,
    write_arpa,
)
from nplm.formats.open_model import open_model
from nplm.models.ngrams.trie.work import Work
from tests.fuzz.seeds import FITS, fit, quiet
from tests.fuzz.structures import STREAMS, whole_text

# Sums of rounded probabilities differ from 1, more so if they have few bits.
TOLERANCE, QUANTIZED_TOLERANCE = 5e-3, 0.3
# Distributions of models with more words are not checked: it would take long.
MAX_CHECKED_WORDS = 5000


class InvalidResultError(Exception):
    """A reader returned an invalid result, or an error without the required names."""


def read(kind, folder):
    """Read a case's files; return "read" or "refused", or raise an error."""
    path = folder / "file"
    reader = READERS.get(kind)
    try:
        if reader is None:
            _resume(FITS[kind], folder)
        else:
            reader(path)
    except CheckpointError as error:
        return _refused(error, folder)
    except (ValueError, OSError) as error:
        return _refused(error, path)
    return "read"


def _refused(error, path):
    """Check that an error names the file."""
    if str(path) not in str(error):
        kind = type(error).__name__
        raise InvalidResultError(f"{kind} does not name the file: {error}") from error
    return "refused"


def _arpa(path):
    with _errors_that_name_the_line():
        model, words = quiet(lambda: read_arpa(path))
    # Probabilities in a file need not sum to 1.
    _check_model(model, sums=False)
    if len(words) != model.n_words_:
        raise InvalidResultError("the words are not those of the model")


def _counts(path):
    with _errors_that_name_the_line():
        tables, counts, words = read_counts(path)
    for table, own in zip(tables, counts):
        if len(table) != len(own) or (own < 0).any():
            raise InvalidResultError("inconsistent tables")
        if table.size and not 0 <= table.min() <= table.max() < len(words):
            raise InvalidResultError("ids out of range")


def _classes(path):
    words, labels = read_classes(path)
    if len(set(words)) != len(words) != len(labels) or (labels < 0).any():
        raise InvalidResultError("invalid labels")


def _definitions(path):
    for words in read_class_definitions(path).values():
        if not words or not all(0 < prob <= 1 for prob in words.values()):
            raise InvalidResultError("invalid probabilities")


def _vectors(path, **options):
    words, vectors = read_vectors(path, **options)
    if vectors.shape[0] != len(words) or not np.isfinite(vectors).all():
        raise InvalidResultError("invalid vectors")


@contextlib.contextmanager
def _errors_that_name_the_line():
    named = "line [0-9]+|is empty|ha(s|ve) no word|decompress|overflow"
    try:
        yield
    except ValueError as error:
        if not re.search(named, str(error)):
            raise InvalidResultError(f"does not name the line: {error}") from error
        raise


def _binary(path):
    model, _ = load_binary(path, verify=True)
    # The model may be from an ARPA file of another tool, which need not sum to 1.
    _check_model(model, sums=False)
    if model.boundary is not None:
        nplm.load(path)


def _unverified(path):
    """Numbers are as valid as the file, but there is no crash.

    Look-ups give numbers. What is drawn from them, or goes through all n-grams, may be
    an error, too.
    """
    model, _ = load_binary(path)
    words = [f"w{i}" for i in range(model.n_words_)]
    lm = nplm.TextLM.from_model(model, words, boundary=model.boundary or 0)
    with _numbers_of_a_trusted_file():
        _look_up(lm, ["w1 w2 w3 w1", "w4"], words[:5])
        lm.token_scores(["w1 w2 w3 w1", "w4"])
        lm.perplexity(["w1 w2 w3 w1", "w4"])
    with np.errstate(all="ignore"):
        for use in UNVERIFIED_USES:
            with contextlib.suppress(ValueError, IndexError, OverflowError, TypeError):
                quiet(lambda use=use: use(lm, words, path))
        if not isinstance(model, QuantizedLM):
            model.prune(1e-3)
        if model.boundary is not None:
            _unverified_words(path)


@contextlib.contextmanager
def _numbers_of_a_trusted_file():
    """Let numbers overflow, but no look-up raise an error."""
    with np.errstate(all="ignore"):
        try:
            yield
        except (ValueError, IndexError, OverflowError) as error:
            raise InvalidResultError(f"{type(error).__name__}: {error}") from error


def _look_up(lm, texts, candidates):
    """Score windows, texts and words one by one."""
    _check_model(lm.estimator_, sums=False, finite=False)
    lm.score_samples(texts)
    scorer = lm.scorer()
    _, state = scorer.step(scorer.begin(), candidates[1])
    scorer.candidates(state, candidates)
    pickle.loads(pickle.dumps(scorer)).score(texts[0])


def _unverified_words(path):
    """Words and their ids are as valid as the file, but there is no crash."""
    lm = nplm.load(path)
    texts = ["wörd1 wörd2 wörd3", "wörd4 wörd1", "", "none"]
    for text in texts:
        # There is no symbol for unknown words.
        with contextlib.suppress(ValueError):
            lm.score_samples([text])
            lm.perplexity([text])
            lm.scorer().step(lm.scorer().begin(), text)
            lm.token_scores([text])
    vocabulary = lm.vocabulary_
    for ask in (
        lambda: vocabulary.inverse_transform([range(lm.n_words_)]),
        lambda: vocabulary.words_,
        lambda: vocabulary.ids_,
        lambda: pickle.loads(pickle.dumps(lm)).score_samples(texts[:1]),
        lambda: clone(vocabulary).fit(),
        lambda: lm.next_words("wörd1 wörd2", k=3),
        lambda: nplm.save(lm, path.with_name("saved")),
    ):
        with contextlib.suppress(ValueError, IndexError, OverflowError, TypeError):
            quiet(ask)


# Quantized models refuse some of these, by TypeErrors.
UNVERIFIED_USES = [
    lambda lm, words, path: lm.next_words("w1 w2", k=3),
    lambda lm, words, path: lm.generate("w1", n=3, max_words=9, random_state=0),
    lambda lm, words, path: lm.generate("w1", top_p=0.5, temperature=0.5),
    lambda lm, words, path: nplm.static_mixture([lm, lm], [0.5, 0.5]),
    lambda lm, words, path: write_arpa(lm.estimator_, path.with_name("arpa"), words),
    lambda lm, words, path: save_binary(
        lm.estimator_, path.with_name("bits"), words, bits=4
    ),
    lambda lm, words, path: save_binary(lm.estimator_, path.with_name("copy"), words),
    lambda lm, words, path: nplm.save(lm, path.with_name("saved")),
    lambda lm, words, path: pickle.loads(pickle.dumps(lm)).score_samples(["w1 w2"]),
    lambda lm, words, path: getattr(lm.estimator_, "n_parameters_", None),
    lambda lm, words, path: lm.estimator_.words_mass(np.arange(3)).after([[1, 2]]),
]


def _kenlm(path):
    """Numbers are as valid as the file, but there is no crash."""
    lm, texts = nplm.load(path), ["a rose is a b d", "été 東京", "w1 w2 none", ""]
    model = kenlm.Model(path)
    with _numbers_of_a_trusted_file():
        for text in texts:
            model.score(text)
            list(model.full_scores(text, bos=False))
        _look_up(lm, texts, ["rose", "a", "b", "none"])
    with np.errstate(all="ignore"), contextlib.suppress(ValueError):
        lm.token_scores(texts)
        lm.next_words("a", k=3)
        with open_model(path) as file:
            trie = file.text_ngrams(Work()).trie
        _check_model(BackoffLM.from_trie(trie), sums=False)
    nplm.load(path, verify=True)


def _text(path):
    """Read all of a text, never a part of it."""
    lines = list(lines_of([str(path)]))
    data = path.read_bytes()
    if STREAMS.match(data):
        whole = io.BytesIO(whole_text(data) or b"")
        if len(lines) != len(whole.readlines()):
            raise InvalidResultError(f"{len(lines)} lines of a damaged or longer text")


def _stream(path):
    """Estimate a model from a text, in bounded memory."""
    model, folder = path.with_name("model"), path.parent
    options = dict(memory="20K", folder=folder)
    try:
        with _errors_that_name_the_line():
            quiet(lambda: estimate_binary(KneserNeyLM(2), [path], model, **options))
    except ValueError as error:
        if "the texts have no word" in str(error):  # about all texts, none is named
            raise ValueError(f"{path}: {error}") from error
        raise
    _check_model(load_binary(model)[0])


def _tables(path):
    """Estimate a model from a table of bigram counts."""
    source = CountTables([path], ["</s>", "a", "b"])
    model, folder = path.with_name("model"), path.parent
    try:
        quiet(lambda: estimate_binary(KneserNeyLM(2), source, model, folder=folder))
    except ValueError as error:
        if str(path) in str(error):
            raise
        raise ValueError(f"{path}: {error}") from error  # about rows of all tables
    _check_model(load_binary(model)[0])


def _saved(path):
    model = nplm.load(path)
    # Errors show the representation, also of a chain.
    repr(model)
    if hasattr(model, "n_words_") and hasattr(model, "predict_proba"):
        # The probabilities of a quantized model sum to 1 only nearly, and are trusted.
        _check_model(model, sums=b"QuantizedLM" not in path.read_bytes())
        return
    of_text = {
        nplm.Tokenizer: "transform", nplm.Subwords: "transform",
        nplm.LMClassifier: "predict_proba",
    }  # fmt: skip
    method = of_text.get(type(model), "score_samples")
    try:
        if hasattr(model, method):
            getattr(model, method)(["a rose", "is"])
    except (ValueError, TypeError) as error:
        # Parameters that are only checked in use: patterns, tokenizers, n_context.
        in_use = (
            "pattern .* (not a regular|has) |X.0. is a string|X has .* features|"
            "the tokenizer of "
        )
        if not re.match(in_use, str(error)):
            raise


def _resume(model, folder):
    """Resume a fit, and check its result."""
    model = clone(model)
    with np.errstate(all="ignore"):
        try:
            fit(model, checkpoint=folder)
        except nplm.DivergenceError:
            return  # the checkpoint had huge parameters
    if hasattr(model, "predict_proba"):
        _check_model(model)
    elif not 0 <= model.labels_.min() <= model.labels_.max() < model.n_classes_:
        raise InvalidResultError("classes out of range")


def _check_model(model, *, sums=True, finite=True):
    """Check that a model returns probabilities, and that they sum to 1."""
    n_words = model.n_words_
    rng = np.random.default_rng(0)
    X = rng.integers(0, n_words, (40, model.n_features_in_))
    y = rng.integers(0, n_words, 40)
    try:
        log_prob = model.log_prob(X, y)
    except ValueError as error:
        if "n_jobs" in str(error):  # a parameter that scoring reads
            return
        raise
    if (finite and np.isnan(log_prob).any()) or (sums and (log_prob > 1e-3).any()):
        raise InvalidResultError(f"log-probabilities up to {log_prob.max()}")
    if n_words > MAX_CHECKED_WORDS:
        return
    total = model.predict_proba(X).sum(axis=1)
    tolerance = QUANTIZED_TOLERANCE if isinstance(model, QuantizedLM) else TOLERANCE
    if sums and not (abs(total - 1) < tolerance).all():
        worst = total[abs(total - 1).argmax()]
        raise InvalidResultError(f"probabilities that sum to {worst}")
    if isinstance(model, EnergyLM):
        model.add_words(X[:2], [n_words, n_words + 1])


READERS = {
    "arpa": _arpa,
    "counts": _counts,
    "classes": _classes,
    "definitions": _definitions,
    "vectors": _vectors,
    "vectors, binary": lambda path: _vectors(path, binary=True),
    "binary": _binary,
    "binary, unverified": _unverified,
    "kenlm": _kenlm,
    "saved": _saved,
    "tables": _tables,
    "text": _text,
    "stream": _stream,
    "corpus": lambda path: load_text(path, lines=True),
}
