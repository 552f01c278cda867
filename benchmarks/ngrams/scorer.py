"""One sentence at a time, beside KenLM.

    python benchmarks/ngrams/scorer.py [--json FILE]

A Kneser-Ney model of order 5 on the Penn Treebank, read by the ``kenlm`` module from
the ARPA file that nplm writes; both score the same strings in turn, CPU time of one
thread. So does ``nplm.kenlm``, with the calls of that module. Then a network, beside
its arithmetic: its log_prob of windows made before.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np

from common.table import parser, report
from nplm import KneserNeyLM, NeuralLM, Scorer, TextLM, Tokenizer, windows
from nplm import kenlm as own_kenlm
from nplm.datasets import fetch_ptb
from nplm.formats import read_arpa, write_arpa

N_CONTEXT = 4
BLANKS = r"\S+"
N_WORDS = 20  # of a sentence
N_SENTENCES = 2000


def sentences(ids, corpus) -> list[str]:
    """The sentences of a part of the corpus."""
    pieces = np.split(ids, np.flatnonzero(ids == corpus.boundary) + 1)
    return [" ".join(corpus.words[piece[:-1]]) for piece in pieces[:-1]]


def in_turn(calls: dict[str, Callable[[], object]], n: int, repeats: int) -> dict:
    """Microseconds of CPU time a sentence: of each call the fastest, made in turn."""
    found = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.process_time()
            call()
            found[name].append((time.process_time() - start) / n * 1e6)
    return {name: min(times) for name, times in found.items()}


def row(what: str, ours: float, peer: str = "", theirs: float | None = None) -> dict:
    return {
        "what": what,
        "microseconds": float(ours),
        "peer": peer,
        "its": None if theirs is None else float(theirs),
        "times": None if theirs is None else ours / theirs,
    }


def ngrams(train: list[str], texts: list[str], repeats: int) -> list[dict]:
    fitted = TextLM(KneserNeyLM(), N_CONTEXT, tokenizer=Tokenizer(BLANKS)).fit(train)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.arpa")
        write_arpa(fitted.estimator_, path, fitted.vocabulary_.words_)
        lm = TextLM.from_model(*read_arpa(path))
        own = own_kenlm.Model(path)
        try:
            import kenlm

            other = kenlm.Model(path)
        except ImportError:
            other = None
    scorer = lm.scorer()
    tokens = [text.split() for text in texts]

    def steps() -> None:
        for words in tokens:
            state = scorer.begin()
            for word in words:
                _, state = scorer.step(state, word)

    ours = {
        "score": lambda: [scorer.score(text) for text in texts],
        "score_many": lambda: scorer.score_many(texts),
        "score_samples": lambda: lm.score_samples(texts),
        "step": steps,
        "candidates": lambda: [
            scorer.candidates(scorer.begin(), words) for words in tokens
        ],
    }
    if other is None:
        found = in_turn(ours, len(texts), repeats)
        return [row(name, found[name]) for name in ours]

    ours |= {
        f"nplm.kenlm {name}": call
        for name, call in kenlm_calls(own_kenlm, own, texts).items()
    }
    theirs = {
        f"kenlm {name}": call for name, call in kenlm_calls(kenlm, other, texts).items()
    }
    found = in_turn(ours | theirs, len(texts), repeats)
    peers = dict.fromkeys(ours, "kenlm score") | {
        "step": "kenlm BaseScore",
        "candidates": "kenlm candidates",
        **{f"nplm.{name}": name for name in theirs},
    }
    return [
        row(f"n-grams: {name}", found[name], peer, found[peer])
        for name, peer in peers.items()
    ]


def kenlm_calls(module: Any, model: Any, texts: list[str]) -> dict:
    """Give the calls of KenLM's module, of it or of nplm.kenlm."""
    tokens = [text.split() for text in texts]

    def steps(method: Callable) -> None:
        for words in tokens:
            state, after = module.State(), module.State()
            model.BeginSentenceWrite(state)
            for word in words:
                method(state, word, after)
                state, after = after, state

    def candidates() -> None:
        after = module.State()
        for words in tokens:
            state = module.State()
            model.BeginSentenceWrite(state)
            for word in words:
                model.BaseScore(state, word, after)

    return {
        "score": lambda: [model.score(text) for text in texts],
        "full_scores": lambda: [list(model.full_scores(text)) for text in texts],
        "BaseScore": lambda: steps(model.BaseScore),
        "BaseFullScore": lambda: steps(model.BaseFullScore),
        "candidates": candidates,
    }


def network(train: list[str], texts: list[str], repeats: int) -> list[dict]:
    """A sentence from its words, beside its windows made before: what is arithmetic."""
    model = NeuralLM.from_paper("MLP9", max_iter=1, batch_size=128, random_state=0)
    lm = TextLM(model, N_CONTEXT, tokenizer=Tokenizer(BLANKS)).fit(train[:4000])
    # A scorer keeps the distributions after the contexts that it has met.
    texts = list({text.split()[0]: text for text in texts}.values())[:100]
    scorer, model = lm.scorer(), lm.estimator_
    ids = lm.vocabulary_.transform([text.split() for text in texts])
    end = lm.boundary_
    made = [windows([*own, end], N_CONTEXT, boundary=end) for own in ids]
    firsts = [scorer.step(scorer.begin(), text.split()[0])[1] for text in texts]

    def steps_from(new: Scorer) -> None:
        for state in firsts:
            new.step(state, "the")

    calls = {
        "score": lambda: [scorer.score(text) for text in texts],
        "its windows": lambda: [model.log_prob(X, y) for X, y in made],
        "step": lambda: steps_from(lm.scorer()),
        "its window": lambda: [model.log_prob(X[1:2], y[1:2]) for X, y in made],
    }
    found = in_turn(calls, len(texts), repeats)
    return [
        row("network: score", found["score"], "its windows", found["its windows"]),
        row("network: one step", found["step"], "its window", found["its window"]),
    ]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--repeats", type=int, default=7)
    arguments = options.parse_args()
    corpus = fetch_ptb(download_if_missing=False)
    texts = [text for text in sentences(corpus.test, corpus) if text]
    texts = [text for text in texts if len(text.split()) >= N_WORDS]
    texts = [" ".join(text.split()[:N_WORDS]) for text in texts][:N_SENTENCES]
    train = sentences(corpus.train, corpus)
    rows = ngrams(train, texts, arguments.repeats)
    rows += network(train, texts, arguments.repeats)
    report(f"A sentence of {N_WORDS} words", rows, arguments.json)


if __name__ == "__main__":
    main()
