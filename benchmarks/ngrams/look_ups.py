"""Look-ups beside KenLM.

    python benchmarks/ngrams/look_ups.py MODEL KENLM TEXT
        [--read | --start | --lines]

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
strings; by the ``kenlm`` module and by ``nplm.kenlm``, which has its calls, as strings.

Files are mapped, by both. Linux maps them in the pages of its cache: those of a file
just written by ``nplm train`` or ``nplm convert`` may be large, those of a copy are
small. With ``--read`` both read their files into memory, in large pages where the
system has them. The title says how much memory is in large pages.

With ``--start`` whole processes are measured instead: Python starts, imports, opens the
model, and scores one sentence. Their CPU time is compared with that of a process that
imports the ``kenlm`` module and does the same.

With ``--lines`` whole processes filter a crawl: ``nplm score --per-token`` and a loop
over the ``score`` of the ``kenlm`` module score the lines of TEXT. The time of their
start, with no line to score, is subtracted.
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

import nplm
from common.table import parser, report
from nplm import TextLM, Tokenizer, windows
from nplm import kenlm as nplm_kenlm

BLANKS = r"[^ \t\r\n]+"
# Calls for each word take longer: they score this many sentences.
N_STEPPED = 4000
Calls = dict[str, Callable[[], object]]
FILTER = """
import sys
import kenlm

model = kenlm.Model(sys.argv[1])
for line in sys.stdin:
    line = line.rstrip("\\n")
    print(f"{model.score(line) / (len(line.split()) + 1):.6f}")
"""


def sentences_of(path: Path, n_words: int) -> list[list[str]]:
    """Cut the lines of a file into sentences of `n_words` words; drop the rest."""
    lines = [line.split() for line in path.read_text().splitlines()]
    return [
        line[i : i + n_words]
        for line in lines
        for i in range(0, len(line) - n_words + 1, n_words)
    ]


def of_nplm(model: Any, words: list[str], sentences: list[list[str]]) -> Calls:
    """Calls of nplm."""
    lm = TextLM.from_model(model, words, tokenizer=Tokenizer(BLANKS))
    scorer, texts = lm.scorer(), [" ".join(sentence) for sentence in sentences]
    ids = lm.vocabulary_.transform(sentences)
    stream = np.concatenate([[*part, lm.boundary_] for part in ids]).astype(np.int32)
    X, y = windows(stream, model.order_ - 1, boundary=lm.boundary_)
    X, y = X.astype(np.int32), y.astype(np.int32)

    def in_batches(size: int) -> Callable[[], object]:
        parts = [(X[i : i + size], y[i : i + size]) for i in range(0, len(y), size)]
        return lambda: [model.log_prob(*part) for part in parts]

    def step() -> None:
        for sentence in sentences[:N_STEPPED]:
            state = scorer.begin()
            for word in sentence:
                _, state = scorer.step(state, word)
            scorer.end(state)

    length = len(sentences[0]) + 1
    calls = {f"log_prob, {n:,} windows": in_batches(n) for n in (len(y), 1000, length)}
    return calls | {
        "Scorer.score": lambda: [scorer.score(text) for text in texts],
        "Scorer.score_many": lambda: scorer.score_many(texts),
        "TextLM.score_samples": lambda: lm.score_samples(texts),
        "Scorer.step": step,
    }


def of_kenlm(
    module: Any, path: Path, sentences: list[list[str]], *, read: bool
) -> Calls:
    """Calls of KenLM's module, by it or by `nplm.kenlm`."""
    config = module.Config()
    if read:
        config.load_method = module.LoadMethod.READ
    model = module.Model(str(path), config)
    texts = [" ".join(part) for part in sentences]

    def steps(method: Callable[..., object]) -> None:
        for sentence in sentences[:N_STEPPED]:
            state, after = module.State(), module.State()
            model.BeginSentenceWrite(state)
            for word in [*sentence, "</s>"]:
                method(state, word, after)
                state, after = after, state

    return {
        "score": lambda: [model.score(text) for text in texts],
        "full_scores": lambda: [list(model.full_scores(text)) for text in texts],
        "BaseScore": lambda: steps(model.BaseScore),
        "BaseFullScore": lambda: steps(model.BaseFullScore),
    }


def large_page_mib() -> int:
    """Return the memory of this process in large pages, where Linux tells."""
    try:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    parts = [line.split() for line in lines]
    kinds = ("AnonHugePages:", "FilePmdMapped:")
    return sum(int(part[1]) for part in parts if part[0] in kinds) >> 10


