"""Do ESPnet and transformers decode the same with nplm.kenlm as with KenLM's module?

    python benchmarks/tasks/decoders.py [--json FILE]

Both import a module named ``kenlm``: first KenLM's own, then ``nplm.kenlm`` in its
place. ESPnet's two n-gram scorers give the scores of all letters after each prefix of
some lines, and of a part of them; ``Wav2Vec2ProcessorWithLM`` decodes noisy frames of
sentences by pyctcdecode's ``build_ctcdecoder``. The models are Kneser-Ney n-grams of
order 4, of letters and of words, in ARPA files; the last row has a network, which only
nplm reads. Seconds are CPU time.

Needs PyTorch, transformers, KenLM's module, and pyctcdecode and espnet, both installed
with ``pip install --no-deps`` (and pygtrie).
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import kenlm
import numpy as np
import torch
import transformers
from numpy.typing import NDArray

import nplm
import nplm.kenlm
from common.table import parser, report
from nplm.datasets import load_python_docs
from nplm.formats import write_arpa

ORDER, N_LINES, N_TEXTS, N_TOKENS, NOISE = 4, 40, 8, 8, 0.8
SPECIAL = ["<pad>", "<s>", "</s>", "<unk>", "|"]


def imported(name: str, module: ModuleType) -> Any:
    """Import a package anew, with a module in the place of kenlm."""
    package = name.split(".")[0]
    for other in [n for n in sys.modules if n.split(".")[0] == package]:
        del sys.modules[other]
    sys.modules["kenlm"] = module
    return importlib.import_module(name)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    return work(), time.process_time() - began


# -- ESPnet ----------------------------------------------------------------------------


def espnet_scores(
    scorer: Any, tokens: list[str], lines: Sequence[str]
) -> NDArray[np.float64]:
    """Return scores of tokens after each prefix of lines, relative to the first one."""
    ids = {token: i for i, token in enumerate(tokens)}
    part, every = torch.arange(2, 12), []
    x = torch.zeros(1, dtype=torch.float64)  # the encoder's output: its dtype is used
    for line in lines:
        prefix, state = [ids["<eos>"]], scorer.init_state(x)
        for letter in [*line.replace(" ", "_")]:
            y = torch.tensor(prefix)
            if hasattr(scorer, "score_partial"):
                next_scores, state = scorer.score_partial(y, part, state, x)
            else:
                next_scores, state = scorer.score(y, state, x)
            # All hypotheses have the number of "<s>" after no word, -99 or -100.
            every.append(next_scores.numpy() - next_scores[0].item())
            prefix.append(ids[letter])
    return np.concatenate(every)


def espnet_rows(folder: Path, lines: list[str]) -> list[dict[str, Any]]:
    letters = [[*line.replace(" ", "_")] for line in lines]
    ngrams = nplm.KneserNeyLM(ORDER, discount_fallback=(0.5, 1, 1.5))
    lm = nplm.TextLM(ngrams, ORDER - 1).fit(letters)
    path = str(folder / "letters.arpa")
    write_arpa(lm.estimator_, path, lm.vocabulary_.words_)
    tokens = ["<blank>", "<unk>", *lm.unigrams(), "<eos>"]
    rows = []
    for kind in ("NgramFullScorer", "NgramPartScorer"):
        both = []
        for module in (kenlm, nplm.kenlm):
            scorers = imported("espnet.nets.scorers.ngram", module)
            scorer = getattr(scorers, kind)(path, tokens)
            score = partial(espnet_scores, scorer, tokens, lines[:N_LINES])
            both.append(timed(score))
        (theirs, first), (ours, second) = both
        rows.append({
            "program": f"ESPnet {kind}", "compared": f"{ours.size:,} scores",
            "largest difference": float(abs(theirs - ours).max()),
            "KenLM's module s": first, "nplm.kenlm s": second,
        })  # fmt: skip
    return rows


# -- transformers ----------------------------------------------------------------------


def processor_of(
    module: ModuleType, path: str, labels: list[str], words: list[str], folder: Path
) -> Any:
    pyctcdecode = imported("pyctcdecode", module)
    decoder = pyctcdecode.build_ctcdecoder(
        [" " if label == "|" else label for label in labels], path, words
    )
    (folder / "vocab.json").write_text(json.dumps({x: i for i, x in enumerate(labels)}))
    tokenizer = transformers.Wav2Vec2CTCTokenizer(str(folder / "vocab.json"))
    return transformers.Wav2Vec2ProcessorWithLM(
        transformers.Wav2Vec2FeatureExtractor(), tokenizer, decoder
    )


def frames_of(line: str, labels: list[str]) -> NDArray[np.float32]:
    """Return noisy log-probabilities of labels: each letter, and a pause after it."""
    spoken = [i for c in line.replace(" ", "|") for i in (labels.index(c), 0)]
    rng = np.random.default_rng(len(line))
    logits = NOISE * rng.normal(size=(len(spoken), len(labels)))
    logits[np.arange(len(spoken)), spoken] += 4
    return (logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))).astype("f4")


def transformers_rows(folder: Path, lines: list[str]) -> list[dict[str, Any]]:
    lm = nplm.TextLM(nplm.KneserNeyLM(ORDER), ORDER - 1).fit(lines)
    network = nplm.TextLM(nplm.NeuralLM(max_iter=1, random_state=0), 3).fit(lines)
    arpa, saved = str(folder / "words.arpa"), str(folder / "network.nplm")
    write_arpa(lm.estimator_, arpa, lm.vocabulary_.words_)
    nplm.save(network, saved)
    labels = [*SPECIAL, *sorted(set("".join(lines)) - {" "})]
    frames = [frames_of(line, labels) for line in lines[:N_TEXTS]]

    def decoded(module: ModuleType, path: str, model: Any) -> tuple[Any, float]:
        processor = processor_of(module, path, labels, model.unigrams(), folder)
        return timed(lambda: [processor.decode(logits) for logits in frames])

    theirs, first = decoded(kenlm, arpa, lm)
    ours, second = decoded(nplm.kenlm, arpa, lm)
    others, third = decoded(nplm.kenlm, saved, network)
    assert [x.text for x in theirs] == [x.text for x in ours], "other texts"
    name, n = "Wav2Vec2ProcessorWithLM", f"{len(frames)} texts"
    scores = [np.array([x.lm_score for x in some]) for some in (theirs, ours)]
    return [
        {"program": name, "compared": n,
         "largest difference": float(abs(scores[0] - scores[1]).max()),
         "KenLM's module s": first, "nplm.kenlm s": second},
        {"program": f"{name}, a network", "compared": f"{len(others)} texts",
         "largest difference": float("nan"),
         "KenLM's module s": float("nan"), "nplm.kenlm s": third},
    ]  # fmt: skip


def main() -> None:
    args = parser(__doc__).parse_args()
    corpus = load_python_docs()
    words = [w for w in corpus.words[corpus.train].tolist() if w.isalpha()][:40_000]
    lines = [" ".join(words[i : i + N_TOKENS]) for i in range(0, len(words), N_TOKENS)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = espnet_rows(folder, lines) + transformers_rows(folder, lines)
    packages = ("torch", "transformers", "pyctcdecode", "espnet", "kenlm", "numpy")
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    report(f"Programs that import kenlm ({versions})", rows, args.json)


if __name__ == "__main__":
    main()
