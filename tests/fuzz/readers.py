"""What may come of a damaged file: what was right of it, or an error that says so."""

import re

import numpy as np
from sklearn.base import clone

import nplm
from nplm import CheckpointError, EnergyLM, KneserNeyLM, QuantizedLM
from nplm.cli._text import texts_of
from nplm.datasets import load_text
from nplm.formats import (
    CountTables,
    estimate_binary,
    load_binary,
    read_arpa,
    read_classes,
    read_counts,
    read_vectors,
)
from tests.fuzz.seeds import FITS, fit, quiet

# Rounded probabilities sum to 1 only nearly; those of few bits less so.
TOLERANCE, QUANTIZED_TOLERANCE = 5e-3, 0.3
# What a model of so many words gives is looked at; of more it would take long.
FEW_WORDS = 5000


class WrongError(Exception):
    """Something that must not come of any file."""


def read(kind, folder):
    """Read a case's files; raise `WrongError`, or give what they came to: a word."""
    path = folder / "file"
    reader = READERS.get(kind)
    try:
        if reader is None:
            _go_on(FITS[kind], folder)
        else:
            reader(path)
    except CheckpointError as error:
        return _refused(error, folder)
    except (ValueError, OSError) as error:
        return _refused(error, path)
    return "read"


def _refused(error, path):
    """See that an error says which file, and in text which line."""
    if str(path) not in str(error):
        kind = type(error).__name__
        raise WrongError(f"{kind} does not name the file: {error}") from error
    return "refused"


def _arpa(path):
    try:
        model, words = quiet(lambda: read_arpa(path))
    except ValueError as error:
        _names_a_line(error)
        raise
    # A file may say of probabilities what it likes, as long as they are some.
    _look_at(model, sums=False)
    if len(words) != model.n_words_:
        raise WrongError("other words than the model has")


def _counts(path):
    try:
        tables, counts, words = read_counts(path)
    except ValueError as error:
        _names_a_line(error)
        raise
    for table, own in zip(tables, counts):
        if len(table) != len(own) or (own < 0).any():
            raise WrongError("tables that do not fit together")
        if table.size and not 0 <= table.min() <= table.max() < len(words):
            raise WrongError("ids that are none")


def _classes(path):
    words, labels = read_classes(path)
    if len(set(words)) != len(words) != len(labels) or (labels < 0).any():
        raise WrongError("labels that are none")


def _vectors(path, **options):
    words, vectors = read_vectors(path, **options)
    if vectors.shape[0] != len(words) or not np.isfinite(vectors).all():
        raise WrongError("vectors that are none")


def _names_a_line(error):
    if not re.search(
        "line [0-9]+|is empty|ha(s|ve) no word|unpack|overflow", str(error)
    ):
        raise WrongError(f"does not name the line: {error}") from error


def _binary(path):
    model, _ = load_binary(path, verify=True)
    # As of ARPA: of what came from another tool's file it may be a copy.
    _look_at(model, sums=False)


def _unverified(path):
    """Anything may come of it but a crash: numbers are as good as the file."""
    model, _ = load_binary(path)
    try:
        with np.errstate(all="ignore"):
            _look_at(model, sums=False, finite=False)
            _look_at_all(model)
    except (ValueError, IndexError, OverflowError) as error:
        if "is damaged" not in str(error):
            raise WrongError(f"{type(error).__name__}: {error}") from error
        raise


def _stream(path):
    """Estimate of it, a part at a time."""
    model, folder = path.with_name("model"), path.parent
    try:
        quiet(
            lambda: estimate_binary(
                KneserNeyLM(2), [path], model, memory="20K", folder=folder
            )
        )
    except ValueError as error:
        _names_a_line(error)
        if "the texts have no word" in str(error):  # none of several is to blame
            raise ValueError(f"{path}: {error}") from error
        raise
    _look_at(load_binary(model)[0])


def _tables(path):
    """Estimate of a table of counts of two words."""
    source = CountTables([path], ["</s>", "a", "b"])
    model, folder = path.with_name("model"), path.parent
    try:
        quiet(lambda: estimate_binary(KneserNeyLM(2), source, model, folder=folder))
    except ValueError as error:
        if str(path) in str(error):
            raise
        raise ValueError(f"{path}: {error}") from error  # of rows that are no n-grams
    _look_at(load_binary(model)[0])


def _look_at_all(model):
    """Ask what goes through all n-grams, or a word at a time."""
    scorer = nplm.TextLM.from_model(model, [f"w{i}" for i in range(model.n_words_)])
    scorer.score_samples(["w1 w2 w3 w1", "w4"])
    if not isinstance(model, QuantizedLM):
        model.prune(1e-3)


def _saved(path):
    model = nplm.load(path)
    # Of a chain, too, an error can be shown.
    repr(model)
    if hasattr(model, "n_words_") and hasattr(model, "predict_proba"):
        _look_at(model)
        return
    is_tokenizer = isinstance(model, nplm.Tokenizer)
    try:
        if is_tokenizer or hasattr(model, "score_samples"):
            (model.transform if is_tokenizer else model.score_samples)(["a rose", "is"])
    except (ValueError, TypeError) as error:
        # Of parameters that only use reads: a pattern, or what splits documents.
        if not re.match("pattern .* (not a regular|has) |X.0. is a string", str(error)):
            raise


def _go_on(model, folder):
    """Go on with a fit: to the end it had, or a sound one."""
    model = clone(model)
    with np.errstate(all="ignore"):
        try:
            fit(model, checkpoint=folder)
        except nplm.DivergenceError:
            return  # of numbers as large as no sound fit has them
    if hasattr(model, "predict_proba"):
        _look_at(model)
    elif not 0 <= model.labels_.min() <= model.labels_.max() < model.n_classes_:
        raise WrongError("classes that are none")


def _look_at(model, *, sums=True, finite=True):
    """See that a model gives probabilities, and that they sum to 1."""
    n_words = model.n_words_
    rng = np.random.default_rng(0)
    X = rng.integers(0, n_words, (40, model.n_features_in_))
    y = rng.integers(0, n_words, 40)
    try:
        log_prob = model.log_prob(X, y)
    except ValueError as error:
        if "n_jobs" in str(error):  # a parameter like any other, which scoring reads
            return
        raise
    if (finite and np.isnan(log_prob).any()) or (sums and (log_prob > 1e-3).any()):
        raise WrongError(f"log-probabilities up to {log_prob.max()}")
    if n_words > FEW_WORDS:
        return
    total = model.predict_proba(X).sum(axis=1)
    tolerance = QUANTIZED_TOLERANCE if isinstance(model, QuantizedLM) else TOLERANCE
    if sums and not (abs(total - 1) < tolerance).all():
        raise WrongError(f"probabilities that sum to {total[abs(total - 1).argmax()]}")
    if isinstance(model, EnergyLM):
        model.add_words(X[:2], [n_words, n_words + 1])


READERS = {
    "arpa": _arpa,
    "counts": _counts,
    "classes": _classes,
    "vectors": _vectors,
    "vectors, binary": lambda path: _vectors(path, binary=True),
    "binary": _binary,
    "binary, unverified": _unverified,
    "saved": _saved,
    "tables": _tables,
    "text": lambda path: texts_of([str(path)]),
    "stream": _stream,
    "corpus": lambda path: load_text(path, lines=True),
}
