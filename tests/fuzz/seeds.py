"""Small valid files of every kind, which mutations damage."""

import contextlib
import re
import tempfile
import warnings
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from random import Random

import numpy as np
from sklearn.frozen import FrozenEstimator

import nplm
from nplm import (
    ClassLM,
    InterpolatedTrigram,
    KneserNeyLM,
    LMClassifier,
    LMDetector,
    MixtureLM,
    ShortlistLM,
    TextLM,
    Tokenizer,
    WordClasses,
    windows,
)
from nplm.formats import (
    load_binary,
    save_binary,
    write_arpa,
    write_class_definitions,
    write_classes,
    write_counts,
    write_vectors,
)
from tests.fuzz.structures import CODECS, tables
from tests.helpers import energy_lm, neural_lm, paper_lm
from tests.helpers.arpa import arpa_of, ngrams_with_marks_anywhere
from tests.helpers.saving import pipeline

N_WORDS = 12
WORDS = ["</s>", *(f"wörd{i}" for i in range(1, N_WORDS))]
IDS = np.random.default_rng(0).zipf(1.4, size=400) % N_WORDS
X, Y = windows(IDS, 2, boundary=0)
SIZE = dict(n_words=N_WORDS)
KENLM = Path(__file__).parents[1] / "formats" / "kenlm_data"
SMALL = dict(n_hidden=3, embedding_dim=2, max_iter=2, random_state=0, **SIZE)
BATCH = dict(batch_size=4)
SAMPLED = dict(loss="importance", n_noise=3, min_effective_samples=4)

# Fits that are resumed from a checkpoint.
FITS = {
    "checkpoint, sgd": paper_lm(**SMALL | BATCH),
    "checkpoint, adam": neural_lm(**SMALL, **BATCH, **SAMPLED),
    "checkpoint, energy": energy_lm(**SMALL, **BATCH, loss="nce", n_noise=3),
    "checkpoint, classes": WordClasses(4, max_iter=3, random_state=0, **SIZE),
}


class Stopped(BaseException):
    """Stops a fit immediately."""


