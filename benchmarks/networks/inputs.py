"""Do other inputs pay: several senses of a word, or a time-delay layer (section 5.2)?

In PyTorch (pip install torch), where they were tried before any was built; mixed senses
then came to be NeuralLM(n_senses=...). MLP9's shape on Brown: x is made in one way or
another, and all else is the same, y = b + U tanh(d + Hx), by Adam with a step that
falls to 0, on sampled words (section 5.1), so that a row takes a minute. Perplexities
are exact, of every fifth window.

senses: x has the features of the window's words, and to each of the --frequent most
frequent ones are added those of its sense: which of them is told by the word before it
(by one of a few classes of WordClasses), or it is a mixture that the other words of the
window make (softmax of learned weights).

time-delay: three neighbours at a time through a layer that all places share, and tanh,
beside the window; the paper's x of a longer window is what they are to beat.

Each is to beat a plain x with as many parameters (more features). --rows is a folder
that keeps the rows, a file each; those that are there are not measured again. --page
writes docs/measured/inputs.inc of all that there are.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from common.table import Rows, conditions, file_name, kept, list_table, parser, report
from nplm import WordClasses
from nplm.datasets import Corpus, fetch_brown

PAGE = Path(__file__).parents[2] / "docs" / "measured" / "inputs.inc"
H, WIDEST, BATCH, DRAWS, STEP = 100, 8, 512, 512, 2e-3


def drawn(*shape: int, scale: float = 0.1) -> nn.Parameter:
    return nn.Parameter(scale * torch.randn(*shape))


class Window(nn.Module):
    """The paper's x: the features of the nearest words, one after the other."""

    def __init__(self, V: int, k: int, m: int) -> None:
        super().__init__()
        self.C, self.k, self.m, self.length = drawn(V, m), k, m, k * m

    def near(self, X: Tensor) -> Tensor:
        """Features by place, the nearest last."""
        return functional.embedding(X[:, -self.k :], self.C)

    def forward(self, X: Tensor) -> Tensor:
        return self.near(X).flatten(1)


class SensesByClass(Window):
    """The class of the word before tells which sense a frequent word has."""

    def __init__(self, V: int, k: int, m: int, frequent: int, labels: Tensor) -> None:
        super().__init__(V, k, m)
        self.frequent, self.labels = frequent, labels
        self.n = int(labels.max()) + 1
        self.senses = nn.Parameter(torch.zeros(frequent * self.n + 1, m))

    def forward(self, X: Tensor) -> Tensor:
        # Words are numbered by falling frequency.
        word, before = X[:, -self.k :], X[:, -self.k - 1 : -1]
        index = torch.where(
            word < self.frequent,
            word * self.n + self.labels[before],
            self.frequent * self.n,
        )
        own = functional.embedding(index, self.senses)
        return (self.near(X) + own).flatten(1)


class MixedSenses(Window):
    """A mixture of senses, by what the window's other words are."""

    def __init__(self, V: int, k: int, m: int, frequent: int, n: int) -> None:
        super().__init__(V, k, m)
        self.frequent, self.n = frequent, n
        self.senses, self.asks = drawn(frequent + 1, n * m), drawn(frequent + 1, n * m)

    def forward(self, X: Tensor) -> Tensor:
        near = self.near(X)
        others = near.sum(1, keepdim=True) - near
        index = X[:, -self.k :].clamp(max=self.frequent)
        shape = (*near.shape[:2], self.n, self.m)
        asks = functional.embedding(index, self.asks).view(shape)
        share = torch.softmax((asks * others[:, :, None]).sum(-1), dim=-1)
        senses = functional.embedding(index, self.senses).view(shape)
        return (near + (share[..., None] * senses).sum(2)).flatten(1)


class TimeDelay(Window):
    """Each three neighbours through one layer; beside them the nearest as they are."""

    def __init__(self, V: int, k: int, m: int, channels: int, beside: int) -> None:
        super().__init__(V, k, m)
        self.shared = nn.Linear(3 * m, channels)
        self.beside = beside
        self.length = (k - 2) * channels + beside * m

    def forward(self, X: Tensor) -> Tensor:
        near = self.near(X)
        threes = torch.cat([near[:, :-2], near[:, 1:-1], near[:, 2:]], dim=2)
        made = torch.tanh(self.shared(threes)).flatten(1)
        return torch.cat([made, near[:, self.k - self.beside :].flatten(1)], dim=1)


class Network(nn.Module):
    """Equation (1) without direct connections, trained on sampled words."""

    def __init__(self, inputs: Window, unigrams: Tensor) -> None:
        super().__init__()
        V = len(unigrams)
        self.inputs = inputs
        self.H = nn.Linear(inputs.length, H)
        self.U = nn.Parameter(torch.zeros(V, H))
        self.b = nn.Parameter(unigrams.log())
        self.proposal = unigrams

    def hidden(self, X: Tensor) -> Tensor:
        return torch.tanh(self.H(self.inputs(X)))

    def loss(self, X: Tensor, y: Tensor) -> Tensor:
        """Importance sampling: draws are weighted by one over how many are expected."""
        a = self.hidden(X)
        words = torch.multinomial(self.proposal, DRAWS, replacement=True)
        both = functional.embedding(torch.cat([y, words]), self.U)
        own = (a * both[: len(y)]).sum(1) + self.b[y]
        scores = a @ both[len(y) :].T + self.b[words]
        scores = scores - (DRAWS * self.proposal[words]).log()
        scores = scores.masked_fill(words == y[:, None], -torch.inf)
        every = torch.cat([own[:, None], scores], dim=1)
        return (every.logsumexp(1) - own).mean()

    @torch.inference_mode()
    def perplexity(self, X: Tensor, y: Tensor) -> float:
        total = 0.0
        for Xs, ys in zip(X.split(2048), y.split(2048)):
            scores = self.hidden(Xs) @ self.U.T + self.b
            total += float(functional.cross_entropy(scores, ys, reduction="sum"))
        return float(np.exp(total / len(y)))


