"""Apply dropout to inputs, hidden units and the projection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nplm._kernels.neural import _dropout
from nplm._kernels.neural._inputs import Activations
from nplm._kernels.neural._loops import Scratch
from nplm._kernels.neural._solvers import Clock
from nplm.base.array_types import State
from nplm.models.neural.network.workspace import Kernel

N_LAYERS = 3
INPUTS, HIDDEN, PROJECTION = range(N_LAYERS)  # residual blocks follow


@dataclass(frozen=True, eq=False)
class Dropout:
    """Dropout rates of x, a and the projection R [a | x] (Srivastava et al., 2014).

    `seeds` (n_workers, 3 + number of blocks) are those of each team and layer.
    """

    inputs: float = 0.0
    hidden: float = 0.0
    projection: float = 0.0
    seeds: NDArray[np.uint64] | None = field(default=None, repr=False)

    @classmethod
    def from_parameter(cls, value: float | ArrayLike) -> Self:
        """Make the dropout of an estimator's parameter, or raise ValueError."""
        rates = np.asarray(value, dtype=np.float64)
        if rates.shape not in ((), (N_LAYERS,)):
            raise ValueError(
                f"dropout={value!r} has shape {rates.shape}; give one rate, or three: "
                "of the features, the hidden units and the projection."
            )
        bad = rates[~((rates >= 0) & (rates < 1))].ravel()
        if len(bad):
            raise ValueError(
                f"dropout={value!r} has a rate of {bad[0]}; a rate must be at least 0 "
                "and less than 1."
            )
        return cls(*np.broadcast_to(rates, N_LAYERS).tolist())

    def seeded(self, rng: np.random.RandomState, n_workers: int, n_blocks: int) -> Self:
        """Return a copy with seeds for a fit, drawn unless all rates are 0."""
        if not (self.inputs or self.hidden or self.projection):
            return self
        shape = (n_workers, N_LAYERS + n_blocks)
        seeds = rng.randint(0, 2**63 - 1, size=shape, dtype=np.int64)
        return replace(self, seeds=seeds.astype(np.uint64))

    def state(self) -> State:
        """Return the state from which a fit resumes."""
        return {} if self.seeds is None else {"dropout_seeds": self.seeds}


NO_DROPOUT = Dropout()


@dataclass(frozen=True)
class Masks:
    """Wrap the kernels of one team in dropout, where its rate is above 0."""

    dropout: Dropout
    scratch: Scratch
    clock: Clock
    worker: int
    run_length: int  # consecutive examples, which have one mask

    def of_inputs(
        self, activations: Activations, features: Kernel, inputs: Kernel
    ) -> Kernel:
        """Return the kernel of the inputs, with dropout of x."""
        rate = self.dropout.inputs
        if not (rate and activations.n_inputs):
            return inputs
        mask = self._mask(activations, INPUTS, activations.n_inputs, rate)
        return _dropout.DroppedInputs(features, inputs, mask)

    def of_units(
        self,
        activations: Activations,
        make: Callable[[Activations], Kernel],
        layer: int = HIDDEN,
    ) -> Kernel:
        """Return the kernel of the units of a layer, made for its activations."""
        is_projection = layer == PROJECTION
        rate = self.dropout.projection if is_projection else self.dropout.hidden
        if not (rate and activations.n_hidden):
            return make(activations)
        inner = activations.apart(activations.n_hidden)
        mask = self._mask(activations, layer, activations.n_hidden, rate)
        return _dropout.DroppedUnits(make(inner), inner, mask)

    def _mask(
        self, activations: Activations, layer: int, n: int, rate: float
    ) -> _dropout.Mask:
        assert self.dropout.seeds is not None
        seed = self.dropout.seeds[self.worker, layer : layer + 1]
        return _dropout.Mask(
            activations, self.scratch, self.clock, seed, n=n, rate=rate,
            run_length=self.run_length,
        )  # fmt: skip
