"""The networks of today beside which run.py puts nplm's: an LSTM and a GPT.

Both are PyTorch's, on one core, and train for so many seconds of processor time: the
learning rate follows the share of them that is spent, so that it ends at 0 with the
budget. The input's features are tied to the output's, whose softmax is sampled in
training and whole in scoring.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

State = tuple[Tensor, ...] | None
SCORED_COLUMNS, WARM_UP, SCORED_CHUNK = 16, 512, 64


@dataclass(frozen=True)
class Settings:
    """Tuned settings. The LSTM's defaults are Merity et al.'s (2018) but for size."""

    kind: Literal["lstm", "gpt"]
    features: int = 256  # of a word, and what the output sees
    hidden: int = 256  # the LSTM's units a layer; the GPT's between two layers
    layers: int = 1
    batch: int = 32
    length: int = 35  # back-propagation through time, or the GPT's context
    noise: int = 1024  # words that the loss sees, in the mean
    learning_rate: float = 4e-3
    warm_up: float = 0.03  # shares of the budget
    schedule: Literal["linear", "cosine"] = "linear"
    decay: float = 0.01  # AdamW's, of all matrices
    beta2: float = 0.99
    clip: float = 1.0
    dropout: float = 0.1  # of the input's and the output's features
    inner_dropout: float = 0.0  # of recurrent weights, or of a block's output
    bfloat16: bool = True


class LSTM(nn.Module):
    """Long short-term memory with variational dropout and weight drop (AWD-LSTM)."""

    def __init__(self, n_words: int, s: Settings) -> None:
        super().__init__()
        self.s = s
        self.words = nn.Embedding(n_words, s.features)
        nn.init.uniform_(self.words.weight, -0.1, 0.1)
        self.lstm = nn.LSTM(s.features, s.hidden, s.layers)
        for name, weights in self.lstm.named_parameters():
            if name.startswith("bias_hh"):  # the forget gate begins open
                weights.data[s.hidden : 2 * s.hidden] += 1.0
        same = s.hidden == s.features
        self.out = nn.Identity() if same else nn.Linear(s.hidden, s.features)

    def forward(self, words: Tensor, state: State) -> tuple[Tensor, State]:
        """Features of the next words, of words (steps, texts)."""
        x = _variational(self.words(words), self.s.dropout, self.training)
        if state is None:
            zeros = x.new_zeros(self.s.layers, words.shape[1], self.s.hidden)
            state = (zeros, zeros)
        weights = [
            functional.dropout(w, self.s.inner_dropout, self.training)
            if self.s.inner_dropout and name.startswith("weight_hh")
            else w
            for name, w in self.lstm.named_parameters()
        ]
        x, *state_ = torch._VF.lstm(
            x, state, weights, True, self.s.layers, 0.0, self.training, False, False
        )
        x = self.out(x)
        return _variational(x, self.s.dropout, self.training), tuple(state_)


class Block(nn.Module):
    """Attention to the words before, and a layer of hidden units."""

    def __init__(self, s: Settings) -> None:
        super().__init__()
        self.heads, self.dropout = max(1, s.features // 64), s.inner_dropout
        self.norms = nn.ModuleList(nn.LayerNorm(s.features) for _ in range(2))
        self.qkv = nn.Linear(s.features, 3 * s.features, bias=False)
        self.attended = nn.Linear(s.features, s.features, bias=False)
        self.up = nn.Linear(s.features, s.hidden)
        self.down = nn.Linear(s.hidden, s.features)
        for last in (self.attended, self.down):
            nn.init.normal_(last.weight, std=0.02 / math.sqrt(2 * s.layers))
        for first in (self.qkv, self.up):
            nn.init.normal_(first.weight, std=1 / math.sqrt(s.features))

    def forward(self, x: Tensor) -> Tensor:
        texts, steps, width = x.shape
        qkv = self.qkv(self.norms[0](x)).view(texts, steps, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        seen = self.attended(seen.transpose(1, 2).reshape(texts, steps, width))
        x = x + functional.dropout(seen, self.dropout, self.training)
        thought = self.down(functional.gelu(self.up(self.norms[1](x))))
        return x + functional.dropout(thought, self.dropout, self.training)


class GPT(nn.Module):
    """A decoder with layer norm before each part, and learned positions."""

    def __init__(self, n_words: int, s: Settings) -> None:
        super().__init__()
        self.s = s
        self.words = nn.Embedding(n_words, s.features)
        nn.init.normal_(self.words.weight, std=0.05)
        self.places = nn.Parameter(0.02 * torch.randn(s.length, s.features))
        self.blocks = nn.ModuleList(Block(s) for _ in range(s.layers))
        self.norm = nn.LayerNorm(s.features)

    def forward(self, words: Tensor, state: State) -> tuple[Tensor, State]:
        """Features of the next words, of words (steps, texts)."""
        # The tied features are small, for the output's sake.
        x = self.words(words.T) / 0.05 + self.places[: len(words)] / 0.02
        x = functional.dropout(x, self.s.dropout, self.training)
        for block in self.blocks:
            x = block(x)
        x = functional.dropout(self.norm(x), self.s.dropout, self.training)
        return x.transpose(0, 1), None


def _variational(x: Tensor, p: float, training: bool) -> Tensor:
    """Dropout by one mask for all steps (Gal and Ghahramani, 2016)."""
    if not training or not p:
        return x
    mask = torch.empty_like(x[:1]).bernoulli_(1 - p) / (1 - p)
    return x * mask


class Sampled(nn.Module):
    """Softmax over words of which a word is drawn with probability min(1, k p).

    A frequent word is so always there, and counts as it is; another counts as often as
    it is rarely drawn. The mean of the sum over draws is that over the vocabulary.
    """

    def __init__(self, counts: NDArray[np.int64], n: int) -> None:
        super().__init__()
        p = (counts + 1.0) / (counts + 1.0).sum()
        self.bias = nn.Parameter(torch.tensor(np.log(p), dtype=torch.float32))
        low, high = 0.0, float(n / p.min())
        for _ in range(100):  # k, so that n words are expected
            k = (low + high) / 2
            low, high = (k, high) if np.minimum(1, k * p).sum() < n else (low, k)
        self.drawn = torch.tensor(np.minimum(1, high * p), dtype=torch.float32)
        self.place = torch.empty(len(p), dtype=torch.int64)

    def loss(self, seen: Tensor, features: Tensor, y: Tensor) -> Tensor:
        words = torch.nonzero(torch.rand_like(self.drawn) < self.drawn).squeeze(1)
        logits = (seen @ features[words].T).float()
        logits = logits + (self.bias[words] - self.drawn[words].log())
        right = (seen.float() * features[y]).sum(1) + self.bias[y]
        # The right word is counted once, as itself.
        self.place.fill_(-1)[words] = torch.arange(len(words))
        at = self.place[y]
        rows = torch.nonzero(at >= 0).squeeze(1)
        logits = logits.index_put((rows, at[rows]), torch.tensor(-math.inf))
        return (torch.logaddexp(logits.logsumexp(1), right) - right).mean()


class Network:
    """One of the two, from training to scores."""

    def __init__(self, n_words: int, settings: dict[str, Any], seed: int = 0) -> None:
        self.s = Settings(**settings)
        self.n_words, self.seed = n_words, seed

    def fit(self, ids: NDArray[np.int32], seconds: float) -> Network:
        """Train for so many seconds of processor time, this call's all."""
        began = time.process_time()
        torch.set_num_threads(1)
        torch.manual_seed(self.seed)
        rng, s = np.random.default_rng(self.seed), self.s
        self.core = (LSTM if s.kind == "lstm" else GPT)(self.n_words, s).train()
        self.output = Sampled(np.bincount(ids, minlength=self.n_words), s.noise)
        parameters = [*self.core.parameters(), *self.output.parameters()]
        self.n_parameters = sum(p.numel() for p in parameters)
        optimizer = torch.optim.AdamW(
            [
                {"params": [p for p in parameters if p.ndim > 1]},
                {"params": [p for p in parameters if p.ndim == 1], "weight_decay": 0.0},
            ],
            lr=s.learning_rate, betas=(0.9, s.beta2), weight_decay=s.decay, fused=True,
        )  # fmt: skip
        stream = torch.from_numpy(ids.astype(np.int64))
        self.seen = 0
        while True:
            # Another start every epoch, so that the pieces differ.
            start = int(rng.integers(s.length))
            columns = stream[start : start + (len(ids) - start) // s.batch * s.batch]
            columns = columns.view(s.batch, -1).T.contiguous()
            state: State = None
            for i in range(0, len(columns) - 1, s.length):
                share = (time.process_time() - began) / seconds
                if share >= 1:
                    return self
                for group in optimizer.param_groups:
                    group["lr"] = s.learning_rate * _step(share, s)
                x = columns[i : i + s.length + 1]
                with torch.autocast("cpu", torch.bfloat16, enabled=s.bfloat16):
                    seen, state = self.core(x[:-1], state)
                    loss = self.output.loss(
                        seen.reshape(-1, s.features), self.core.words.weight,
                        x[1:].reshape(-1),
                    )  # fmt: skip
                state = state and tuple(part.detach() for part in state)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(parameters, s.clip)
                optimizer.step()
                self.seen += x[1:].numel()

    @torch.inference_mode()
    def log_prob(
        self, ids: NDArray[np.int32], history: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """ln P of each word after all words before it, by the whole softmax."""
        self.core.eval()
        score = self._stream if self.s.kind == "lstm" else self._windows
        return score(torch.from_numpy(np.concatenate([history, ids]).astype(np.int64)),
                     len(history))  # fmt: skip

    def _stream(self, text: Tensor, first: int) -> NDArray[np.float64]:
        """The state is carried on, in columns that begin some words earlier."""
        n = len(text) - first
        rows = -(-n // SCORED_COLUMNS)
        before = min(WARM_UP, first - 1)
        starts = first + rows * torch.arange(SCORED_COLUMNS) - before - 1
        at = starts + torch.arange(rows + before + 1)[:, None]
        columns = text[at.clamp(max=len(text) - 1)]
        state: State = None
        parts = []
        for i in range(0, len(columns) - 1, SCORED_CHUNK):
            x = columns[i : i + SCORED_CHUNK + 1]
            seen, state = self.core(x[:-1], state)
            parts.append(self._scores(seen, x[1:]))
        return torch.cat(parts)[before:].T.reshape(-1)[:n].double().numpy()

    def _windows(self, text: Tensor, first: int) -> NDArray[np.float64]:
        """Windows as long as in training; of each the last quarter is scored."""
        length, stride = self.s.length, self.s.length // 4
        ends = torch.arange(first + stride, len(text) + stride, stride)
        at = ends[:, None] - length - 1 + torch.arange(length + 1)
        found = []
        for rows in at.clamp(max=len(text) - 1).split(32):
            x = text[rows].T
            seen, _ = self.core(x[:-1], None)
            found.append(self._scores(seen[-stride:], x[-stride:]).T)
        return torch.cat(found).reshape(-1)[: len(text) - first].double().numpy()

    def _scores(self, seen: Tensor, y: Tensor) -> Tensor:
        """(steps, texts); few enough at once that the logits stay in the cache."""
        pieces = []
        for h, words in zip(
            seen.reshape(-1, self.s.features).split(256), y.reshape(-1).split(256)
        ):
            logits = functional.linear(h, self.core.words.weight, self.output.bias)
            pieces.append(-functional.cross_entropy(logits, words, reduction="none"))
        return torch.cat(pieces).view(y.shape)


def _step(share: float, s: Settings) -> float:
    """The learning rate at a share of the budget, to its largest."""
    if share < s.warm_up:
        return max(share / s.warm_up, 0.01)
    left = (1 - share) / (1 - s.warm_up)
    return left if s.schedule == "linear" else (1 - math.cos(math.pi * left)) / 2
