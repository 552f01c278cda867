"""Fit a network: a recipe, windows and an earlier fit make a trained network."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from nplm.base.array_types import AnyArray, Array, Counts, Index
from nplm.base.exceptions import ParameterMessage
from nplm.base.progress import BAR, OnProgress, bar, print_line
from nplm.base.warnings import warn
from nplm.models.neural.fitting.epochs import Epochs
from nplm.models.neural.fitting.replicated import CommonNetwork, ReplicatedNetwork
from nplm.models.neural.fitting.sharded import ShardedNetwork, rows_of
from nplm.models.neural.fitting.training_windows import Windows, in_turns
from nplm.models.neural.network.dropout import Dropout
from nplm.models.neural.network.hidden import n_runs
from nplm.models.neural.network.network import Network, Rows, sharing_of
from nplm.models.neural.network.parts import Parts
from nplm.models.neural.recipe import HISTORY_COLUMNS, Recipe, TrainedNetwork
from nplm.models.training.checkpoint import Checkpoint, fingerprint
from nplm.models.training.loop import run_passes
from nplm.models.training.parallel.blas import blas_threads
from nplm.models.training.parallel.processes import ALONE, Processes
from nplm.models.training.parallel.threads import Threads
from nplm.models.training.plan import Plan
from nplm.text.embeddings import components

Folder = str | os.PathLike[str]


class FitInterrupted(KeyboardInterrupt):
    """Interrupt that ended a fit early, with the network `trained` until then."""

    def __init__(self, interrupt: KeyboardInterrupt, trained: TrainedNetwork) -> None:
        super().__init__(*interrupt.args)
        self.trained = trained


def fit(
    recipe: Recipe,
    windows: Windows,
    before: TrainedNetwork | None = None,
    *,
    processes: Processes = ALONE,
    checkpoint: Folder | None = None,
    progress: OnProgress | None = None,
    verbose: int = 0,
    plan: Plan | None = None,
) -> TrainedNetwork:
    """Train a network: that of `before`, which does not change, or a new one.

    A `plan` has a number of examples, in one process, in place of the epochs of a
    "linear" learning rate. Returns the network with the output units of this process.
    Raises FitInterrupted on an interrupt, if there is one process.
    """
    training = Training(recipe, windows, before, processes, checkpoint, plan)
    interrupt = training.run(progress, verbose)
    if interrupt is None:
        return training.result()
    raise FitInterrupted(interrupt, training.result()) from None


class Training:
    """A network in training, for a fit on which all processes agree."""

    def __init__(
        self,
        recipe: Recipe,
        windows: Windows,
        before: TrainedNetwork | None = None,
        processes: Processes = ALONE,
        checkpoint: Folder | None = None,
        plan: Plan | None = None,
    ) -> None:
        self.recipe, self.windows, self.plan = recipe, windows, plan
        # Numbers of examples of an epoch, of all processes, and of an update.
        self.n_examples = windows.n_examples(processes.size)
        self.batch_size = min(recipe.batch_size, self.n_examples)
        self.processes, self._folder = processes, checkpoint
        if recipe.architecture.n_memory and processes is not ALONE:
            self._check_runs()
        self._fingerprint = self._described(before)
        processes.check_same(
            self._fingerprint | {"checkpoint": str(checkpoint)},
            of_data="If each rank reads a part of the data, set data='sharded'; else "
            "pass the same windows in all.",
        )
        self._fingerprint |= self._described_parts()
        counts = windows.counts(recipe.architecture.n_words, processes)
        generator = None
        if before is None:
            self.architecture = recipe.architecture.learned(counts, windows.whole)
        else:  # `FitRequest` has checked that both are the same
            self.architecture, generator = before.architecture, before.generator
        if generator is None:
            generator = check_random_state(recipe.random_state)
        self.generator = processes.generator(generator)
        self.network = self._network(before, counts)
        self._val_loss = math.nan
        self.history: dict[str, list[float]] = {name: [] for name in HISTORY_COLUMNS}
        # Only these of the network before are kept: its arrays may then be freed.
        self._n_seen, self._n_epochs, self._n_added = 0, 0.0, 0
        if before is not None:
            self._n_seen, self._n_epochs = before.n_seen, before.n_epochs
            self._n_added = before.n_added
            self.history = {k: list(values) for k, values in before.history.items()}

    def _check_runs(self) -> None:
        """Raise ValueError unless processes can take whole runs of mini-batches."""
        recipe, size = self.recipe, self.processes.size
        output = recipe.architecture.output
        if output.name == "classes":
            raise ValueError(
                f"n_memory={recipe.architecture.n_memory} with output='classes' trains "
                "without MPI, because processes share the examples by their classes; "
                "call the model's own fit, or set another output."
            )
        if self._takes_turns and self.batch_size % size:
            raise ValueError(
                f"batch_size={self.batch_size} is no multiple of the {size} processes, "
                "of which each takes whole runs of its own text; set batch_size to one."
            )

    def _described(self, before: TrainedNetwork | None) -> dict[str, str]:
        """Return a fingerprint of all that determines the fit, if one is needed."""
        if self._folder is None and self.processes is ALONE:
            return {}
        windows = self.windows
        arrays: dict[str, AnyArray | None] = {}
        if windows.min_windows is None:
            arrays |= windows.arrays()
        if windows.held_out is None:
            arrays |= {"X_val": None, "y_val": None}
        else:
            arrays |= windows.held_out.arrays("_val")
        facts: dict[str, object] = {"fitted": before is not None}
        if before is not None:
            named = before.parameters.named()
            arrays |= {f"{name}_": array for name, array in named.items()}
            arrays |= before.solver_state
            facts |= {
                "n_seen_": before.n_seen, "n_updates": before.n_updates,
                "n_epochs before": before.n_epochs,
            }  # fmt: skip
        return self.recipe.described() | fingerprint(facts, arrays)

    def _described_parts(self) -> dict[str, str]:
        """Return a fingerprint of the windows of each process, if a save needs it."""
        windows = self.windows
        if self._folder is None or windows.min_windows is None:
            return {}
        of_rank = fingerprint({}, windows.arrays())
        return {
            f"{name} of rank {rank}": value
            for rank, theirs in enumerate(self.processes.everyones(of_rank))
            for name, value in theirs.items()
        }

    def _network(self, before: TrainedNetwork | None, counts: Counts) -> Network:
        """Make the network to train, with the output units of this process."""
        recipe, has_parts = self.recipe, self.windows.min_windows is not None
        architecture, rng = self.architecture, self.generator
        parts, n_words = architecture.parts(recipe.loss), architecture.n_words
        processes, rows = self.processes, slice(None)
        shards = processes is not ALONE and self._shards_rows(parts)
        if shards:
            rows = rows_of(parts.output.n_rows(n_words), processes)
        state, clock, n_epochs = None, (0.0, 0.0), 0.0
        if before is None:
            parameters = parts.initial(
                n_words,
                counts,
                rng,
                recipe.dtype,
                rows,
                self._embeddings(),
            )
        else:
            parameters, state = before.resumed(parts, recipe.network_solver, rows)
            # New moments start at update 0.
            clock = (before.n_seen, 0 if state is None else before.n_updates)
            n_epochs = before.n_epochs
        solver = recipe.network_solver.started(
            clock[0], n_epochs, self.n_examples, self.batch_size
        )
        if self.plan is not None:
            schedule = replace(solver.schedule, span=self.plan.n_steps)
            solver = replace(solver, schedule=schedule)
        options: dict[str, Any] = {
            "precision": recipe.precision,
            "threads": Threads(recipe.n_jobs),
            "parallel": recipe.parallel,
            "solver": solver,
            "state": state,
            "output_state": parts.output.initial_state(
                n_words, counts, rng, recipe.n_workers(processes.size)
            ),
            "memory": parts.hidden.lowest.initial_memory(
                recipe.n_jobs, self._n_runs, recipe.dtype
            ),
            "dropout": self._dropout(rng),
            "clock": clock,
            "processes": processes,
        }
        kind: type[Network] = Network
        if shards:
            kind = ShardedNetwork
        elif processes is not ALONE:
            every = recipe.average_every
            options |= {"has_parts": has_parts, "average_every": every}
            in_common = every is None and processes.share_memory
            kind = CommonNetwork if in_common else ReplicatedNetwork
        return kind(parts, parameters, **options)

    def _embeddings(self) -> Array | None:
        """Return the first features, which the first process computes; None to draw."""
        recipe, processes = self.recipe, self.processes
        architecture = recipe.architecture
        if not architecture.starts_from_counts:
            start = architecture.features.embeddings
            return None if isinstance(start, str) else start
        n_words, m = architecture.n_words, architecture.embedding_dim
        seed = self.generator.randint(2**32, dtype=np.uint32)
        counts, C = self.windows.neighbours(n_words, processes), None
        if counts is not None:
            C, m = np.zeros((n_words, m), np.float32), min(m, n_words)
            rng, times = np.random.RandomState(seed), _times(Threads(recipe.n_jobs))
            with blas_threads(1):  # for the same bits
                C[:, :m] = components(counts, m, rng, times)
        return processes.agree(C)

    @property
    def _n_runs(self) -> int:
        """Maximum number of runs of a mini-batch, which the ends of documents cut."""
        is_cut = self.windows.rows is not None or self.windows.weights is not None
        return self.batch_size if is_cut else n_runs(self.batch_size)

    def _dropout(self, rng: np.random.RandomState) -> Dropout:
        """Return the dropout, with seeds for each process that has its own windows."""
        size, n_blocks = self.processes.size, len(self.architecture.widths)
        n_workers = size if self._takes_turns else self.recipe.n_workers(size)
        dropout = self.recipe.dropout.seeded(rng, n_workers, n_blocks)
        if dropout.seeds is None or not self._takes_turns:
            return dropout
        return replace(dropout, seeds=dropout.seeds[[self.processes.rank]])

    def _shards_rows(self, parts: Parts) -> bool:
        """Return whether processes share the output units, and not the examples."""
        # Processes cannot share features, nor rows for examples that they lack.
        lacking = self.windows.min_windows is not None
        lacking = lacking or self.recipe.average_every is not None
        if parts.output.rows_are_features or lacking:
            return False
        n_words, n_processes = self.architecture.n_words, self.processes.size
        kind, _ = sharing_of("sync", parts, n_words, self.batch_size, n_processes)
        can_shard = parts.output.rows_are_shared
        return can_shard and (self.recipe.sharded or kind is Rows)

    @property
    def _takes_turns(self) -> bool:
        """Whether processes with windows of their own share each mini-batch."""
        has_parts = self.windows.min_windows is not None
        return has_parts and self.recipe.average_every is None

    def run(
        self, progress: OnProgress | None = None, verbose: int = 0
    ) -> KeyboardInterrupt | None:
        """Train all epochs of the recipe; return an interrupt that ended it, if any."""
        recipe, processes = self.recipe, self.processes
        if processes.rank > 0:
            progress, verbose = None, 0
        job = Epochs(
            self.network, self.windows, recipe, processes, batch_size=self.batch_size,
            history=self.history, verbose=verbose if verbose < BAR else 0,
            plan=self.plan,
        )  # fmt: skip
        saves = None
        if self._folder is not None:
            saves = Checkpoint(self._folder, self._fingerprint, processes)
        shown = bar(
            0 if progress is not None else verbose,
            job.name,
            lambda loss: _perplexities(loss, self.history["val_loss"]),
        )
        # The kernels have threads of their own.
        with saves or nullcontext(), blas_threads(1), shown as own_progress:
            interrupt = run_passes(
                job,
                self.generator,
                processes,
                checkpoint=saves,
                progress=own_progress if progress is None else progress,
                verbose=verbose or own_progress is not None,
            )
        if (verbose or own_progress is not None) and (speed := job.words_per_second):
            print_line(f"[{job.name}] trained on {speed:,.0f} words a second")
        if interrupt is None:
            self._val_loss = job.val_loss()
        ran_out = interrupt is None and job.held_out.stale == 0
        should_end_before = recipe.early_stopping is True and not recipe.ends
        if ran_out and should_end_before and processes.rank == 0:
            message = ParameterMessage(
                "{0}: the held-out loss was still falling after {max_iter} epochs; "
                "raise {max_iter:max_iter}.", recipe.estimator,
                max_iter=recipe.max_iter,
            )  # fmt: skip
            warn(message, ConvergenceWarning)
        return interrupt

    def train(self, examples: Index) -> float:
        """Train on windows of this process, in this order; return their mean loss."""
        if self.windows.min_windows is not None:
            examples = in_turns(examples, self.processes)
        with blas_threads(1):
            self.network.loss, self.network.has_runs = 0.0, False
            X, y, rows = self.windows.X, self.windows.y, self.windows.index(examples)
            self.network.train(X, y, rows, self.batch_size)
        return self.network.loss / len(examples)

    def result(self) -> TrainedNetwork:
        """Return the trained network, which shares its arrays with this object."""
        network = self.network
        n_epochs = self._n_epochs + (network.n_seen - self._n_seen) / self.n_examples
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
            precision=self.recipe.precision,
            val_loss=self._val_loss,
        )


def _perplexities(loss: float, val_loss: list[float]) -> str:
    """Return the perplexities of an epoch so far, and of the last held-out windows."""
    text = f"training perplexity {np.exp(loss):.1f}"
    if val_loss and not math.isnan(val_loss[-1]):
        text += f" (held-out {np.exp(val_loss[-1]):.1f})"
    return text


def _times(threads: Threads) -> Callable[[csr_array, AnyArray], AnyArray]:
    """Return the product of a sparse matrix and a dense one, in threads."""

    def times(A: csr_array, B: AnyArray) -> AnyArray:
        out = np.empty((A.shape[0], B.shape[1]), B.dtype)
        # Of as many entries each: the rows of frequent words have most of them.
        ends = np.linspace(0, A.nnz, threads.n + 1)[1:-1]
        starts = [0, *np.searchsorted(A.indptr, ends).tolist(), A.shape[0]]

        def part(rows: slice) -> None:
            out[rows] = A[rows] @ B

        threads.map(part, [slice(*pair) for pair in pairwise(starts)])
        return out

    return times
