"""Outputs of the softmax's rows, trained on sampled words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nplm._kernels.neural import _sampled
from nplm._kernels.neural._sampler import Sampler
from nplm.neural.features import gatherer_of
from nplm.neural.outputs.base import State
from nplm.neural.outputs.softmax import Softmax

__all__ = ["Importance", "NoiseContrastive", "Proposal", "Sampled", "Unnormalised"]

# Draws grow to so many times the words that they began with, at most.
MAX_GROWTH = 16


@dataclass(frozen=True)
class Proposal:
    """What words are drawn from: weights of all words, or counts, to a power."""

    weights: ArrayLike | None  # None: how often each is a next word, plus one
    power: float

    def check(self, n_words: int) -> None:
        """Raise unless there is a positive weight for each word."""
        if self.weights is None:
            return
        weights = np.asarray(self.weights)
        if weights.shape != (n_words,) or weights.dtype.kind not in "iuf":
            raise ValueError(
                f"proposal has shape {weights.shape} and type {weights.dtype}, but the "
                f"vocabulary has {n_words} words: give a number for each, by its id, "
                "or proposal='unigram'."
            )
        bad = np.flatnonzero(~((weights > 0) & (weights < np.inf)))
        if len(bad):
            raise ValueError(
                f"proposal has {weights[bad[0]]} for word {bad[0]}, which would never "
                "be drawn, so that nothing would hold its score down: give every word "
                "a finite number above 0, such as its count plus one."
            )

    def made_with(self) -> dict[str, Any]:
        """Give the parameters of an estimator that ask for it."""
        weights = "unigram" if self.weights is None else np.asarray(self.weights)
        return {"proposal": weights, "proposal_power": self.power}

    def probabilities(self, n_words: int, y: NDArray[np.int32]) -> NDArray[np.float64]:
        """Give those of all words, to train on next words `y`."""
        if self.weights is None:
            weights = np.bincount(y, minlength=n_words) + 1.0
        else:
            weights = np.asarray(self.weights, dtype=np.float64)
        # Relative to the largest, so that none overflows; nor is one nothing.
        weights = np.maximum(weights / weights.max(), 1e-30) ** self.power
        return weights / weights.sum()


@dataclass(frozen=True)
class Sampled(Softmax):
    """Rows and scores of a softmax, trained on the rows of drawn and next words."""

    n_samples: int
    proposal: Proposal
    tied: bool = field(default=False, kw_only=True)
    rows_are_shared: ClassVar[bool] = False
    loss: ClassVar[str]  # the estimator's `loss`

    @property
    def rows_are_features(self) -> bool:  # type: ignore[override]
        """Whether they are the words' features too."""
        return self.tied

    @property
    def rows_are_visited(self) -> bool:  # type: ignore[override]
        """Whether it is the output that visits them: features see to their own."""
        return not self.tied

    @property
    def n_most(self) -> int:
        """Words of a draw at most, or all words."""
        return self.n_samples

    def n_met(self, batch_size: int) -> int | None:
        """Those that are drawn, and the next words."""
        return self.n_most + batch_size if self.tied else 0

    def made_with(self) -> dict[str, Any]:
        """Give the parameters of an estimator that ask for it, beside its name."""
        own = {"loss": self.loss, "n_samples": self.n_samples}
        return own | self.proposal.made_with()

    def initial_state(
        self,
        n_words: int,
        y: NDArray[np.int32],
        rng: np.random.RandomState,
        n_workers: int,
    ) -> State:
        """Make the proposal, and a generator of random numbers for each worker."""
        seeds = rng.randint(1, 2**63 - 1, size=(n_workers, 4), dtype=np.int64)
        return {
            "proposal": self.proposal.probabilities(n_words, y),
            "generators": seeds.astype(np.uint64),
        }

    def kernels(self, *args: Any, solver: Any, **options: Any) -> list[Any]:
        """Give the kernel of a team of one; to score, the softmax's."""
        if solver is None:
            return super().kernels(*args, solver=solver, **options)
        if self.tied:
            tier, _, _, features, *_ = args
            solver = gatherer_of(features, tier, solver)
        return [self._kernel(*args, solver=solver, **options)]

    def _kernel(
        self,
        tier: Any,
        scratch: Any,
        at: Any,
        features: Any,
        trained: dict[str, Any],
        state: State,
        *,
        worker: int,
        solver: Any,
        **options: Any,
    ) -> Any:
        raise NotImplementedError

    def _drawing(
        self,
        scratch: Any,
        trained: dict[str, Any],
        state: State,
        worker: int,
    ) -> dict[str, Any]:
        n = trained["E"].rows
        generator, most = state["generators"][worker], min(self.n_most, n)
        sampler = Sampler(scratch, state["proposal"], generator, most=most)
        return {
            "direct": self.direct, "first": 0, "n_words": n, "row": 0, "n_rows": n,
            "leader": None, "sampler": sampler,
        }  # fmt: skip


