"""Hidden units: from x to a."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nplm._kernels.neural import _hidden
from nplm.neural.parameters import random_normal

__all__ = ["Linear", "NoHidden", "Tanh"]


@dataclass(frozen=True)
class Tanh:
    """The paper's a = tanh(d + Hx)."""

    n_hidden: int

    def initial(
        self, n_inputs: int, rng: np.random.RandomState, dtype: DTypeLike
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Draw H, and zeros for d."""
        scale = 3.0 / np.sqrt(max(n_inputs, 1))
        H = random_normal(rng, scale, (self.n_hidden, n_inputs), dtype)
        return H, np.zeros(self.n_hidden, dtype)

    def kernel(self, trained: dict[str, Any], at: Any, scratch: Any) -> Any:
        """Give the kernel, which works on `trained` parameters."""
        return _hidden.Tanh(trained["H"], trained["d"], at, scratch)


@dataclass(frozen=True)
class NoHidden(Tanh):
    """None: the output units see x alone, and H and d are empty."""

    n_hidden: int = 0

    def kernel(self, trained: dict[str, Any], at: Any, scratch: Any) -> Any:
        """Give the kernel."""
        return _hidden.Hidden()


@dataclass(frozen=True)
class Linear(Tanh):
    """Sums d + Hx, to which the output adds before the tanh."""

    def kernel(self, trained: dict[str, Any], at: Any, scratch: Any) -> Any:
        """Give the kernel, which works on `trained` parameters."""
        return _hidden.Linear(trained["H"], trained["d"], at, scratch)
