"""Fit the models of `AutoLM` in a given time, and mix them."""

from __future__ import annotations

import json
import math
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.frozen import FrozenEstimator

from nplm.base.blocks import Texts
from nplm.base.estimators.scored_texts import perplexity, texts_log_prob
from nplm.base.exceptions import CheckpointError, DivergenceError
from nplm.base.files.atomic_files import allocate, release_pages, replacing
from nplm.base.fitted import Fitted
from nplm.base.warnings import warn
from nplm.models.adaptation.cache_lm import CacheLM
from nplm.models.auto.auto_recipe import AutoRecipe
from nplm.models.auto.memory import (
    buffer_bytes,
    fit_bytes,
    ngrams_are_on_disk,
    saved_bytes,
)
from nplm.models.auto.texts import CACHE_WORDS, AutoText
from nplm.models.classes.class_lm import ClassLM
from nplm.models.classes.word_classes import WordClasses
from nplm.models.mixtures.mixture_lm import MixtureLM
from nplm.models.neural.network_lm import FitRequest
from nplm.models.neural.neural_lm import NeuralLM
from nplm.models.ngrams.kneser_ney import KneserNeyLM
from nplm.models.ngrams.stages.scratch import Scratch
from nplm.models.ngrams.trie.work import Work
from nplm.models.training.checkpoint import CONTENT_ERRORS, discard, has_save
from nplm.models.training.em import fit_mixture_weights
from nplm.models.training.plan import Plan, TimedPlan

CLASS_PASSES = 10
# Members with less weight are left out.
LEAST_WEIGHT = 0.005
FALLBACK = (0.5, 1.0, 1.5)  # discounts of texts too small to estimate them
# Seconds of a comparison of the orders of documents, of a held-out token; and the share
# of the time that it may take.
ORDER_SECONDS, ORDER_SHARE = 4e-5, 0.03
# Seconds between two writes of the file.
CHOICE_FILE, SECONDS_A_KEEP = "choice.json", 1.0
# Fits that are begun again with half the learning rate after one that diverged.
MAX_HALVINGS = 2
# Tokens of a sample of the held-out text, for progress, at most and at least; and the
# share of the network's time that scoring it may take.
SAMPLE, LEAST_SAMPLE, SAMPLE_SHARE = 2000, 1000, 0.004
# Shares of the time of a network between which it may be chosen again, and how often.
FIRST_CHOICE, LAST_CHOICE, MAX_CHOICES = 0.03, 0.1, 2

Report = Callable[[str, str], None]
Member = TypeVar("Member")


@dataclass(eq=False)
class Budget:
    """The time of a fit, which can be asked to end soon."""

    seconds: float  # of the whole work
    begun: float = field(default_factory=lambda: time.perf_counter())
    spent_before: float = 0.0  # seconds that the work took before it was killed
    slowness: float = 1.0  # time of the work, by its time of the processor
    ends_soon: bool = False
    plan: TimedPlan | None = None

    @property
    def spent(self) -> float:
        """Seconds that the work took so far, also before it was killed."""
        return self.spent_before + time.perf_counter() - self.begun

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.seconds - self.spent

    def end_soon(self) -> None:
        """End a fit of a network in few further steps, and begin no other."""
        self.ends_soon = True
        if self.plan is not None:
            self.plan.end_soon()


@dataclass(frozen=True)
class Choice:
    """A recipe, and what it was chosen by."""

    recipe: AutoRecipe
    scoring_seconds: float = 0.0  # expected, of the held-out text by the network
    reserved: float = 0.0  # seconds for the work that follows the scoring
    most: int = 0  # tokens that the network sees at most
    speed: float = 0.0  # words a second in training; 0 if none was measured
    n_bytes: int = 0  # memory that it takes, about; 0 if unknown
    seconds: float = 0.0  # that the fit took so far
    # Fingerprint of the parameters and the text that it was chosen for.
    asked: dict[str, str] = field(default_factory=dict)

    def keep(self, folder: Path) -> None:
        """Keep the choice, beside the checkpoint of a network if there is one."""
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder / CHOICE_FILE) as file:
            file.write(json.dumps(asdict(self)).encode())


MAX_NUMBER = 1e15  # of a choice in a file, which may come from anywhere


