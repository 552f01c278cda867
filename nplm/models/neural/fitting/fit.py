"""Fit a network: a recipe, windows and an earlier fit make a trained network."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from nplm.base.warnings import warn
from nplm.models.neural.fitting.epochs import Epochs
from nplm.models.neural.fitting.sharded import ShardedNetwork, rows_of
from nplm.models.neural.fitting.windows import Windows
from nplm.models.neural.network.network import Network
from nplm.models.neural.recipe import Recipe, TrainedNetwork
from nplm.training.bars import BAR, bar
from nplm.training.checkpoint import Checkpoint, fingerprint
from nplm.training.held_out import HeldOut
from nplm.training.loop import OnProgress, run_passes
from nplm.training.parallel.processes import ALONE, Alone, Sharers
from nplm.training.parallel.threads import Threads, blas_threads

__all__ = ["FitInterrupted", "Training", "fit"]

Folder = str | os.PathLike[str]


class FitInterrupted(KeyboardInterrupt):
    """Interrupt that ended a fit early.

    Attributes
    ----------
    trained : TrainedNetwork
        The network at the interrupt.
    """

    def __init__(self, interrupt: KeyboardInterrupt, trained: TrainedNetwork) -> None:
        super().__init__(*interrupt.args)
        self.trained = trained


def fit(
    recipe: Recipe,
    windows: Windows,
    before: TrainedNetwork | None = None,
    *,
    processes: Alone | Sharers = ALONE,
    checkpoint: Folder | None = None,
    progress: OnProgress | None = None,
    verbose: int = 0,
) -> TrainedNetwork:
    """Train a network.

    Parameters
    ----------
    recipe : Recipe
        Checked settings of the fit.
        windows : Windows
        Training and held-out windows.
        before : TrainedNetwork, optional
        Network to train further, which is not changed. By default, a new one is drawn.
        processes : Processes
        Processes that share the output units.
        checkpoint : path-like, optional
        Folder in which to save the state of the fit, and from which to resume.
        progress : callable, optional
        Called by the first process as ``progress(done, total, loss)``.
        verbose : int
        1 prints a line per epoch, 2 shows a progress bar; in the first process.

    Returns
    -------
    trained : TrainedNetwork
        Network with the output units of this process.

    Raises
    ------
    FitInterrupted
        On an interrupt, if there is one process; it has the trained network.
    """
    training = Training(recipe, windows, before, processes, checkpoint)
    interrupt = training.run(progress, verbose)
    if interrupt is None:
        return training.result()
    raise FitInterrupted(interrupt, training.result()) from None


class Training:
    """A network in training.

    Parameters
    ----------
    recipe, windows, before, processes, checkpoint
        As in `fit`.

    Raises
    ------
    ValueError
        In all processes, if they disagree on the recipe, the windows or the earlier
        fit.
    """

    def __init__(
        self,
        recipe: Recipe,
        windows: Windows,
        before: TrainedNetwork | None = None,
        processes: Alone | Sharers = ALONE,
        checkpoint: Folder | None = None,
    ) -> None:
        self.recipe, self.windows = recipe, windows
        self.processes, self._folder = processes, checkpoint
        self._fingerprint = self._described(before)
        processes.check_same(self._fingerprint | {"checkpoint": str(checkpoint)})
        architecture = recipe.architecture
        if before is None:
            self.architecture = architecture.learned(windows.X, windows.y)
        else:
            self.architecture = architecture.continued(before.architecture)
        generator = None if before is None else before.generator
        if generator is None:
            generator = check_random_state(recipe.random_state)
        self.generator = processes.generator(generator)
        self.network = self._network(before)
        # Of the network before, these alone: its arrays may then be freed.
        self._n_seen, self._n_epochs, self._n_added = 0, 0.0, 0
        history: dict[str, list[float]] = {"loss": [], "val_loss": [], "seconds": []}
        if before is not None:
            self._n_seen, self._n_epochs = before.n_seen, before.n_epochs
            self._n_added = before.n_added
            history |= {k: list(values) for k, values in before.history.items()}
        self.history = history

    def _described(self, before: TrainedNetwork | None) -> dict[str, str]:
        """Return a fingerprint of all that determines the fit, if one is needed."""
        if self._folder is None and isinstance(self.processes, Alone):
            return {}
        windows = self.windows
        X_val, y_val = windows.held_out or (None, None)
        arrays: dict[str, Any] = {
            "X": windows.X, "y": windows.y, "X_val": X_val, "y_val": y_val,
        }  # fmt: skip
        facts: dict[str, Any] = {"fitted": before is not None}
        if before is not None:
            named = before.parameters.named()
            arrays |= {f"{name}_": array for name, array in named.items()}
            arrays |= before.solver_state
            facts |= {
                "n_seen_": before.n_seen, "n_updates": before.n_updates,
                "n_epochs before": before.n_epochs,
            }  # fmt: skip
        return self.recipe.described() | fingerprint(facts, arrays)

    def _network(self, before: TrainedNetwork | None) -> Network:
        """Make the network to train, with the output units of this process."""
        recipe, windows = self.recipe, self.windows
        architecture, rng = self.architecture, self.generator
        parts, n_words = architecture.parts(recipe.loss), architecture.n_words
        processes, rows = self.processes, slice(None)
        if not isinstance(processes, Alone):
            rows = rows_of(parts.n_rows(n_words), processes)
        state, clock, n_epochs = None, (0.0, 0.0), 0.0
        if before is None:
            parameters = parts.initial(
                n_words, windows.y, rng, recipe.dtype, rows, recipe.embeddings
            )
        else:
            parameters, state = before.resumed(parts, recipe.solver, rows)
            # New moments start at update 0.
            clock = (before.n_seen, 0 if state is None else before.n_updates)
            n_epochs = before.n_epochs
        schedule = recipe.solver.schedule.started(clock[0], n_epochs, len(windows.y))
        options: dict[str, Any] = {
            "precision": recipe.precision,
            "threads": Threads(recipe.n_jobs),
            "parallel": recipe.parallel,
            "solver": replace(recipe.solver, schedule=schedule),
            "state": state,
            "output_state": parts.output.initial_state(
                n_words, windows.y, rng, recipe.n_workers
            ),
            "dropout": recipe.dropout.seeded(rng, recipe.n_workers),
            "clock": clock,
        }
        if isinstance(processes, Alone):
            return Network(parts, parameters, **options)
        return ShardedNetwork(parts, parameters, processes=processes, **options)

    @property
    def batch_size(self) -> int:
        """Number of examples of an update, at most the number of windows."""
        return min(self.recipe.batch_size, len(self.windows.y))

    def run(
        self, progress: OnProgress | None = None, verbose: int = 0
    ) -> KeyboardInterrupt | None:
        """Train all epochs of the recipe; return an interrupt that ended it, if any."""
        recipe, processes = self.recipe, self.processes
        if processes.rank > 0:
            progress, verbose = None, 0
        job = self._epochs(verbose if verbose < BAR else 0)
        saves = None
        if self._folder is not None:
            saves = Checkpoint(self._folder, self._fingerprint, processes)
        shown = bar(
            0 if progress is not None else verbose,
            job.name,
            lambda loss: f"perplexity {np.exp(loss):.1f}",
        )
        # The kernels have threads of their own.
        with saves or nullcontext(), blas_threads(1), shown as own_progress:
            interrupt = run_passes(
                job,
                self.generator,
                processes,
                checkpoint=saves,
                progress=own_progress if progress is None else progress,
                verbose=verbose,
            )
        stopping, has_held_out = recipe.stopping, self.windows.held_out is not None
        ran_out = interrupt is None and job.held_out.stale == 0
        should = stopping.should_converge(has_held_out, recipe.adapts)
        if ran_out and should and processes.rank == 0:
            warn(
                f"{recipe.name}: the held-out loss was still falling after "
                f"max_iter={stopping.max_iter} epochs; raise max_iter.",
                ConvergenceWarning,
            )
        return interrupt

    def _epochs(self, verbose: int) -> Epochs:
        recipe, stopping = self.recipe, self.recipe.stopping
        stops = stopping.stops_early(self.windows.held_out is not None)
        patience = stopping.n_iter_no_change if stops else None
        return Epochs(
            self.network, self.windows, self.processes,
            max_iter=stopping.max_iter,
            batch_size=self.batch_size,
            shuffle=recipe.shuffle,
            held_out=HeldOut(patience, stopping.tol),
            learning_rate_init=recipe.solver.schedule.learning_rate_init,
            adaptive=recipe.adapts,
            history=self.history,
            verbose=verbose,
            name=recipe.name,
        )  # fmt: skip

    def train(self, examples: NDArray[np.intp]) -> float:
        """Train on the windows `examples` in this order, and return their mean loss."""
        with blas_threads(1):
            self.network.loss = 0.0
            X, y = self.windows.X, self.windows.y
            self.network.train(X, y, examples, self.batch_size)
        return self.network.loss / len(examples)

    def result(self) -> TrainedNetwork:
        """Return the trained network, which shares its arrays with this object."""
        network, n_windows = self.network, len(self.windows.y)
        n_epochs = self._n_epochs + (network.n_seen - self._n_seen) / n_windows
        return TrainedNetwork(
            architecture=self.architecture,
            parameters=network.parameters,
            solver_state=network.solver.kept(network.solver_state),
            loss=self.recipe.loss,
            generator=self.generator,
            history=self.history,
            n_seen=network.n_seen,
            n_updates=network.clock.read()[1],
            n_epochs=n_epochs,
            n_added=self._n_added,
        )
