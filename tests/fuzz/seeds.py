"""Good files of every kind, small: what mutations begin with."""

import contextlib
import re
import tempfile
import warnings
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.frozen import FrozenEstimator

import nplm
from nplm import (
    ClassLM,
    EnergyLM,
    InterpolatedTrigram,
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
    ShortlistLM,
    TextLM,
    Tokenizer,
    WordClasses,
    windows,
)
from nplm.formats import (
    save_binary,
    write_arpa,
    write_classes,
    write_counts,
    write_vectors,
)
from tests.fuzz.structures import PACKERS, tables
from tests.helpers import paper_lm
from tests.helpers_saving import pipeline

N_WORDS = 12
WORDS = ["</s>", *(f"wörd{i}" for i in range(1, N_WORDS))]
IDS = np.random.default_rng(0).zipf(1.4, size=400) % N_WORDS
X, Y = windows(IDS, 2, boundary=0)
SIZE = dict(n_words=N_WORDS)
SMALL = dict(n_hidden=3, embedding_dim=2, max_iter=2, random_state=0, **SIZE)
BATCH = dict(batch_size=4)
DRAWN = dict(loss="importance", n_samples=3, min_effective_samples=4)

# Fits that are gone on with from a checkpoint.
FITS = {
    "checkpoint, sgd": paper_lm(**SMALL | BATCH),
    "checkpoint, adam": NeuralLM(**SMALL, **BATCH, **DRAWN),
    "checkpoint, energy": EnergyLM(**SMALL, **BATCH, loss="nce", n_samples=3),
    "checkpoint, classes": WordClasses(4, max_iter=3, random_state=0, **SIZE),
}


class Stopped(BaseException):
    """Ends a fit on the spot."""


def quiet(work):
    """Do it without the word on discounts of so few words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work()


def fit(model, **options):
    """Fit to the same few words, always."""
    if isinstance(model, WordClasses):
        return model.fit(IDS, **options)
    return quiet(lambda: model.fit(X, Y, X_val=X[:50], y_val=Y[:50], **options))


@cache
def seeds(kind):
    """Give the good files of a kind, each a mapping of names to bytes."""
    if kind in FITS:
        return [_checkpoint(FITS[kind])]
    return [files if isinstance(files, dict) else _one(files) for files in MADE[kind]()]


def kinds():
    """Give the names of all kinds of files."""
    return [*MADE, *FITS]


def _one(write):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        write(path)
        return {"file": path.read_bytes()}


def _packed(*writes):
    """Give plain files, and the same packed."""
    plain = [_one(write) for write in writes]
    return plain + [
        {"file": pack(files["file"])} for files in plain for _, pack in PACKERS.values()
    ]


def _texts(*texts):
    return _packed(*(lambda path, text=text: path.write_bytes(text) for text in texts))


def _checkpoint(model):
    """What a fit that is killed in its second pass leaves."""
    calls = []

    def stop(done, total, figure):
        calls.append(done)
        if done > 1.2 * total / 2:
            raise Stopped

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with contextlib.suppress(Stopped):
            fit(model, checkpoint=folder, progress=stop)
        return {path.name: path.read_bytes() for path in folder.iterdir()}


@cache
def _kneser_ney(order=3):
    boundary = 0 if order == 3 else None
    return fit(KneserNeyLM(order, boundary=boundary, **SIZE))


@cache
def _classes():
    return fit(WordClasses(4, max_iter=3, random_state=0, **SIZE))


def _arpa(order):
    return lambda path: write_arpa(_kneser_ney(order), path, WORDS)


def _binary(order=3, **options):
    return lambda path: save_binary(_kneser_ney(order), path, WORDS, **options)


def _vectors(**options):
    features = np.random.default_rng(0).normal(size=(N_WORDS, 3))
    return [lambda path: write_vectors(path, WORDS, features, **options)]


def _saved():
    documents = ["a rose is a rose", "is a rose", "a \\ r\n\\n"] * 5
    mixed = [("kn", KneserNeyLM(2)), ("trigram", InterpolatedTrigram())]
    models = [
        fit(paper_lm(**SMALL, solver="adam", direct=True)),
        fit(NeuralLM(**SMALL)),
        fit(NeuralLM(**SMALL, word_features=np.eye(N_WORDS)[:, :5])),
        fit(NeuralLM(**SMALL, output="tree", n_distant=1, order=2)),
        fit(EnergyLM(**SMALL)),
        _kneser_ney(),
        fit(ShortlistLM(NeuralLM(**SMALL), KneserNeyLM(2), n_shortlist=5, **SIZE)),
        fit(MixtureLM(mixed, **SIZE)),
        fit(ClassLM(n_classes=4, random_state=0, **SIZE)),
        _classes(),
        quiet(lambda: TextLM(KneserNeyLM(), 2).fit(documents)),
        quiet(lambda: pipeline(KneserNeyLM()).fit(documents)),
        Tokenizer(re.compile(r"\w+", re.I), lowercase=True),
        fit(MixtureLM([("kn", FrozenEstimator(_kneser_ney())), *mixed[1:]], **SIZE)),
    ]
    return [lambda path, model=model: nplm.save(model, path) for model in models]


MADE = {
    "arpa": lambda: [_arpa(2), _arpa(1), *_packed(_arpa(3))],
    "counts": lambda: _packed(lambda path: write_counts(_kneser_ney(), path, WORDS)),
    "classes": lambda: _packed(
        lambda path: write_classes(path, WORDS, _classes().labels_)
    ),
    "vectors": lambda: _packed(*_vectors()),
    "vectors, binary": lambda: _packed(*_vectors(binary=True)),
    "binary": lambda: [_binary(), _binary(1), _binary(compact=True), _binary(bits=4)],
    "binary, unverified": lambda: [_binary(), _binary(bits=4)],
    "saved": _saved,
    "text": lambda: _texts("a rose is\n\na röse\n".encode(), b"one\ntwo\n" * 9),
    "stream": lambda: _texts(
        "\ufeffa rose is\n\na röse is a rose\r\n".encode() * 9,
        b"one two\ntwo one two\n" * 9,
    ),
    "corpus": lambda: _texts("a rose is\n\na röse\n".encode() * 9),
}
if find_spec("pyarrow") is not None:
    MADE["tables"] = lambda: list(tables())