def forget(folder: str | os.PathLike[str]) -> None:
    """Remove the state of a fit: its choice, and the checkpoint of its network."""
    Path(folder, CHOICE_FILE).unlink(missing_ok=True)
    discard(folder)


def kept_choice(folder: Path) -> Choice | None:
    """Return the choice of a fit that was killed, if any."""
    if not (has_save(folder) or (folder / CHOICE_FILE).exists()):
        return None
    try:
        kept = Fitted(json.loads((folder / CHOICE_FILE).read_bytes()))
        number = partial(kept.number, least=0.0, most=MAX_NUMBER)
        choice = Choice(
            AutoRecipe.of(kept.take("recipe", dict)), number("scoring_seconds"),
            number("reserved"), kept.whole("most"), number("speed"),
            kept.whole("n_bytes"), number("seconds"), kept.take("asked", dict),
        )  # fmt: skip
        kept.done()
        return choice
    except (OSError, *CONTENT_ERRORS) as error:
        raise CheckpointError(
            f"{folder} has the state of a fit, but its {CHOICE_FILE} is missing or "
            "damaged; remove the folder to begin anew."
        ) from error


class _OtherSpeedError(Exception):
    """Ends the fit of a network that another choice replaces."""

    def __init__(self, choice: Choice) -> None:
        super().__init__("the network trains at another speed than it was chosen for")
        self.choice = choice


@dataclass
class Scores:
    """A member of the mixture, or all of them, on a text."""

    name: str
    log_prob: NDArray[np.float64]
    seconds: float  # of scoring it

    @classmethod
    def of(cls, name: str, model: Any, text: AutoText) -> Self:
        """Score the held-out text."""
        assert text.held_out is not None
        texts = text.texts(text.held_out, max(model.order_ - 1, 1))
        began = time.perf_counter()
        log_prob = texts_log_prob(model, texts)
        seconds = time.perf_counter() - began
        release_pages(*_mapped_arrays(model))
        return cls(name, log_prob, seconds)

    @classmethod
    def mixed(cls, scores: Sequence[Self], weights: NDArray[np.float64]) -> Self:
        """Return the scores of a mixture of models with these scores."""
        probs = np.exp([score.log_prob for score in scores]).T
        seconds = sum(score.seconds for score, w in zip(scores, weights) if w)
        with np.errstate(divide="ignore"):
            return cls("mixture", np.log(probs @ weights), seconds)

    @property
    def perplexity(self) -> float:
        """Perplexity of the text."""
        return perplexity(self.log_prob.sum(), len(self.log_prob))

    @property
    def speed(self) -> float:
        """Words a second; a coarse clock may show that they took no time."""
        return len(self.log_prob) / max(self.seconds, 1e-6)


