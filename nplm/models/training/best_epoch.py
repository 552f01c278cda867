"""Early stopping by the held-out loss of each epoch."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from nplm.base.fitted import Fitted

__all__ = ["BestEpoch"]


@dataclass
class BestEpoch:
    """The best epoch so far by held-out loss, and its weights.

    - `patience`: number of epochs without improvement after which training stops. None
      never stops and keeps no weights
    - `tol`: least improvement that counts, in nats per token
    """

    patience: int | None
    tol: float
    best_loss: float = math.inf
    best_epoch: int = 0
    stale: int = 0  # epochs without improvement

    def __post_init__(self) -> None:
        self.best: list[NDArray[np.floating]] | None = None

    @property
    def out_of_patience(self) -> bool:
        """Return whether training should stop."""
        return self.patience is not None and self.stale >= self.patience

    def improves(self, loss: float, epoch: int) -> bool:
        """Record the loss of an epoch; return whether to keep its weights in `best`."""
        if self.patience is None:
            return False
        self.stale = 0 if loss < self.best_loss - self.tol else self.stale + 1
        if not loss < self.best_loss:
            return False
        self.best_loss, self.best_epoch = loss, epoch
        self.best = None  # freed first, so that only one copy of the weights exists
        return True

    def facts(self) -> dict[str, object]:
        """Return the state without the weights, for JSON."""
        facts = asdict(self)
        return {name: facts[name] for name in ("best_loss", "best_epoch", "stale")}

    def resume(
        self, facts: Fitted, best: list[NDArray[np.floating]], n_epochs: int
    ) -> None:
        """Restore the state of `facts` and the best weights, after `n_epochs`."""
        best_epoch = facts.whole("best_epoch", 0, n_epochs)
        best_loss, stale = facts.number("best_loss"), facts.whole("stale", 0, n_epochs)
        if bool(best) != (best_epoch > 0):
            raise facts.invalid_item("best_epoch", best_epoch)
        self.best_loss, self.best_epoch, self.stale = best_loss, best_epoch, stale
        self.best = best or None