def cpu_seconds(arguments: list[str], text: str) -> tuple[float, str]:
    """CPU time of a process of Python that reads a text, and its output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *arguments], input=text, text=True, check=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, done.stdout


def filters(model: Path, other: Path, text: str, repeats: int) -> list[dict[str, Any]]:
    """Filters of a crawl, in turn: the least CPU seconds of each without its start."""
    calls = {
        "nplm score": ["-m", "nplm", "score", "--per-token", str(model)],
        "kenlm": ["-c", FILTER, str(other)],
    }
    whole, start = (dict.fromkeys(calls, np.inf) for _ in range(2))
    printed = {}
    for _ in range(repeats):
        for name, call in calls.items():
            start[name] = min(start[name], cpu_seconds(call, "")[0])
            seconds, printed[name] = cpu_seconds(call, text)
            whole[name] = min(whole[name], seconds)
    numbers = [np.array(lines.split(), float) for lines in printed.values()]
    print(f"scores within {np.abs(np.subtract(*numbers)).max():.6f}")
    scored = {name: whole[name] - start[name] for name in calls}
    return [
        {"command": name, "seconds": seconds,
         "words a second": len(text.split()) / seconds,
         "times kenlm": seconds / scored["kenlm"]}
        for name, seconds in scored.items()
    ]  # fmt: skip


def starts(model: Path, other: Path, text: str, repeats: int) -> list[dict[str, Any]]:
    """Whole processes, in turn: the least CPU seconds of each."""
    ask = "import sys; text = sys.stdin.read(); "
    theirs = f"import kenlm; kenlm.Model({str(other)!r}).score(text)"
    module = f"from nplm import kenlm; kenlm.Model({str(model)!r}).score(text)"
    loaded = f"import nplm; nplm.load({str(model)!r}).scorer().score(text)"
    calls = {
        "kenlm.Model(KENLM).score": ["-c", ask + theirs],
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
            seconds[name] = min(seconds[name], cpu_seconds(call, text)[0])
    peer = next(iter(seconds.values()))
    return [
        {"process": name, "CPU seconds": spent, "times kenlm's": spent / peer}
        for name, spent in seconds.items()
    ]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("model", type=Path)
    options.add_argument("kenlm", type=Path)
    options.add_argument("text", type=Path)
    options.add_argument("--words", type=int, default=25, help="of a sentence")
    options.add_argument("--repeats", type=int, default=5)
    way = options.add_mutually_exclusive_group()
    way.add_argument("--start", action="store_true", help="measure processes")
    way.add_argument("--read", action="store_true", help="read the files into memory")
    way.add_argument("--lines", action="store_true", help="measure filters of TEXT")
    arguments = options.parse_args()
    files = arguments.model, arguments.kenlm
    if arguments.lines:
        rows = filters(*files, arguments.text.read_text(), arguments.repeats)
        report("Filters of a crawl, without their starts", rows, arguments.json)
        return
    sentences = sentences_of(arguments.text, arguments.words)
    if arguments.start:
        rows = starts(*files, " ".join(sentences[0]), arguments.repeats)
        title = f"processes that score a sentence, load {os.getloadavg()[0]:.1f}"
        report(title, rows, arguments.json)
        return
    read = arguments.read
    lm = nplm.load(arguments.model, mmap=not read)
    model, words = lm.estimator_, list(lm.vocabulary_.words_)
    calls = of_nplm(model, words, sentences)
    theirs = of_kenlm(kenlm, arguments.kenlm, sentences, read=read)
    ours = of_kenlm(nplm_kenlm, arguments.model, sentences, read=read)
    # The call of KenLM's module beside each.
    peers = dict.fromkeys(calls, "kenlm score") | {"Scorer.step": "kenlm BaseScore"}
    peers |= {f"nplm.kenlm {name}": f"kenlm {name}" for name in theirs}
    calls |= {f"nplm.kenlm {name}": call for name, call in ours.items()}
    calls |= {f"kenlm {name}": call for name, call in theirs.items()}
    seconds = dict.fromkeys(calls, np.inf)
    for _ in range(arguments.repeats):
        for name, call in calls.items():
            start = time.process_time()
            call()
            seconds[name] = min(seconds[name], time.process_time() - start)
    stepped = (arguments.words + 1) * min(len(sentences), N_STEPPED)
    ns = {
        name: 1e9 * spent / (
            stepped if name.endswith((".step", "BaseScore", "BaseFullScore"))
            else len(sentences) * (arguments.words + 1)
        )
        for name, spent in seconds.items()
    }  # fmt: skip
    rows = [
        {
            "what": name, "ns a token": ns[name], "beside": peer,
            "its": ns[peer], "times its speed": ns[peer] / ns[name],
        }
        for name, peer in peers.items()
    ]  # fmt: skip
    n_ngrams = int(model.n_ngrams_.sum())
    sizes = [os.path.getsize(p) / n_ngrams for p in (arguments.model, arguments.kenlm)]
    report(
        f"{n_ngrams:,} n-grams, {sizes[0]:.1f} and {sizes[1]:.1f} bytes each, "
        f"{len(sentences):,} sentences of {arguments.words} words, "
        f"{large_page_mib():,} MiB in large pages, load {os.getloadavg()[0]:.1f}",
        rows,
        arguments.json,
    )


if __name__ == "__main__":
    main()