@dataclass(eq=False)
class AutoFit:
    """A fit: it completes the recipe of `choice`, and makes the model."""

    text: AutoText
    choice: Choice
    budget: Budget | None  # None with a complete recipe
    word_features: csr_array | None  # those of the network
    n_jobs: int | None
    checkpoint: str | os.PathLike[str] | None  # folder for the state of the fit
    report: Report  # called with the work that begins, and a note
    memory: int | None = None  # bytes that the fit may take, about
    before: NeuralLM | None = None  # a network to train further
    classes: ClassLM | None = None  # whose classes of words stay
    scores: list[Scores] = field(default_factory=list)
    # Returns the choice for a true speed and the seconds that are left, or None if it
    # is the same; None if the network stays.
    choose_again: Callable[[float, float], Choice | None] | None = None
    # Called with a choice that replaces the first one; None if nothing is shown.
    announce: Callable[[Choice], None] | None = None
    order_gain: float = 0.0  # share by which a cache of all documents is better
    _planned: Plan | None = None

    @property
    def recipe(self) -> AutoRecipe:
        """The recipe, as far as it is known."""
        return self.choice.recipe

    def set(self, **values: Any) -> None:
        """Set fields of the recipe."""
        self.choice = replace(self.choice, recipe=replace(self.recipe, **values))

    def run(self) -> tuple[Any, KeyboardInterrupt | None]:
        """Fit and mix the members; return the model, and an interrupt if one came."""
        makers = {
            "ngrams": self._ngrams, "classes": self._classes, "cache": self._cache,
            "network": self._network,
        }  # fmt: skip
        models: dict[str, object] = {}
        interrupt = None
        for name in self.recipe.members:
            if self._known_weights.get(name, 1.0) == 0.0:
                continue  # it is not in the mixture
            if models and self.budget is not None and self.budget.ends_soon:
                break
            self._keep_choice(after=0.0)
            model, interrupt = makers[name]()
            if model is not None:
                models[name] = model
        return self._mixed(models), interrupt

    # -- the members ------------------------------------------------------------

    def _ngrams(self) -> tuple[KneserNeyLM, None]:
        self.report("n-grams", "")
        order = self.recipe.ngram_order
        model = self._fit_ngrams(KneserNeyLM(order, discount_fallback=FALLBACK))
        self.order_gain = self._order_gain(model)
        return model, None

    def _order_gain(self, ngrams: KneserNeyLM) -> float:
        """Compare a cache of each document with one of all, if there is time."""
        text, budget = self.text, self.budget
        if budget is None or text.held_out is None or text.n_columns or text.is_running:
            return 0.0
        if ORDER_SECONDS * text.n_held_out > ORDER_SHARE * budget.seconds:
            return 0.0
        cache, losses = self._cache()[0], []
        for is_running in (False, True):
            ways = replace(text, is_running=is_running)
            scores = [Scores.of("", model, ways).log_prob for model in (ngrams, cache)]
            probs = np.exp(scores).T
            losses.append(-fit_mixture_weights(probs).log_likelihood[-1])
        return float(1 - np.exp(losses[1] - losses[0]))

    def _classes(self) -> tuple[ClassLM, None]:
        self.report("classes of words", "")
        n, order = self.recipe.n_classes, self.recipe.ngram_order
        classes: Any = self.known_classes(n)
        if classes is None:
            classes = WordClasses(n, max_iter=CLASS_PASSES, random_state=0)
        model = ClassLM(order, classes=classes, discount_fallback=FALLBACK)
        return self._fit_ngrams(model), None

    def known_classes(self, n: int) -> NDArray[np.int32] | None:
        """Return the classes of the model before, if they are `n` of the same words."""
        before = self.classes
        if before is None or (before.n_classes_, before.n_words_) != (
            n, self.text.n_words,
        ):  # fmt: skip
            return None
        return before.labels_

    def _cache(self) -> tuple[CacheLM, None]:
        text, cache = self.text, CacheLM(CACHE_WORDS)
        cache = text.fit_cache(self._of_text(cache))
        # Words that fill a context are not read.
        return cache.set_params(boundary=text.boundary or 0), None

    def _of_text(self, model: Any) -> Any:
        return model.set_params(n_words=self.text.n_words, boundary=self.text.boundary)

    def _fit_ngrams(self, model: Any) -> Any:
        """Fit n-grams in memory if they fit there, else on disk."""
        model, memory = self._of_text(model), self.memory
        if not ngrams_are_on_disk(self.text, self.recipe, self.n_features, memory):
            return self.text.fit_ngrams(model, Work())
        assert memory is not None
        with Scratch(None, buffer_bytes(self.text, memory), self.n_jobs) as work:
            return self.text.fit_ngrams(model, work)

    @property
    def n_features(self) -> int:
        """Number of words, and of the pieces of their spelling."""
        pieces = 0 if self.word_features is None else self.word_features.shape[1]
        return int(self.text.n_words + pieces)

    def n_bytes(self, recipe: AutoRecipe) -> int:
        """Return the memory that a fit of a recipe takes, about."""
        sizes = self.text, recipe, self.n_features
        on_disk = ngrams_are_on_disk(*sizes, self.memory)
        return fit_bytes(*sizes, on_disk=on_disk)

    def check_disk(self) -> None:
        """Raise OSError if the disk is too small for a save and the model."""
        if self.checkpoint is not None:
            n = saved_bytes(self.text, self.recipe, self.n_features)
            with tempfile.TemporaryFile(dir=self.checkpoint) as file:
                allocate(file, n, Path(self.checkpoint))

    def new_network(self, parameters: Mapping[str, object]) -> NeuralLM:
        """Return an unfitted network."""
        network = NeuralLM(
            n_words=self.text.n_words, n_jobs=self.n_jobs, max_iter=1_000_000,
            random_state=self.recipe.seed, n_iter_no_change=2,
        )  # fmt: skip
        network.set_params(**parameters)
        if self.word_features is not None:
            network.set_params(features__word_features=self.word_features)
        return network

    def texts_of(self, network: NeuralLM) -> tuple[Texts, Texts | None]:
        """Return the training and the held-out text for a network."""
        text, n_context = self.text, network.columns_of_texts()
        held_out = text.held_out
        return (
            text.texts(text.train, n_context),
            None if held_out is None else text.texts(held_out, n_context),
        )

    def _network(self) -> tuple[NeuralLM | None, KeyboardInterrupt | None]:
        n_halvings = n_choices = 0
        while True:
            try:
                return self._trained()
            except _OtherSpeedError as again:
                self._begin_again(again.choice)
                n_choices += 1
                if n_choices == MAX_CHOICES:
                    self.choose_again = None
            except DivergenceError as error:
                is_last = n_halvings == MAX_HALVINGS
                if self.budget is None or (is_last and len(self.recipe.members) == 1):
                    self._forget()  # it would diverge again
                    raise
                self._begin_again(self.choice)
                if is_last:
                    warn(f"AutoLM: {error} The network is left out.", UserWarning)
                    return None, None
                n_halvings += 1
                rate = self.recipe.network["learning_rate_init"] / 2
                self.set(network=self.recipe.network | {"learning_rate_init": rate})
                self.choose_again = None  # it has the old learning rate

    def _forget(self) -> None:
        if self.checkpoint is not None:
            forget(self.checkpoint)

    def _begin_again(self, choice: Choice) -> None:
        """Take another choice; the checkpoint is of the network before."""
        self.choice = choice
        if self.checkpoint is not None:
            discard(self.checkpoint)

    def _trained(self) -> tuple[NeuralLM, KeyboardInterrupt | None]:
        network = self.new_network(self.recipe.network)
        if self.before is not None:
            network = self.before.set_params(
                **self.recipe.network, warm_start=True, n_jobs=self.n_jobs
            )
        try:
            request = FitRequest.of(network, *self.texts_of(network))
        except ValueError:  # of settings, which would be refused again
            self._forget()
            raise
        before, loss_before = request.before, math.inf
        if before is not None and self.budget is None and self.recipe.last == 0:
            return network, None  # which further training did not make better
        if before is not None and self.text.held_out is not None:
            scores = Scores.of("network", network, self.text)
            loss_before = -float(scores.log_prob.mean())
        plan = self._planned = self._plan()
        self._keep_choice(after=0.0)
        interrupt = None
        try:
            request.fit(plan=plan, checkpoint=self.checkpoint, progress=self._progress)
        except KeyboardInterrupt as error:
            if not hasattr(network, "C_"):
                raise
            interrupt = error.with_traceback(None)
        n_seen, n_epochs = (
            (0, 0) if before is None else (before.n_seen, len(before.history["loss"]))
        )
        losses, best = network.history_["val_loss"][n_epochs:], 0
        if self.text.n_held_out and network.early_stopping is not False and losses:
            best = int(np.nanargmin(losses)) + 1
        last = None
        if interrupt is not None:
            last = int(network.n_seen_) - n_seen
            if best:
                last = min(last, best * self.text.n_tokens)
        elif before is not None and network.val_loss_ > loss_before:
            request.assign(before)
            last = best = 0
        self.set(corrections=tuple(plan.corrections), last=last, kept_epoch=best)
        return network, interrupt

    def _plan(self) -> Plan:
        budget, choice = self.budget, self.choice
        if budget is None:
            return self.recipe.plan()
        ends = time.perf_counter() + budget.left - choice.reserved
        budget.plan = TimedPlan(
            self.recipe.planned, ends, steps_a_pass=self.text.n_tokens,
            closing_seconds=choice.scoring_seconds, most=choice.most, n_closings=2,
            reserved=choice.reserved, expected_speed=choice.speed,
            n_sample=self._n_sample(choice),
        )  # fmt: skip
        if budget.ends_soon:  # asked for before the network began
            budget.end_soon()
        return budget.plan

    def _n_sample(self, choice: Choice) -> int:
        """Return the size of a sample of the held-out text; 0 if none is shown."""
        assert self.budget is not None
        if self.announce is None or not choice.scoring_seconds:
            return 0
        seconds = SAMPLE_SHARE * (self.budget.left - choice.reserved)
        n = int(seconds * self.text.n_held_out / choice.scoring_seconds)
        return 0 if n < LEAST_SAMPLE else min(n, SAMPLE)

    def _keep_choice(self, *, after: float = SECONDS_A_KEEP) -> None:
        """Keep the choice with the time so far, some seconds after the last time."""
        if self.checkpoint is None or self.budget is None:
            return
        if self.budget.spent >= self.choice.seconds + after:
            self.choice = replace(self.choice, seconds=self.budget.spent)
            try:
                self.choice.keep(Path(self.checkpoint))
            except OSError as error:
                if not after:  # else the checkpoint of the network warns
                    why = error.strerror or error
                    warn(f"The fit continues, but is not kept: {why}.", RuntimeWarning)

    def _progress(self, done: float, total: float, loss: float) -> None:
        note = f"training perplexity {math.exp(min(loss, 50)):.1f}"
        plan = self._planned
        if plan is not None and not math.isnan(plan.held_out_loss):
            about = "about " if plan.is_sampled else ""
            note += f", held-out {about}{math.exp(min(plan.held_out_loss, 50)):.1f}"
        self.report("network", note)
        if self.checkpoint is not None and has_save(Path(self.checkpoint)):
            self._keep_choice()  # the time before a first save would be lost
        self._check_speed()

    def _check_speed(self) -> None:
        """Raise _OtherSpeedError if the network is not the one for its true speed."""
        plan, budget = self._planned, self.budget
        if not isinstance(plan, TimedPlan) or budget is None or budget.ends_soon:
            return
        if self.choose_again is None or not FIRST_CHOICE < plan.share < LAST_CHOICE:
            return
        left = plan.ends - time.perf_counter()
        choice = self.choose_again(plan.speed, left) if plan.speed else None
        if choice is not None:
            if self.announce is not None:
                self.announce(choice)
            raise _OtherSpeedError(choice)

    # -- the mixture -------------------------------------------------------------

    def _mixed(self, models: dict[str, Any]) -> object:
        """Mix the models by weights learned on the held-out text."""
        text, known = self.text, self._known_weights
        weights = np.full(len(models), 1 / len(models))
        if text.held_out is not None:
            self.report("weights", "")
            self.scores = [
                Scores.of(name, model, text) for name, model in models.items()
            ]
            if known:
                weights = np.array([known[name] for name in models])
            else:
                weights = self._learned_weights()
            self.scores.append(Scores.mixed(self.scores, weights))
        if not known:
            self.set(members=tuple(models), weights=tuple(weights.tolist()))
        models = {name: m for (name, m), w in zip(models.items(), weights) if w}
        if len(models) == 1:
            [model] = models.values()
            return model
        members = [(name, FrozenEstimator(model)) for name, model in models.items()]
        mixture = MixtureLM(members, weights[weights > 0], n_words=text.n_words)
        n_columns = max(model.n_features_in_ for model in models.values())
        # It learns nothing more: any windows do.
        X = np.full((1, n_columns), text.boundary or 0, np.int32)
        return mixture.fit(X, X[:, 0])

    @property
    def _known_weights(self) -> dict[str, float]:
        """The weights of a fit that this one repeats; empty of a new one."""
        if self.budget is not None:
            return {}
        return dict(zip(self.recipe.members, self.recipe.weights))

    def _learned_weights(self) -> NDArray[np.float64]:
        """Learn the weights of the models, 0 of those that do not pay."""
        probs = np.exp([scores.log_prob for scores in self.scores]).T
        [weights] = fit_mixture_weights(probs).weights
        kept = weights >= LEAST_WEIGHT
        weights[~kept] = 0.0
        [weights[kept]] = fit_mixture_weights(probs[:, kept]).weights
        return weights


def _mapped_arrays(model: object) -> list[NDArray[Any]]:
    """Return the arrays of n-grams of words or classes, which may be on disk."""
    trie: Any = getattr(getattr(model, "class_model_", model), "trie_", None)
    return [] if trie is None else trie.every_array


def member_of(model: object, kind: type[Member]) -> Member | None:
    """Return the first member of a fitted model of the class `kind`, or None."""
    for member in getattr(model, "estimators_", [model]):
        inner = member.estimator if isinstance(member, FrozenEstimator) else member
        if isinstance(inner, kind):
            return inner
    return None


def network_of(model: object) -> NeuralLM | None:
    """Return the network of a fitted model, or None."""
    return member_of(model, NeuralLM)
