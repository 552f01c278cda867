"""Hidden units, which compute a from x."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm._kernels.neural import _hidden
from nplm.models.neural.network.parameters import random_normal

__all__ = ["Linear", "NoHidden", "Projected", "Tanh"]


@dataclass(frozen=True)
class Tanh:
    """Hidden units a = tanh(d + Hx), as in the paper."""

    n_hidden: int

    @property
    def n_activations(self) -> int:
        """Number of activations that the output uses."""
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
        """Make the arrays that are trained beside H and d, by name."""
        return {}

    def kernel(
        self,
        tier: Any,
        trained: dict[str, Any],
        activations: Any,
        scratch: Any,
        masks: Any,
    ) -> Any:
        """Return the kernel, which uses the `trained` parameters."""

        def units(activations: Any) -> Any:
            return _hidden.Tanh(trained["H"], trained["d"], activations, scratch)

        return masks.of_hidden(activations, units)


@dataclass(frozen=True)
class NoHidden(Tanh):
    """No hidden units: the output uses only x, and H and d are empty."""

    n_hidden: int = 0

    def kernel(
        self,
        tier: Any,
        trained: dict[str, Any],
        activations: Any,
        scratch: Any,
        masks: Any,
    ) -> Any:
        """Return the kernel."""
        return _hidden.Hidden()


@dataclass(frozen=True)
class Linear(Tanh):
    """Sums d + Hx; the output adds terms of the next word before the tanh."""

    def kernel(
        self,
        tier: Any,
        trained: dict[str, Any],
        activations: Any,
        scratch: Any,
        masks: Any,
    ) -> Any:
        """Return the kernel, which uses the `trained` parameters."""
        return _hidden.Linear(trained["H"], trained["d"], activations, scratch)


@dataclass(frozen=True)
class Projected(Tanh):
    """Hidden units projected to the number of features of a word, s = R [a | x].

    Parameters
    ----------
    n_hidden : int
        Number of hidden units.
        m : int
        Number of features of a word.
        direct : bool
        Whether x is projected too.
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
        """Make R of zeros, so that the initial output is that of the biases."""
        n = self.n_hidden + (n_inputs if self.direct else 0)
        return {"R": np.zeros((self.m, n), dtype)}

    def kernel(
        self,
        tier: Any,
        trained: dict[str, Any],
        activations: Any,
        scratch: Any,
        masks: Any,
    ) -> Any:
        """Return the kernel, which uses the `trained` parameters."""
        inner = activations.apart(self.n_hidden)
        units = Tanh(self.n_hidden) if self.n_hidden else NoHidden()
        kernel = units.kernel(tier, trained, inner, scratch, masks)

        def projected(activations: Any) -> Any:
            return _hidden.Projected(kernel, trained["R"], inner, activations, scratch)

        return masks.of_projection(activations, projected)
