"""Hidden units: from x to a."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm._kernels.neural import _hidden
from nplm._kernels.neural._inputs import Activations
from nplm.models.neural.network.parameters import random_normal

__all__ = ["Linear", "NoHidden", "Projected", "Tanh"]


@dataclass(frozen=True)
class Tanh:
    """The paper's a = tanh(d + Hx)."""

    n_hidden: int

    @property
    def n_activations(self) -> int:
        """Length of what the output gets."""
        return self.n_hidden

    def initial(
        self, n_inputs: int, rng: np.random.RandomState, dtype: DTypeLike
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Draw H, and zeros for d."""
        scale = 3.0 / np.sqrt(max(n_inputs, 1))
        H = random_normal(rng, scale, (self.n_hidden, n_inputs), dtype)
        return H, np.zeros(self.n_hidden, dtype)

    def initial_arrays(
        self, n_inputs: int, dtype: DTypeLike
    ) -> dict[str, NDArray[Any]]:
        """Make what they train beside H and d, by name."""
        return {}

    def kernel(
        self, tier: Any, trained: dict[str, Any], at: Any, scratch: Any, masks: Any
    ) -> Any:
        """Give the kernel, which works on `trained` parameters."""

        def units(at: Any) -> Any:
            return _hidden.Tanh(trained["H"], trained["d"], at, scratch)

        return masks.of_hidden(at, units)


@dataclass(frozen=True)
class NoHidden(Tanh):
    """None: the output units see x alone, and H and d are empty."""

    n_hidden: int = 0

    def kernel(
        self, tier: Any, trained: dict[str, Any], at: Any, scratch: Any, masks: Any
    ) -> Any:
        """Give the kernel."""
        return _hidden.Hidden()


@dataclass(frozen=True)
class Linear(Tanh):
    """Sums d + Hx, to which the output adds before the tanh."""

    def kernel(
        self, tier: Any, trained: dict[str, Any], at: Any, scratch: Any, masks: Any
    ) -> Any:
        """Give the kernel, which works on `trained` parameters."""
        return _hidden.Linear(trained["H"], trained["d"], at, scratch)


@dataclass(frozen=True)
class Projected(Tanh):
    """Their projection to as many numbers as a word has features, s = R [a | x].

    Parameters
    ----------
    n_hidden : int
        Units.
    m : int
        Features of a word.
    direct : bool
        Whether x is projected too, beside a.
    """

    m: int
    direct: bool

    @property
    def n_activations(self) -> int:
        """Length of s."""
        return self.m

    def initial_arrays(
        self, n_inputs: int, dtype: DTypeLike
    ) -> dict[str, NDArray[Any]]:
        """Make R: zeros, so that the output begins with its biases alone."""
        n = self.n_hidden + (n_inputs if self.direct else 0)
        return {"R": np.zeros((self.m, n), dtype)}

    def kernel(
        self, tier: Any, trained: dict[str, Any], at: Any, scratch: Any, masks: Any
    ) -> Any:
        """Give the kernel, which works on `trained` parameters."""
        inner = Activations(
            tier, scratch, batch_size=at.batch_size, scoring=at.scoring,
            n_context=0, n_inputs=at.n_inputs, n_hidden=self.n_hidden,
        )  # fmt: skip
        units = Tanh(self.n_hidden) if self.n_hidden else NoHidden()
        kernel = units.kernel(tier, trained, inner, scratch, masks)

        def projected(at: Any) -> Any:
            return _hidden.Projected(kernel, trained["R"], inner, at, scratch)

        return masks.of_projection(at, projected)