def quiet(work):
    """Call `work` without the warning about discounts of so few words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work()


def fit(model, **options):
    """Fit a model to the same few words."""
    if isinstance(model, WordClasses):
        return model.fit(IDS, **options)
    return quiet(lambda: model.fit(X, Y, X_val=X[:50], y_val=Y[:50], **options))


@cache
def seeds(kind):
    """Return the valid files of a kind, each case a mapping of names to bytes."""
    if kind in FITS:
        return [_checkpoint(FITS[kind])]
    return [
        files if isinstance(files, dict) else _written(files) for files in SEEDS[kind]()
    ]


def kinds():
    """Return the names of all kinds of files."""
    return [*SEEDS, *FITS]


def _written(write):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        write(path)
        return {"file": path.read_bytes()}


def _compressed(*writes):
    """Return plain files, and the same files compressed."""
    plain = [_written(write) for write in writes]
    return plain + [
        {"file": compress(files["file"])}
        for files in plain
        for _, compress in CODECS.values()
    ]


def _texts(*texts):
    return _compressed(
        *(lambda path, text=text: path.write_bytes(text) for text in texts)
    )


def _checkpoint(model):
    """Return the checkpoint of a fit that stops in its second pass."""

    def stop(done, total, figure):
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


UNIGRAMS = partial(_kneser_ney, 1)


@cache
def _classes():
    return fit(WordClasses(4, max_iter=3, random_state=0, **SIZE))


def _arpa(order):
    return lambda path: write_arpa(_kneser_ney(order), path, WORDS)


def _with_marks(path):
    ngrams = ngrams_with_marks_anywhere(Random(0), 3, suffixes=False)
    Path(path).write_text(arpa_of(ngrams))


def _binary(model=_kneser_ney, **options):
    return lambda path: save_binary(model(), path, WORDS, **options)


@cache
def _quantized():
    with tempfile.TemporaryDirectory() as folder:
        _binary(bits=4)(f"{folder}/model")
        return load_binary(f"{folder}/model")[0]


@cache
def _pruned():
    """A model that lacks suffixes of its n-grams."""
    model = fit(KneserNeyLM(3, boundary=0, min_counts=(1, 2, 1), **SIZE))
    return model.prune(0.02)


def _vectors(**options):
    features = np.random.default_rng(0).normal(size=(N_WORDS, 3))
    return [lambda path: write_vectors(path, WORDS, features, **options)]


def _saved():
    documents = ["a rose is a rose", "is a rose", "a \\ r\n\\n"] * 5
    mixed = [("kn", KneserNeyLM(2)), ("trigram", InterpolatedTrigram())]
    models = [
        fit(paper_lm(**SMALL, solver="adam", direct=True)),
        fit(neural_lm(**SMALL)),
        fit(neural_lm(**SMALL, word_features=np.eye(N_WORDS)[:, :5])),
        fit(neural_lm(**SMALL, output="tree", n_distant=1, order=2)),
        fit(neural_lm(**SMALL | {"n_hidden": (3, 5, 4)})),
        fit(energy_lm(**SMALL)),
        _kneser_ney(),
        _quantized(),
        fit(ShortlistLM(neural_lm(**SMALL), KneserNeyLM(2), n_shortlist=5, **SIZE)),
        fit(MixtureLM(mixed, **SIZE)),
        fit(ClassLM(n_classes=4, random_state=0, **SIZE)),
        _classes(),
        quiet(lambda: TextLM(KneserNeyLM(), 2).fit(documents)),
        quiet(lambda: pipeline(KneserNeyLM()).fit(documents)),
        TextLM.from_model(_quantized(), ["</s>", "<unk>", *WORDS[2:]]),
        Tokenizer(re.compile(r"\w+", re.I), lowercase=True),
        fit(MixtureLM([("kn", FrozenEstimator(_kneser_ney())), *mixed[1:]], **SIZE)),
        LMClassifier(InterpolatedTrigram(2)).fit(documents, [*"abc"] * 5),
        LMDetector(InterpolatedTrigram(2)).fit(documents),
    ]
    half = neural_lm(**SMALL, word_features=np.eye(N_WORDS)[:, :5])
    return [
        *(lambda path, model=model: nplm.save(model, path) for model in models),
        lambda path: nplm.save(fit(half), path, optimizer=False, dtype="float16"),
    ]


DEFINITIONS = {"A": {"rose": 0.75, "röse": 0.25}, "B": {"1984": 1.0}}
SEEDS = {
    "arpa": lambda: [_arpa(2), _arpa(1), _with_marks, *_compressed(_arpa(3))],
    "counts": lambda: _compressed(
        lambda path: write_counts(_kneser_ney(), path, WORDS)
    ),
    "classes": lambda: _compressed(
        lambda path: write_classes(path, WORDS, _classes().labels_)
    ),
    "definitions": lambda: _compressed(
        lambda path: write_class_definitions(path, DEFINITIONS)
    ),
    "vectors": lambda: _compressed(*_vectors()),
    "vectors, binary": lambda: _compressed(*_vectors(binary=True)),
    "binary": lambda: [_binary(), _binary(UNIGRAMS), _binary(bits=4)],
    "binary, unverified": lambda: [
        _binary(),
        _binary(bits=4),
        _binary(UNIGRAMS),
        _binary(_pruned),
        _binary(_pruned, bits=4),
    ],
    "kenlm": lambda: [
        {"file": path.read_bytes()}
        for path in sorted(KENLM.iterdir())
        if path.suffix == "" and path.name not in ("probing-r", "stream")
    ],
    "saved": _saved,
    "text": lambda: _texts("a rose is\n\na röse\n".encode(), b"one\ntwo\n" * 9),
    "stream": lambda: _texts(
        "\ufeffa rose is\n\na röse is a rose\r\n".encode() * 9,
        b"one two\ntwo one two\n" * 9,
        b"<s> one two </s>\n<s> two\none </s>\n" * 9,
    ),
    "corpus": lambda: _texts("a rose is\n\na röse\n".encode() * 9),
}
if find_spec("pyarrow") is not None:
    SEEDS["tables"] = lambda: list(tables())
