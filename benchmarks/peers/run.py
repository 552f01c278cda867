"""Perplexity by processor time, beside what a user would take instead.

On one core, for 1 to 100 minutes of training: nplm's default and its best network found
for the budget; an LSTM and a GPT of PyTorch; and Kneser-Ney, which is KenLM's to five
digits. A run is a file in --folder, so that the table can be made in several calls, and
networks of nplm are kept there too. The first command trains with the settings with
which a search begins, the second changes one of them; of each budget the best by the
validation part is shown:

    python benchmarks/peers/run.py ptb door 1 3 10 --folder runs
    python benchmarks/peers/run.py ptb lstm 1 3 10 --folder runs
    python benchmarks/peers/run.py ptb lstm 1 --set batch=64 --folder runs
    python benchmarks/peers/run.py --page --folder runs

PyTorch 2 is needed for the LSTM and the GPT (its memory allocator needs
MALLOC_MMAP_MAX_=0 and MALLOC_TRIM_THRESHOLD_=10000000000 in the environment to be
fast). --page adds the rows to docs/measured/peers.json, which keeps all that were ever
shown, and writes peers.inc and peers.svg beside it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np
from numpy.typing import NDArray

import nplm
from common.ablations import as_stream
from common.process import cpu_seconds
from common.table import file_name, kept, parser, report, settings_of
from nplm import AutoLM, KneserNeyLM, NeuralLM, Vocabulary, available_tiers
from nplm.datasets import Corpus, fetch_brown, fetch_ptb, load_wiki
from nplm.experiments import grouped
from peers.run_page import write

DOCS = Path(__file__).parents[2] / "docs" / "measured"
# Words of Wiki's held-out parts that are scored: the first ones.
WIKI_HELD_OUT = 100_000
N_CONTEXT = 5  # of the default, as in networks/default.py
HISTORY = 1000  # words before a held-out part that a peer reads


def of_wiki(n: int) -> Corpus:
    """The first words of the training part."""
    wiki = load_wiki()
    return replace(
        wiki, name=f"Wiki, {n:,} words", train=wiki.train[:n],
        valid=wiki.valid[:WIKI_HELD_OUT], test=wiki.test[:WIKI_HELD_OUT],
    )  # fmt: skip


TIER = os.environ.get("NPLM_TIER") or available_tiers()[0]
# bfloat16 helps PyTorch where the processor multiplies it.
ROUNDS = {"bfloat16": available_tiers("bfloat16")[0] != "plain"}
TEXTS: dict[str, Callable[[], Corpus]] = {
    "ptb": fetch_ptb,
    "brown": fetch_brown,
    "wiki-2M": lambda: of_wiki(2_000_000),
    "wiki-14M": lambda: of_wiki(14_000_000),
}
# Trains on a corpus with settings for some minutes; returns a row.
Found = dict[str, Any]
Measure = Callable[[Corpus, Found, float], Found]
# -- the settings with which a search begins; --set changes them ---------------------

# The defaults of torch_models.Settings, also for short budgets.
LSTM: Found = {"kind": "lstm"}
GPT: Found = {"kind": "gpt", "layers": 2, "hidden": 1024, "length": 64}
# The preset "memory", with more noise samples; fewer features and less dropout for a
# minute, more for ten.
NETWORK: Found = {
    "order": 2, "n_hidden": 256, "embedding_dim": 192, "n_memory": 128, "tied": True,
    "direct": True, "spelling": False, "loss": "importance", "n_noise": 1024,
    "solver": "adam", "beta_2": 0.99, "learning_rate": "linear",
    "learning_rate_init": 8e-3, "alpha": 0.1, "dropout": [0.2, 0.0, 0.1],
    "batch_size": 1024, "early_stopping": False, "max_iter": 3, "precision": "auto",
}  # fmt: skip

SETTINGS: dict[str, Found] = {
    "lstm": LSTM, "gpt": GPT, "network": NETWORK, "default": {}, "kneser-ney": {},
    "door": {}, "door-network": {},
}  # fmt: skip


def scored(parts: dict[str, Any], log_prob: Callable[..., NDArray[Any]]) -> Found:
    """Perplexities of the held-out parts, and words a second of the test part."""
    found: Found = {}
    for name, data in parts.items():
        began = time.process_time()
        scores = log_prob(*data)
        seconds = time.process_time() - began
        found[name] = float(np.exp(-np.mean(scores)))
        found["words/s"] = len(scores) / seconds
    return found


def network(corpus: Corpus, settings: Found, minutes: float) -> Found:
    """nplm's best: a stream, as the peers read it.

    It trains for whole epochs. The peers' columns also begin all over the text.
    """
    began = time.process_time()
    settings = dict(settings)
    spelling = settings.pop("spelling")
    lm = NeuralLM(n_words=corpus.n_words, random_state=0)
    lm.set_params(**grouped(settings))
    stream = as_stream(corpus, max(lm.order - 1, lm.n_distant))
    if spelling:
        features, _ = corpus.vocabulary.spelling_features(ngrams=(3, 4), min_words=5)
        lm.set_params(features__word_features=features)
    lm.fit_stream(stream.train)
    seconds = time.process_time() - began

    def log_prob(ids: NDArray[Any], before: NDArray[Any]) -> NDArray[Any]:
        return lm.log_prob_stream(np.concatenate([before, ids]))[-len(ids) :]

    return {
        "CPU s": seconds, "epochs": lm.n_iter_, "parameters": lm.n_parameters_,
        **scored(held_out_of(corpus), log_prob), "lm": lm,
    }  # fmt: skip


def held_out_of(corpus: Corpus) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """The held-out parts, and the words before each in the stream."""
    before_test = np.concatenate([corpus.train, corpus.valid])
    return {
        "valid": (corpus.valid, corpus.train[-HISTORY:]),
        "test": (corpus.test, before_test[-HISTORY:]),
    }


def door(corpus: Corpus, settings: Found, minutes: float, **fixed: Any) -> Found:
    """nplm's own choice for the minutes, by the clock: no settings."""
    boundary = corpus.n_words if corpus.boundary is None else corpus.boundary
    words = np.asarray([*corpus.words, "</s>"], dtype=object)

    def lines(ids: NDArray[np.int32]) -> list[list[str]]:
        parts = np.split(ids, np.flatnonzero(ids == boundary) + 1)
        return [words[part[part != boundary]].tolist() for part in parts if len(part)]

    def log_prob(
        ids: NDArray[np.int32], before: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        scorer = lm.scorer()
        scorer.tokens(lines(before))
        return scorer.tokens(lines(ids)).log_prob[: len(ids)]

    began = time.process_time()
    lm = AutoLM(
        minutes, running_text=True, settings=settings | fixed, n_jobs=1, random_state=0,
        vocabulary=Vocabulary(words=np.delete(words, boundary).tolist()),
    )  # fmt: skip
    lm.fit(lines(corpus.train), X_val=lines(corpus.valid))
    seconds = time.process_time() - began
    recipe = lm.recipe_
    planned = recipe.corrections[-1][1] if recipe.corrections else recipe.planned
    return {
        "CPU s": seconds, "epochs": planned / len(corpus.train),
        "parameters": lm.estimator_.n_parameters_, "recipe": recipe.as_dict(),
        **scored(held_out_of(corpus), log_prob),
    }  # fmt: skip


def default(corpus: Corpus, settings: Found, minutes: float) -> Found:
    """NeuralLM() with nothing set, which ends by itself: at no budget."""
    lm = NeuralLM(n_words=corpus.n_words, random_state=0, **settings)
    return of_windows(lm, corpus, N_CONTEXT)


def kneser_ney(corpus: Corpus, settings: Found, minutes: float) -> Found:
    """In no budget either: it takes seconds."""
    lm = KneserNeyLM(5, n_words=corpus.n_words, boundary=corpus.boundary)
    return of_windows(lm, corpus, 4)


def of_windows(lm: Any, corpus: Corpus, n_context: int) -> Found:
    """A model of windows, fitted and scored."""
    train, valid, test = corpus.windows(n_context)
    seconds = cpu_seconds(partial(lm.fit, X_val=valid[0], y_val=valid[1]), *train)
    return {
        "CPU s": seconds, "epochs": getattr(lm, "n_iter_", 1),
        "parameters": lm.n_parameters_,
        **scored({"valid": valid, "test": test}, lm.log_prob),
    }  # fmt: skip


def of_torch(corpus: Corpus, settings: Found, minutes: float) -> Found:
    """An LSTM or a GPT, over the same stream; "mixed" is its mixture with n-grams."""
    from peers.torch_models import Network

    began = time.process_time()
    net = Network(corpus.n_words, ROUNDS | settings).fit(corpus.train, 60 * minutes)
    seconds = time.process_time() - began
    log_prob: dict[str, NDArray[Any]] = {}

    def noted(ids: NDArray[Any], before: NDArray[Any]) -> NDArray[Any]:
        name = "test" if log_prob else "valid"
        log_prob[name] = net.log_prob(ids, before)
        return log_prob[name]

    return {
        "CPU s": seconds, "epochs": net.seen / len(corpus.train),
        "parameters": net.n_parameters, **scored(held_out_of(corpus), noted),
        "mixed": mixed(corpus, **log_prob),
    }  # fmt: skip


def mixed(corpus: Corpus, valid: NDArray[Any], test: NDArray[Any]) -> float:
    """Test perplexity with Kneser-Ney of order 5, as lmplz estimates it.

    One weight, which is best for the held-out part.
    """
    ngrams = KneserNeyLM(5, n_words=corpus.n_words, boundary=corpus.boundary)
    train, *held_out = corpus.windows(4)
    ngrams.fit(*train)
    weights = np.linspace(0.01, 0.99, 99)
    others = ngrams.log_prob(*held_out[0])
    best = min(weights, key=lambda weight: _perplexity(weight, valid, others))
    return _perplexity(best, test, ngrams.log_prob(*held_out[1]))


def _perplexity(weight: float, first: NDArray[Any], second: NDArray[Any]) -> float:
    both = np.logaddexp(np.log(weight) + first, np.log1p(-weight) + second)
    return float(np.exp(-both.mean()))


MODELS: dict[str, Measure] = {
    "door": door, "door-network": partial(door, members=["network"]),
    "network": network, "lstm": of_torch, "gpt": of_torch,
    "default": default, "kneser-ney": kneser_ney,
}  # fmt: skip


def run(
    folder: Path, corpus: Corpus, text: str, model: str, minutes: int, changes: Found
) -> Found:
    """One run, unless it is in a file already."""
    settings = SETTINGS[model] | changes
    told = " ".join(f"{name}={value}" for name, value in changes.items())

    def measure() -> Found:
        about = {
            "text": text, "tier": TIER, "model": model,
            "minutes": minutes, "changes": told,
        }  # fmt: skip
        found = MODELS[model](corpus, settings, minutes)
        if "lm" in found:
            nplm.save(found.pop("lm"), folder / f"{name}.nplm", optimizer=False)
        return about | {"settings": settings} | found

    name = file_name(f"{text}-{model}-{minutes}" + (f"-{told}" if told else ""))
    return kept(folder, name, measure)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("text", nargs="?", choices=list(TEXTS))
    options.add_argument("model", nargs="?", choices=list(MODELS))
    options.add_argument("minutes", nargs="*", type=int, default=[0])
    options.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    options.add_argument("--folder", type=Path, required=True, help="a file a run")
    options.add_argument("--page", action="store_true", help="write peers.inc")
    args = options.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    if args.model:
        corpus, changes = TEXTS[args.text](), settings_of(args.set)
        rows = [
            run(args.folder, corpus, args.text, args.model, minutes, changes)
            for minutes in args.minutes
        ]
        report("Peers", [_shown(row) for row in rows], args.json)
    if args.page:
        write(DOCS, [json.loads(p.read_text()) for p in args.folder.glob("*.json")])


def _shown(row: Found) -> Found:
    names = ("text", "model", "minutes", "changes", "CPU s", "epochs", "parameters",
             "valid", "test", "words/s")  # fmt: skip
    return {name: row[name] for name in names}


if __name__ == "__main__":
    main()