def measure(name: str, corpus: Corpus, args: Any) -> dict[str, Any]:
    """A row; ends the process where --limit does, to go on from there next time."""
    until = time.time() + args.limit
    torch.manual_seed(args.seed)
    (X, y), valid, test = (
        tuple(torch.from_numpy(a.astype(np.int64)) for a in part)
        for part in corpus.windows(WIDEST)
    )
    counts = torch.bincount(y, minlength=corpus.n_words) + 1.0
    net = Network(made(name, corpus, args), counts / counts.sum())
    adam = torch.optim.Adam(net.parameters(), lr=STEP, eps=1e-5, fused=True)
    rng = np.random.default_rng(args.seed)
    order = [torch.from_numpy(rng.permutation(len(y))) for _ in range(args.epochs)]
    batches = [rows for epoch in order for rows in epoch.split(BATCH)]
    done, seconds = 0, 0.0
    state = args.rows / f"{file_name(row_name(name, args))}.pt"
    if state.exists():
        done, seconds, of_net, of_adam, draws = torch.load(state)
        net.load_state_dict(of_net)
        adam.load_state_dict(of_adam)
        torch.set_rng_state(draws)
    started = time.process_time()
    for t in range(done, len(batches)):
        if time.time() > until:
            seconds += time.process_time() - started
            held = net.state_dict(), adam.state_dict(), torch.get_rng_state()
            torch.save((t, seconds, *held), state)
            raise SystemExit(f"{name}: {t} of {len(batches)}; call again to go on.")
        for group in adam.param_groups:
            group["lr"] = STEP * (1 - t / len(batches))
        adam.zero_grad(set_to_none=True)
        net.loss(X[batches[t]], y[batches[t]]).backward()
        adam.step()
    seconds += time.process_time() - started
    state.unlink(missing_ok=True)
    return {
        "inputs": name, "seed": args.seed, "epochs": args.epochs,
        "parameters": sum(p.numel() for p in net.parameters()),
        "valid": net.perplexity(*(a[::5] for a in valid)),
        "test": net.perplexity(*(a[::5] for a in test)), "CPU s": seconds,
    }  # fmt: skip


def made(name: str, corpus: Corpus, args: Any) -> Window:
    V, n = corpus.n_words, args.frequent
    if "by the word before" in name:
        found = WordClasses(4, n_words=V, random_state=0).fit(corpus.train).labels_
        return SensesByClass(V, 4, 30, n, torch.from_numpy(found.astype(np.int64)))
    return {
        "window of 4, m = 30": partial(Window, V, 4, 30),
        "window of 5, m = 30": partial(Window, V, 5, 30),
        "window of 8, m = 30": partial(Window, V, 8, 30),
        "window of 4, m = 43": partial(Window, V, 4, 43),
        "4 senses by the word before": None,
        "2 senses, mixed": partial(MixedSenses, V, 4, 30, n, 2),
        "time-delay of 8, beside a window of 4": partial(TimeDelay, V, 8, 30, 30, 4),
    }[name]()


NAMES = [
    "window of 4, m = 30", "window of 5, m = 30", "window of 4, m = 43",
    "4 senses by the word before", "2 senses, mixed", "window of 8, m = 30",
    "time-delay of 8, beside a window of 4",
]  # fmt: skip


def row_name(name: str, args: Any) -> str:
    return f"inputs, {args.epochs} epochs, {args.seed}, {name}"


def page(rows: Rows) -> str:
    rows = sorted(rows, key=lambda row: (row["epochs"], NAMES.index(row["inputs"])))
    lines = [
        [str(row["epochs"]), row["inputs"], f"{row['parameters'] / 1e6:.2f} million"]
        + [f"{row[part]:.1f}" for part in ("valid", "test")]
        + [f"{row['CPU s']:.0f}"]
        for row in rows
    ]
    header = ["epochs", "x", "parameters", "valid", "test", "CPU s of training"]
    return list_table("", header, lines) + "\n" + conditions(rows) + "\n"


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rows", type=Path, required=True, help="what was measured")
    options.add_argument("--names", nargs="+", choices=NAMES, default=NAMES)
    options.add_argument("--epochs", type=int, default=2)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--frequent", type=int, default=2000, help="words with senses")
    options.add_argument("--limit", type=float, default=1e9, help="seconds of a call")
    options.add_argument("--page", action="store_true", help=f"write {PAGE.name}")
    args = options.parse_args()
    torch.set_num_threads(1)
    corpus = fetch_brown()
    args.rows.mkdir(exist_ok=True)
    rows = [
        kept(
            args.rows, row_name(name, args), partial(measure, name, corpus, args)
        )
        for name in args.names
    ]  # fmt: skip
    report("Other inputs", rows, args.json)
    if args.page:
        files = args.rows.glob("inputs-*.json")
        PAGE.write_text(page([json.loads(path.read_text()) for path in files]))


if __name__ == "__main__":
    main()
