"""Look-ups beside KenLM.

    python benchmarks/ngrams/look_ups.py MODEL KENLM TEXT [--start] [--json FILE]

MODEL is a mapped or 8-bit file of nplm, KENLM a binary of the same n-grams (or the ARPA
file), TEXT lines of held-out words. All of it is made by commands. With the Wiki corpus
(wiki16m.txt.xz) they make 53.1 million n-grams::

    xz -dc wiki16m.txt.xz | awk 'NF && ++n % 40 {print > "train.txt"; next}
                                 NF {print > "held.txt"}'
    nplm train train.txt --order 6 --tokens blanks --memory 2G -o model.nplm
    nplm convert model.nplm model.8bits --bits 8
    nplm convert model.nplm model.arpa
    build_binary probing model.arpa model.probing
    build_binary -q 8 -b 8 -a 22 trie model.arpa model.trie

Sentences of ``--words`` words and their ends are scored in turn, CPU time of one
thread, the least of ``--repeats`` rounds: by nplm as windows of ids made before, and as
strings; by the ``kenlm`` module as strings.

With ``--start`` whole processes are measured instead: Python starts, imports, opens the
model, and scores one sentence. Their CPU time is compared with that of a process that
imports the ``kenlm`` module and does the same.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import kenlm
import numpy as np

from common.table import parser, report
from nplm import TextLM, Tokenizer, windows
from nplm.formats import load_binary

BLANKS = r"[^ \t\r\n]+"
# KenLM's BaseScore and `step` take longer: they score this many sentences.
N_STEPPED = 4000


def sentences_of(path: Path, n_words: int) -> list[list[str]]:
    """Cut the lines of a file into sentences of `n_words` words; drop the rest."""
    lines = [line.split() for line in path.read_text().splitlines()]
    return [
        line[i : i + n_words]
        for line in lines
        for i in range(0, len(line) - n_words + 1, n_words)
    ]


def ours(
    model: Any, words: list[str], sentences: list[list[str]]
) -> dict[str, tuple[Callable[[], object], str]]:
    """Calls of nplm, and the call of KenLM beside each."""
    lm = TextLM.from_model(model, words, tokenizer=Tokenizer(BLANKS))
    scorer, texts = lm.scorer(), [" ".join(own) for own in sentences]
    ids = lm.vocabulary_.transform(sentences)
    stream = np.concatenate([[*own, lm.boundary_] for own in ids]).astype(np.int32)
    X, y = windows(stream, model.order_ - 1, boundary=lm.boundary_)
    X, y = X.astype(np.int32), y.astype(np.int32)

    def in_batches(size: int) -> Callable[[], object]:
        parts = [(X[i : i + size], y[i : i + size]) for i in range(0, len(y), size)]
        return lambda: [model.log_prob(*part) for part in parts]

    def step() -> None:
        for own in sentences[:N_STEPPED]:
            state = scorer.begin()
            for word in own:
                _, state = scorer.step(state, word)
            scorer.end(state)

    length = len(sentences[0]) + 1
    calls = {f"log_prob, {n:,} windows": in_batches(n) for n in (len(y), 1000, length)}
    calls["Scorer.score"] = lambda: [scorer.score(text) for text in texts]
    calls["Scorer.score_many"] = lambda: scorer.score_many(texts)
    calls["TextLM.score_samples"] = lambda: lm.score_samples(texts)
    own = {name: (call, "score") for name, call in calls.items()}
    return own | {"Scorer.step": (step, "BaseScore")}


def theirs(other: Any, sentences: list[list[str]]) -> dict[str, Callable[[], object]]:
    """Calls of the ``kenlm`` module."""
    texts = [" ".join(own) for own in sentences]

    def base_score() -> None:
        for own in sentences[:N_STEPPED]:
            state, after = kenlm.State(), kenlm.State()
            other.BeginSentenceWrite(state)
            for word in own:
                other.BaseScore(state, word, after)
                state, after = after, state
            other.BaseScore(state, "</s>", after)

    def score() -> None:
        for text in texts:
            other.score(text)

    return {"score": score, "BaseScore": base_score}


def cpu_seconds(arguments: list[str], text: str) -> float:
    """CPU time of a process of Python that reads a line."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments], input=text, text=True, check=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def starts(model: Path, other: Path, text: str, repeats: int) -> list[dict[str, Any]]:
    """Whole processes, in turn: the least CPU seconds of each."""
    ask = "import sys; text = sys.stdin.read(); "
    peer = f"import kenlm; kenlm.Model({str(other)!r}).score(text)"
    module = f"from nplm import kenlm; kenlm.Model({str(model)!r}).score(text)"
    loaded = f"import nplm; nplm.load({str(model)!r}).scorer().score(text)"
    calls = {
        "kenlm.Model(KENLM).score": ["-c", ask + peer],
        "nplm.kenlm.Model(MODEL).score": ["-c", ask + module],
        "nplm score MODEL": ["-m", "nplm", "score", str(model)],
        "nplm query MODEL": ["-m", "nplm", "query", str(model)],
        "nplm.load(MODEL).scorer().score": ["-c", ask + loaded],
        "nplm --version": ["-m", "nplm", "--version"],
        "import numpy": ["-c", "import numpy"],
        "import sklearn": ["-c", "import sklearn"],
    }
    seconds = dict.fromkeys(calls, np.inf)
    for _ in range(repeats):
        for name, call in calls.items():
            seconds[name] = min(seconds[name], cpu_seconds(call, text))
    its = next(iter(seconds.values()))
    return [
        {"process": name, "CPU seconds": own, "times kenlm's": own / its}
        for name, own in seconds.items()
    ]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("model", type=Path)
    options.add_argument("kenlm", type=Path)
    options.add_argument("text", type=Path)
    options.add_argument("--words", type=int, default=25, help="of a sentence")
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--start", action="store_true", help="measure processes")
    arguments = options.parse_args()
    if arguments.start:
        [sentence, *_] = sentences_of(arguments.text, arguments.words)
        own = arguments.model, arguments.kenlm, " ".join(sentence), arguments.repeats
        title = f"processes that score a sentence, load {os.getloadavg()[0]:.1f}"
        report(title, starts(*own), arguments.json)
        return
    model, words = load_binary(arguments.model)
    sentences = sentences_of(arguments.text, arguments.words)
    calls = ours(model, words, sentences)
    peers = theirs(kenlm.Model(str(arguments.kenlm)), sentences)
    every = {name: call for name, (call, _) in calls.items()} | peers
    seconds = dict.fromkeys(every, np.inf)
    for _ in range(arguments.repeats):
        for name, call in every.items():
            start = time.process_time()
            call()
            seconds[name] = min(seconds[name], time.process_time() - start)
    stepped = min(len(sentences), N_STEPPED)
    length = arguments.words + 1
    n = {"BaseScore": stepped * length, "Scorer.step": stepped * length}
    ns = {
        name: 1e9 * own / n.get(name, len(sentences) * length)
        for name, own in seconds.items()
    }
    rows = [
        {
            "what": name, "ns a token": ns[name], "beside": f"kenlm {peer}",
            "its": ns[peer], "times its speed": ns[peer] / ns[name],
        }
        for name, (_, peer) in calls.items()
    ]  # fmt: skip
    n_ngrams = int(model.n_ngrams_.sum())
    sizes = [os.path.getsize(p) / n_ngrams for p in (arguments.model, arguments.kenlm)]
    report(
        f"{n_ngrams:,} n-grams, {sizes[0]:.1f} and {sizes[1]:.1f} bytes each, "
        f"{len(sentences):,} sentences of {arguments.words} words, "
        f"load {os.getloadavg()[0]:.1f}",
        rows,
        arguments.json,
    )


if __name__ == "__main__":
    main()