@dataclass(frozen=True)
class Importance(Sampled):
    """The softmax's gradient, by importance sampling (section 5.1).

    Draws grow where there are fewer than `min_effective` effective samples.
    """

    loss: ClassVar[str] = "importance"

    min_effective: float

    @property
    def n_most(self) -> int:
        """Words of a draw at most, or all words: draws may grow."""
        return self.n_samples * (MAX_GROWTH if self.min_effective else 1)

    def made_with(self) -> dict[str, Any]:
        """Give the parameters of an estimator that ask for it, beside its name."""
        return super().made_with() | {"min_effective_samples": self.min_effective}

    def initial_state(
        self,
        n_words: int,
        y: NDArray[np.int32],
        rng: np.random.RandomState,
        n_workers: int,
    ) -> State:
        """Make the proposal and generators; and what is watched, a row a worker."""
        watched = np.zeros((n_workers, 3))
        watched[:, 0] = min(self.n_samples, n_words)
        return super().initial_state(n_words, y, rng, n_workers) | {"watched": watched}

    def figures(self, state: State) -> dict[str, float]:
        """Give the words of a draw, and its effective samples, now."""
        n_samples, noise, _ = state["watched"].mean(axis=0)
        effective = 1 / noise if noise > 0 else np.inf
        return {"n_samples": float(n_samples), "effective_samples": float(effective)}

    def _kernel(
        self,
        tier: Any,
        scratch: Any,
        at: Any,
        features: Any,
        trained: dict[str, Any],
        state: State,
        *,
        worker: int,
        solver: Any,
        **options: Any,
    ) -> Any:
        return _sampled.Importance(
            tier, scratch, at, trained["E"], solver=solver,
            watched=state["watched"][worker], least=self.min_effective,
            **self._drawing(scratch, trained, state, worker),
        )  # fmt: skip


@dataclass(frozen=True)
class NoiseContrastive(Sampled):
    """Noise-contrastive estimation: the scores become log P by themselves."""

    loss: ClassVar[str] = "nce"

    def _kernel(
        self,
        tier: Any,
        scratch: Any,
        at: Any,
        features: Any,
        trained: dict[str, Any],
        state: State,
        *,
        worker: int,
        solver: Any,
        **options: Any,
    ) -> Any:
        return _sampled.NoiseContrastive(
            tier, scratch, at, trained["E"], solver=solver,
            proposal=state["proposal"],
            n_noise=min(self.n_samples, trained["E"].rows),
            **self._drawing(scratch, trained, state, worker),
        )  # fmt: skip


@dataclass(frozen=True)
class Unnormalised(Softmax):
    """Scores of next words that stand for log P as they are; not to be trained."""

    rows_are_shared: ClassVar[bool] = False

    def kernels(
        self,
        tier: Any,
        scratch: Any,
        at: Any,
        features: Any,
        trained: dict[str, Any],
        state: State,
        *,
        first: int,
        **options: Any,
    ) -> list[Any]:
        """Give the kernel that scores."""
        n = trained["E"].rows
        return [
            _sampled.Unnormalised(
                tier, scratch, at, trained["E"], direct=self.direct, first=first,
                n_words=n, row=0, n_rows=n, leader=None,
            )
        ]  # fmt: skip
