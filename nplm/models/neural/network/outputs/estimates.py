"""Gradient estimates from noise samples, and outputs that train on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nplm._kernels.neural.outputs import _estimates
from nplm._kernels.neural.outputs._sampler import Sampler
from nplm.base.array_types import Counts, Floats, State
from nplm.models.neural.network.outputs.base import Output
from nplm.models.neural.network.workspace import Kernel, Workspace

# Maximum growth of the number of noise samples, relative to the initial one.
MAX_GROWTH = 16


@dataclass(frozen=True)
class Estimate:
    """Estimate of the gradient from `n_noise` noise samples."""

    # Whether training makes unnormalized scores close to log-probabilities.
    normalizes: ClassVar[bool] = False

    n_noise: int
    weights: ArrayLike | None  # of words; None: counts of the next words plus one
    power: float  # of the weights

    def check(self, n_words: int) -> None:
        """Raise ValueError unless every word has a positive weight."""
        if self.weights is None:
            return
        weights = np.asarray(self.weights)
        if weights.shape != (n_words,) or weights.dtype.kind not in "iuf":
            raise ValueError(
                f"proposal has shape {weights.shape} and dtype {weights.dtype}, but "
                f"the vocabulary has {n_words} words; give one number per word id, or "
                "proposal='unigram'."
            )
        bad = np.flatnonzero(~((weights > 0) & (weights < np.inf)))
        if len(bad):
            raise ValueError(
                f"proposal has {weights[bad[0]]} for word {bad[0]}, but a word that is "
                "never sampled gets too high a score; give every word a finite number "
                "above 0, such as its count plus one."
            )

    def probabilities(self, counts: Counts) -> Floats:
        """Return the probabilities of all words, from the counts of the next words."""
        if self.weights is None:
            weights = counts + 1.0
        else:
            weights = np.asarray(self.weights, dtype=np.float64)
        # Relative to the maximum, against overflow; at least 1e-30, against 0.
        weights = np.maximum(weights / weights.max(), 1e-30) ** self.power
        return weights / weights.sum()

    @property
    def max_noise(self) -> int:
        """Maximum number of noise samples."""
        return self.n_noise

    def initial_state(
        self, n_words: int, counts: Counts, rng: np.random.RandomState, n_workers: int
    ) -> State:
        """Return the proposal, and the seeds of a generator per worker."""
        seeds = rng.randint(1, 2**63 - 1, size=(n_workers, 4), dtype=np.int64)
        return {
            "proposal": self.probabilities(counts),
            "generators": seeds.astype(np.uint64),
        }

    def check_state(self, saved: State, state: State) -> None:
        """Raise ValueError if a saved state is impossible in this fit."""
        if not np.array_equal(saved["proposal"], state["proposal"]):
            raise ValueError("proposal differs from that of the next words")
        if not saved["generators"].any(axis=1).all():
            raise ValueError("generators has a state of zeros")

    def figures(self, state: State) -> dict[str, float]:
        """Return metrics of an epoch, for the history."""
        return {}

    def kernel(self, team: Workspace, columns: int) -> Kernel:
        """Return the kernel, for logits of `columns` columns."""
        raise NotImplementedError

    def _sampler(self, team: Workspace) -> object:
        proposal = team.output_state["proposal"]
        generator = team.output_state["generators"][team.worker]
        if team.member > 0:  # draws the same samples
            generator = generator.copy()
        return Sampler(
            team.scratch, proposal, generator,
            most=min(self.max_noise, len(proposal)),
        )  # fmt: skip


@dataclass(frozen=True)
class Importance(Estimate):
    """Gradient of the softmax by importance sampling (section 5.1)."""

    min_effective_samples: float  # below it, the noise samples become more

    @property
    def max_noise(self) -> int:
        return self.n_noise * (MAX_GROWTH if self.min_effective_samples else 1)

    def initial_state(
        self, n_words: int, counts: Counts, rng: np.random.RandomState, n_workers: int
    ) -> State:
        """Return the proposal, the generators, and statistics of each worker."""
        watched = np.zeros((n_workers, 3))
        watched[:, 0] = min(self.n_noise, n_words)
        return super().initial_state(n_words, counts, rng, n_workers) | {
            "watched": watched
        }

    def check_state(self, saved: State, state: State) -> None:
        super().check_state(saved, state)
        least, most = min(self.n_noise, self.max_noise), len(state["proposal"])
        n, noise, n_batches = saved["watched"].T
        if not (
            ((n >= min(least, most)) & (n <= min(self.max_noise, most))).all()
            and ((noise >= 0) & (noise < np.inf)).all()
            and ((n_batches >= 0) & (n_batches < np.inf)).all()
        ):
            raise ValueError("watched has values out of range")

    def figures(self, state: State) -> dict[str, float]:
        n_noise, noise, _ = state["watched"].mean(axis=0)
        effective = 1 / noise if noise > 0 else np.inf
        return {"n_noise": float(n_noise), "effective_samples": float(effective)}

    def kernel(self, team: Workspace, columns: int) -> Kernel:
        return _estimates.Importance(
            team.tier, team.scratch, team.activations, sampler=self._sampler(team),
            columns=columns, watched=team.output_state["watched"][team.worker],
            least=self.min_effective_samples,
        )  # fmt: skip


@dataclass(frozen=True)
class NoiseContrastive(Estimate):
    """Noise-contrastive estimation, which makes scores close to log-probabilities."""

    normalizes: ClassVar[bool] = True

    def kernel(self, team: Workspace, columns: int) -> Kernel:
        proposal = team.output_state["proposal"]
        return _estimates.NoiseContrastive(
            team.tier, team.scratch, team.activations,
            sampler=self._sampler(team), columns=columns,
            proposal=proposal, n_noise=min(self.n_noise, len(proposal)),
        )  # fmt: skip


@dataclass(frozen=True)
class Sampled(Output):
    """Mixin before the output that scores: it trains on noise samples."""

    rows_are_shared: ClassVar[bool] = False
    rows_are_visited: ClassVar[bool] = True
    estimate: Estimate = field(kw_only=True)

    @property
    def normalizes(self) -> bool:
        return self.estimate.normalizes

    def initial_state(
        self, n_words: int, counts: Counts, rng: np.random.RandomState, n_workers: int
    ) -> State:
        return self.estimate.initial_state(n_words, counts, rng, n_workers)

    def check_state(self, saved: State, state: State) -> None:
        self.estimate.check_state(saved, state)

    def figures(self, state: State) -> dict[str, float]:
        return self.estimate.figures(state)

    def kernel(
        self, team: Workspace, start: int, stop: int, leader: Kernel | None
    ) -> Kernel:
        if team.solver is None:
            return super().kernel(team, start, stop, leader)
        return self.trainer(team)

    def trainer(self, team: Workspace) -> Kernel:
        """Return the kernel that trains."""
        raise NotImplementedError
