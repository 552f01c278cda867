"""Train a network in epochs: order of examples, losses, history and divergence."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from nplm.base.array_types import Array, State
from nplm.base.exceptions import DivergenceError, ParameterMessage
from nplm.base.fitted import Fitted
from nplm.models.neural.fitting import scoring
from nplm.models.neural.fitting.scoring import Scoring, scored_each_epoch
from nplm.models.neural.fitting.training_windows import Windows, order_of
from nplm.models.neural.network.network import Network
from nplm.models.neural.network.parts import check_sums
from nplm.models.neural.recipe import HISTORY_COLUMNS, Recipe
from nplm.models.training.loop import Job
from nplm.models.training.parallel.processes import Processes
from nplm.models.training.plan import Plan

# Minimum number of examples for a divergence check; fewer may just be hard.
MIN_CHECKED_EXAMPLES = 1000


@dataclass
class BestEpoch:
    """The best epoch so far by held-out loss, and its weights."""

    patience: int | None  # epochs without an improvement of `tol`; None never stops
    tol: float
    best_loss: float = math.inf
    best_epoch: int = 0
    stale: int = 0  # epochs without improvement
    best: list[Array] | None = None

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
        names = ("best_loss", "best_epoch", "stale")
        return {name: getattr(self, name) for name in names}

    def resume(self, facts: Fitted, best: list[Array], n_epochs: int) -> None:
        """Restore the state of `facts` and the best weights, after `n_epochs`."""
        best_epoch = facts.whole("best_epoch", 0, n_epochs)
        best_loss, stale = facts.number("best_loss"), facts.whole("stale", 0, n_epochs)
        if bool(best) != (best_epoch > 0):
            raise facts.invalid_item("best_epoch", best_epoch)
        self.best_loss, self.best_epoch, self.stale = best_loss, best_epoch, stale
        self.best = best or None


class Epochs(Job):
    """Epochs over windows: a job of the training loop.

    Each complete epoch extends `history`. A `plan` has a number of examples in place of
    epochs: the learning rate falls to 0 with the last of them, or soon, from the best
    epoch on, when the held-out loss stops improving.
    """

    pass_name = "epoch"

    def __init__(
        self,
        network: Network,
        windows: Windows,
        recipe: Recipe,
        processes: Processes,
        *,
        batch_size: int,
        history: dict[str, list[float]],
        verbose: int,
        plan: Plan | None = None,
    ) -> None:
        self.network, self.windows, self.processes = network, windows, processes
        self.batch_size, self.history, self.verbose = batch_size, history, verbose
        self.plan, self.cools = plan, False
        self.name, self.learning_rate_init = recipe.estimator, recipe.learning_rate_init
        self.order = order_of(
            windows, processes, shuffle=recipe.shuffle,
            runs_of=batch_size if network.parts.hidden.lowest.n_memory else None,
            n_workers=recipe.n_workers(processes.size),
        )  # fmt: skip
        network.has_runs = self.order.has_runs
        self.n_steps = self.order.n_examples
        needed = recipe.schedule.epochs(self.n_steps, batch_size)
        self.max_iter = min(recipe.max_iter, needed)
        stops = windows.held_out is not None and recipe.early_stopping is not False
        patience = recipe.n_iter_no_change if stops else None
        self.held_out = BestEpoch(patience, recipe.tol)
        scored, every = scored_each_epoch(windows), windows.held_out
        text = f"scoring {'some training' if every is None else 'held-out'} windows"
        weight, most = recipe.scoring_weight, scoring.MAX_SCORED_WINDOWS
        self.closing = self._scoring = Scoring(
            network, processes, scored, text, weight, most
        )
        self._final: Scoring | None = None
        if every is not None and len(every) > most:
            text = "scoring all held-out windows"
            self.final = self._final = Scoring(network, processes, every, text, weight)
        self._sample: Scoring | None = None
        if plan is not None and plan.n_sample and every is not None:
            text, n = "sampling held-out windows", plan.n_sample
            self._sample = Scoring(network, processes, every, text, weight, n)
        self.least = network.least(batch_size)
        self.seconds_a_call = network.seconds_a_call(batch_size)
        self._n_before = len(history["loss"])
        self._seen = network.n_seen  # before this fit

    @property
    def words_per_second(self) -> float:
        """Examples a second of the epochs of this fit; 0 before the first has ended."""
        seconds = sum(self.history["seconds"][self._n_before :])
        return (self.network.n_seen - self._seen) / seconds if seconds else 0.0

    # -- an epoch -----------------------------------------------------------------

    @property
    def n_ended(self) -> int:
        return len(self.history["loss"]) - self._n_before

    def n_passes(self, done: int) -> float:
        return self.max_iter if self.plan is None else self.plan.end / self.n_steps

    def more(self, done: int) -> bool:
        if self.held_out.out_of_patience and not self.cools:
            if self.plan is None:
                return False
            self._cool(self.plan, done)
        return done < self.n_passes(done)

    def _cool(self, plan: Plan, done: int) -> None:
        """Go on from the best epoch, with a learning rate that soon falls to 0."""
        self.cools, best = True, self.held_out.best
        if best is not None:
            self.network.restore(best)
            self.network.settle()
        plan.cool(done * self.n_steps)
        self.network.set_span(plan.n_steps)

    def limit(self, done: int) -> int:
        """Return the last step of the next call, whole mini-batches before it."""
        if self.plan is None:
            return self.n_steps
        before, n_steps = self.n_ended * self.n_steps, self.plan.n_steps
        limit = self.plan.limit(before + done) - before
        if self.plan.n_steps != n_steps:
            self.network.set_span(self.plan.n_steps)
        limit = min(self.n_steps, -(-limit // self.least) * self.least)
        if self._sample is not None and 0 < done < limit and self.plan.wants_sample:
            self._score_sample(self._sample, self.plan)
        return limit

    def _score_sample(self, sample: Scoring, plan: Plan) -> None:
        """Score a sample of the held-out windows; the fit keeps its bits."""
        began = time.perf_counter()
        with self.network.unsettled():
            sample.begin()
            sample.work(0, sample.n_steps)
        plan.sampled(time.perf_counter() - began, sample.loss())

    def begin(self, rng: np.random.RandomState, *, anew: bool) -> None:
        self.order.begin(rng)
        if anew:
            self.network.begin_epoch()

    def work(self, start: int, stop: int) -> None:
        windows = self.windows
        rows = self.order.rows(start, stop)
        self.network.train(windows.X, windows.y, rows, self.batch_size)

    def steps_done(self, passes: int) -> int:
        return self.network.n_seen - self._seen - passes * self.n_steps

    def figure(self, done: int) -> float:
        loss = float(self.processes.agree(self.network.loss / done))
        if done >= MIN_CHECKED_EXAMPLES or not math.isfinite(loss):
            self._check_divergence(loss, self.n_ended + 1, done)
        return loss

    def end(self, number: int, seconds: float, closing_seconds: float) -> None:
        """Keep the weights if the scores of the held-out windows are the best."""
        network = self.network
        n_steps = self.steps_done(number - 1)
        loss = float(self.processes.agree(network.loss / n_steps))
        final_loss = self._scoring.loss()
        self._check_divergence(final_loss, number, n_steps)
        val_loss = final_loss if self.windows.held_out is not None else math.nan
        figures = {
            "loss": loss, "val_loss": val_loss,
            "seconds": seconds, "scoring_seconds": closing_seconds,
        }  # fmt: skip
        self._append(figures | network.costs())
        self._report(number)
        if self.plan is not None:
            self.plan.closed(closing_seconds, val_loss)
        if self.held_out.improves(val_loss, number):
            self.held_out.best = network.copy()

    def close(self) -> None:
        self.network.settle()
        if self.held_out.best is not None:
            self.network.restore(self.held_out.best)

    def val_loss(self) -> float:
        """Return the loss of the final weights on all held-out windows, or NaN."""
        if self._final is not None:
            loss = self._final.loss()
            if self.verbose:
                n = self._final.n_scored
                print(f"[{self.name}] all {n:,} held-out windows: loss {loss:.4f} nats")
            return loss
        if self.held_out.best is not None:
            return self.held_out.best_loss
        return self.history["val_loss"][-1]

    def kept(self) -> str:
        if self.held_out.best is None:
            return "the weights trained so far"
        epoch = self.held_out.best_epoch
        return f"the weights of epoch {epoch}, the best on held-out data"

    def _append(self, figures: dict[str, float]) -> None:
        """Add the metrics of an epoch in one step; NaN where an epoch lacks one."""
        n_before, history = len(self.history["loss"]), self.history
        history |= {
            name: [
                *history.get(name, [math.nan] * n_before),
                figures.get(name, math.nan),
            ]
            for name in history | figures
        }

    def _check_divergence(self, loss: float, epoch: int, done: int) -> None:
        # The loss of a uniform guess is log |V|. Twice that, with a margin for tiny
        # vocabularies, is more than noise.
        if not loss < 2 * math.log(self.network.n_words) + 5:
            message = ParameterMessage(
                "{0}: training diverged in epoch {1} after {2} examples (mean loss "
                "{3:.4g} nats per token); lower {learning_rate_init}, now {4:g}, or "
                "{batch_size}, now {5}.", self.name, epoch, done, loss,
                self.learning_rate_init, self.batch_size,
            )  # fmt: skip
            raise DivergenceError(message)

    def _report(self, number: int) -> None:
        if not self.verbose:
            return
        loss, val_loss = self.history["loss"][-1], self.history["val_loss"][-1]
        line = f"[{self.name}] epoch {number}: training loss {loss:.4f}"
        if not math.isnan(val_loss):
            line += f", held-out loss {val_loss:.4f} nats"
        line += f", {self.history['seconds'][-1]:.1f} s"
        print(f"{line} and {self.history['scoring_seconds'][-1]:.1f} s scoring")

    # -- saves --------------------------------------------------------------------

    def arrays(self) -> State:
        # Not settled, which would change bits.
        best = {f"best_{i}": a for i, a in enumerate(self.held_out.best or ())}
        return self.network.state() | best

    def facts(self) -> dict[str, object]:
        facts: dict[str, object] = {
            "history": self.history, "held_out": self.held_out.facts(),
            "n_before": self._n_before, "seen": self._seen,
        }  # fmt: skip
        if self.plan is not None:
            facts["plan"] = self.plan.facts() | {"cools": self.cools}
        return facts

    def resume(self, arrays: Fitted, facts: Fitted, *, passes: int, steps: int) -> None:
        n_before, seen = facts.whole("n_before"), facts.whole("seen")
        history = facts.history("history", *HISTORY_COLUMNS)
        if len(history["loss"]) != n_before + passes:
            raise facts.invalid_item("history", history)
        network, best = self.network, []
        if "best_0" in arrays:
            trained = network.parameters.trained().values()
            best = [
                arrays.array(f"best_{i}", array.dtype, array.shape).copy()
                for i, array in enumerate(trained)
            ]
            network.restore(best)
            check_sums(network.parameters, network.parts)
        self.held_out.resume(facts.inner("held_out"), best, passes)
        done = passes * self.n_steps + steps
        if self.plan is not None:
            of_plan = facts.inner("plan")
            self.cools = of_plan.take("cools", bool)
            self.plan.resume(of_plan)
            network.set_span(self.plan.n_steps)
            if steps == 0 and passes:  # the last epoch has fewer steps
                before = done - self.n_steps
                last = -(-(self.plan.end - before) // self.least) * self.least
                done = min(done, before + last)
        network.set_state(arrays, seen + done)
        check_sums(network.parameters, network.parts)
        self.history.clear()
        self.history.update(history)
        self._n_before, self._seen = n_before, seen
