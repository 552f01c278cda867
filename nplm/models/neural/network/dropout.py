"""Dropout: what training leaves out of each example, at random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nplm._kernels.neural import _dropout

__all__ = ["NONE", "Dropout"]

N_PLACES = 3


@dataclass(frozen=True, eq=False)
class Dropout:
    """Shares of three places that are left out (Srivastava et al., 2014).

    Parameters
    ----------
    inputs, hidden, projection : float
        Of the features x; of the hidden units a; and of s = R [a | x] where the output
        is tied.
    seeds : ndarray of uint64, shape (n_workers, 3), or None
        Of each team that trains the same parameters, by place; None to begin with.
    """

    inputs: float = 0.0
    hidden: float = 0.0
    projection: float = 0.0
    seeds: NDArray[np.uint64] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, asked: float | ArrayLike) -> Self:
        """Give that of an estimator's parameter, or raise."""
        rates = np.asarray(asked, dtype=np.float64)
        if rates.shape not in ((), (N_PLACES,)):
            raise ValueError(
                f"dropout={asked!r} has shape {rates.shape}: give one share, or three, "
                "of the features, the hidden units and the projection."
            )
        bad = rates[~((rates >= 0) & (rates < 1))].ravel()
        if len(bad):
            raise ValueError(
                f"dropout={asked!r}: a share of {bad[0]} cannot be left out; give 0 or "
                "more, and less than 1."
            )
        return cls(*np.broadcast_to(rates, N_PLACES).tolist())

    def begun(self, rng: np.random.RandomState, n_workers: int) -> Self:
        """Give the same with seeds for a fit, drawn if anything is left out."""
        if not (self.inputs or self.hidden or self.projection):
            return self
        shape = (n_workers, N_PLACES)
        seeds = rng.randint(0, 2**63 - 1, size=shape, dtype=np.int64)
        return replace(self, seeds=seeds.astype(np.uint64))

    def state(self) -> dict[str, NDArray[Any]]:
        """Give what a fit goes on with."""
        return {} if self.seeds is None else {"dropout_seeds": self.seeds}

    def masks(self, scratch: Any, clock: Any, worker: int) -> Masks:
        """Give those of one team."""
        return Masks(self, scratch, clock, worker)


NONE = Dropout()


@dataclass(frozen=True)
class Masks:
    """What puts a kernel's dropout round it; nothing where nothing is left out."""

    dropout: Dropout
    scratch: Any
    clock: Any
    worker: int

    def of_inputs(self, at: Any, features: Any, inputs: Any) -> Any:
        """Give the inputs' kernel, some of whose x is left out."""
        rate = self.dropout.inputs
        if not (rate and at.n_inputs):
            return inputs
        mask = self._mask(at, 0, at.n_inputs, rate)
        return _dropout.DroppedInputs(features, inputs, mask)

    def of_hidden(self, at: Any, make: Callable[[Any], Any]) -> Any:
        """Give the hidden units' kernel, made for its activations."""
        return self._units(at, make, 1, self.dropout.hidden)

    def of_projection(self, at: Any, make: Callable[[Any], Any]) -> Any:
        """Give the projection's kernel, made for its activations."""
        return self._units(at, make, 2, self.dropout.projection)

    def _units(
        self, at: Any, make: Callable[[Any], Any], place: int, rate: float
    ) -> Any:
        if not (rate and at.n_hidden):
            return make(at)
        inner = at.apart()
        mask = self._mask(at, place, at.n_hidden, rate)
        return _dropout.DroppedUnits(make(inner), inner, mask)

    def _mask(self, at: Any, place: int, n: int, rate: float) -> Any:
        assert self.dropout.seeds is not None
        seed = self.dropout.seeds[self.worker, place : place + 1]
        return _dropout.Mask(at, self.scratch, self.clock, seed, n=n, rate=rate)
