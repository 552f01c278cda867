"""Training on sampled words: where they come from, and what is estimated from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nplm._kernels.neural.outputs import _estimates
from nplm._kernels.neural.outputs._sampler import Sampler
from nplm.base.checks import count_ids
from nplm.models.neural.network.outputs.base import State, Workspace

__all__ = ["Estimate", "Importance", "NoiseContrastive", "Proposal"]

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
            weights = count_ids(y, n_words) + 1.0
        else:
            weights = np.asarray(self.weights, dtype=np.float64)
        # Relative to the largest, so that none overflows; nor is one nothing.
        weights = np.maximum(weights / weights.max(), 1e-30) ** self.power
        return weights / weights.sum()


@dataclass(frozen=True)
class Estimate:
    """What the gradient is estimated from: draws of `n_samples` words."""

    # Whether scores come to be log-probabilities by themselves.
    normalizes: ClassVar[bool] = False
    loss: ClassVar[str]  # the estimator's `loss`

    n_samples: int
    proposal: Proposal

    @property
    def n_most(self) -> int:
        """Words of a draw at most, or all words."""
        return self.n_samples

    def made_with(self) -> dict[str, Any]:
        """Give the parameters of an estimator that ask for it."""
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

    def check_state(self, found: State, own: State) -> None:
        """Raise ValueError where no training of this fit makes `found` of `own`."""
        if not np.array_equal(found["proposal"], own["proposal"]):
            raise ValueError("proposal is another than that of the next words")
        if not found["generators"].any(axis=1).all():
            raise ValueError("generators has one that draws nothing but zeros")

    def figures(self, state: State) -> dict[str, float]:
        """Give figures of an epoch, for the history."""
        return {}

    def kernel(self, team: Workspace, columns: int) -> Any:
        """Give the kernel, for logits of so many columns."""
        raise NotImplementedError

    def _sampler(self, team: Workspace) -> Any:
        proposal, generators = team.state["proposal"], team.state["generators"]
        return Sampler(
            team.scratch, proposal, generators[team.worker],
            most=min(self.n_most, len(proposal)),
        )  # fmt: skip


@dataclass(frozen=True)
class Importance(Estimate):
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
        """Give the parameters of an estimator that ask for it."""
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

    def check_state(self, found: State, own: State) -> None:
        """Look at the words of a draw, too."""
        super().check_state(found, own)
        least, most = min(self.n_samples, self.n_most), len(own["proposal"])
        n, noise, n_batches = found["watched"].T
        if not (
            ((n >= min(least, most)) & (n <= min(self.n_most, most))).all()
            and ((noise >= 0) & (noise < np.inf)).all()
            and ((n_batches >= 0) & (n_batches < np.inf)).all()
        ):
            raise ValueError("watched has numbers that no fit leaves")

    def figures(self, state: State) -> dict[str, float]:
        """Give the words of a draw, and its effective samples, now."""
        n_samples, noise, _ = state["watched"].mean(axis=0)
        effective = 1 / noise if noise > 0 else np.inf
        return {"n_samples": float(n_samples), "effective_samples": float(effective)}

    def kernel(self, team: Workspace, columns: int) -> Any:
        """Give the kernel, for logits of so many columns."""
        return _estimates.Importance(
            team.tier, team.scratch, team.at, sampler=self._sampler(team),
            columns=columns, watched=team.state["watched"][team.worker],
            least=self.min_effective,
        )  # fmt: skip


@dataclass(frozen=True)
class NoiseContrastive(Estimate):
    """Noise-contrastive estimation: the scores become log P by themselves."""

    normalizes: ClassVar[bool] = True
    loss: ClassVar[str] = "nce"

    def kernel(self, team: Workspace, columns: int) -> Any:
        """Give the kernel, for logits of so many columns."""
        proposal = team.state["proposal"]
        return _estimates.NoiseContrastive(
            team.tier, team.scratch, team.at,
            sampler=self._sampler(team), columns=columns,
            proposal=proposal, n_noise=min(self.n_samples, len(proposal)),
        )  # fmt: skip
