"""Choose the recipe of a fit of `AutoLM` from its text, time and machine."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone

from nplm.base.exceptions import DivergenceError, ParameterMessage, in_python
from nplm.models.auto.auto_recipe import CHOSEN, AutoRecipe
from nplm.models.auto.fitting import AutoFit, Choice, Scores
from nplm.models.auto.memory import STATES
from nplm.models.auto.rules import (
    batch_size_for,
    has_rare_words,
    most_epochs,
    nearest_row,
    network_of_row,
)
from nplm.models.auto.texts import AutoText
from nplm.models.neural.fitted_network import trained_network
from nplm.models.neural.network_lm import FitRequest
from nplm.models.neural.network_parameters import (
    MIN_WORDS_PER_NOISE_SAMPLE,
    OPTIONS,
    recipe_of,
)
from nplm.models.neural.neural_lm import NeuralLM
from nplm.models.neural.options import outputs
from nplm.models.neural.options.base import Option
from nplm.models.neural.presets import ROWS, Row, dropout_for
from nplm.models.training.plan import Probe
from nplm.text.documents import Documents

# Seconds of n-grams on the machine of the rules: a token, and a word and a class in
# the search for classes.
NGRAM_SECONDS, CLASS_SECONDS = 1e-6, 1.1e-6
CLASSES = (500, 200, 100)
# Shares of the time: for classes, at most; for each of two measurements.
CLASS_SHARE, PROBE_SHARE = 0.05, 0.01
PROBE_TOKENS, PROBE_HELD_OUT, LEAST_PROBE = 50_000, 500, 0.2
PROBE_SCORINGS = 3
# A network is chosen again if its true speed is this many times the measured one, or
# less by as much.
SAME_SPEED = 1.5
# What a network needs: tokens, and seconds.
MIN_TOKENS, MIN_SECONDS = 2000, 3.0
# Seconds of a word: to make its features from counts and from spelling, also for a
# measurement. And the share of the time left to make a network for a second one.
WORD_SECONDS, BUILDING_SHARE = 1e-4, 0.05
# Seconds to build and save a model, those of one of its parameters, and n-grams of a
# token.
SAVING_SECONDS, PARAMETER_SECONDS, NGRAMS_A_TOKEN = 0.3, 2e-8, 3
# Windows of a run, of which a network that remembers needs more.
SHORT_RUN = 4
# The learning rate of a network that is trained further, as a share of its own.
CONTINUED_RATE = 0.5
MAX_ORDER = 5
# Members in the order of their fits: an interrupt of the network leaves the others.
ORDER = ("ngrams", "classes", "cache", "network")
# The choices beside parameters of a network, and their values.
FIXED = {
    "members": f"some of {', '.join(CHOSEN)}", "ngram_order": "an int above 0",
    "n_classes": "0, or an int of 2 or more", "spelling": "True or False",
    "epochs": "a number above 0",
}  # fmt: skip
# Parameters of networks that are those of `AutoLM` itself, or follow from the time and
# other choices.
DECIDED = (
    "n_words", "n_jobs", "random_state", "verbose", "max_iter", "warm_start",
    "validation_fraction", "solver__learning_rate", "features__word_features",
)  # fmt: skip


def checked_settings(settings: Mapping[str, object]) -> dict[str, object]:
    """Return settings with values as in JSON, which checkpoints hold.

    Raises ValueError if they name no choice, or one that is not possible.
    """
    settings = {
        name: value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value
        for name, value in _spelled_out(settings).items()
    }
    choices = {name: value for name, value in settings.items() if name in FIXED}
    network = {name: v for name, v in settings.items() if name not in FIXED}
    parameters = changed(network_of_row(ROWS[0]), network)
    unknown = {name.split("__")[0] for name in network} - NeuralLM().get_params().keys()
    unknown |= network.keys() & set(DECIDED)
    if unknown:
        message = ParameterMessage(
            "{settings:settings} has {0!r}: it may fix {1}, and any parameter of "
            "NeuralLM but {2}.", min(unknown), ", ".join(FIXED), ", ".join(DECIDED),
        )  # fmt: skip
        raise ValueError(message)
    try:
        NeuralLM().set_params(**parameters).check_settings()
    except ValueError as error:
        raise ValueError(ParameterMessage("{settings:settings}: {0}", error)) from None
    for name, value in choices.items():
        # A number of epochs is as valid as one of minutes, but for 0.
        field = "minutes" if name == "epochs" else name
        try:
            known = {"minutes": 1.0, "network": parameters}
            recipe = AutoRecipe.of(known | {field: value})
            is_valid = set(recipe.members) <= set(CHOSEN)
            is_valid &= 0 < recipe.minutes < math.inf
            is_valid &= recipe.n_classes != 1  # that of the boundary
        except ValueError:
            is_valid = False
        if not is_valid:
            # An option of the command line has the members.
            what = f"{{settings:settings}}: {name}"
            if name == "members":
                what = "{members:settings: members}"
            what += " must be {0}, got {1!r}."
            raise ValueError(ParameterMessage(what, FIXED[name], value))
    return settings


def check_continued(
    network: NeuralLM, recipe: AutoRecipe, settings: Mapping[str, object]
) -> None:
    """Raise ValueError if settings cannot change when a network is trained further.

    - `recipe`: of the fit of the network
    """
    members: Any = settings.get("members", CHOSEN)
    if "network" not in members:
        what = "{members:settings: members} must have the network of {before:before}, "
        raise ValueError(ParameterMessage(what + "got {0!r}.", list(members)))
    kept = changed(continued(recipe), settings)
    kept = {name: value for name, value in kept.items() if name not in FIXED}
    asked = clone(network).set_params(**kept)
    order = network.order_ if asked.order is None else asked.order
    new, trained = recipe_of(asked, network.n_words_, order), trained_network(network)
    was_spelled = trained.architecture.features.word_features is not None
    spelling = settings.get("spelling", was_spelled)
    if asked.precision == "auto":
        new = replace(new, precision=trained.precision_for("auto"))
    try:
        if spelling != was_spelled:
            raise outputs.changed(f"spelling={spelling!r} is", f" ({was_spelled})")
        new.check_continues(trained)
    except ValueError as error:
        [problem] = error.args
        if isinstance(problem, ParameterMessage):  # without advice for Python
            problem = problem.in_words(in_python)
        message = ParameterMessage(
            "{settings:settings:} {0}: leave it out, or train another model without "
            "{before:before}.", problem.rstrip("."),
        )  # fmt: skip
        raise ValueError(message) from None


def _spelled_out(settings: Mapping[str, object]) -> dict[str, object]:
    """Return settings with the name and parameters of options, in place of objects."""
    spelled: dict[str, object] = {}
    for name, value in settings.items():
        spelled[name] = value
        for kind, of in OPTIONS.get(name, {}).items():
            if not isinstance(value, Option) or type(value) is not of:
                continue
            spelled[name], defaults = kind, of().get_params(deep=False)
            spelled |= {
                f"{name}__{inner}": given
                for inner, given in value.get_params(deep=False).items()
                if f"{name}__{inner}" not in DECIDED
                or repr(given) != repr(defaults[inner])
            }
    return spelled


def changed(
    network: Mapping[str, object], more: Mapping[str, object]
) -> dict[str, Any]:
    """Return parameters of a network with others.

    Another loss, solver or output does not have the parameters of the one before.
    """
    others = {name for name in more if more[name] != network.get(name)}
    kept = {
        name: value
        for name, value in network.items()
        if "__" not in name or name.split("__")[0] not in others
    }
    return kept | dict(more)


def choose(
    fit: AutoFit,
    settings: Mapping[str, Any],
    *,
    adapt: bool,
    spell: Callable[[], csr_array | None],
) -> Choice:
    """Choose the recipe of a fit; measures the speed of networks.

    - `fit`: has the text, a budget, and a recipe with what is known
    - `settings`: choices that are fixed: fields of the recipe, parameters of `NeuralLM`
    - `adapt`: whether a cache is mixed in
    - `spell`: returns features of the words' spelling, or None
    """
    text, budget = fit.text, fit.budget
    assert budget is not None
    fixed = {name: settings[name] for name in FIXED if name in settings}
    seconds = NGRAM_SECONDS * text.n_tokens
    _check_time("n-grams", seconds, fit)
    # Of a processor without other work.
    seconds_left = budget.left / budget.slowness
    n_classes = fixed.get("n_classes", _n_classes(text, seconds_left))
    can_learn = text.n_tokens >= MIN_TOKENS and text.held_out is not None
    members = fixed.get("members")
    if members is None:
        members = ["ngrams"]
        members += ["classes"] if n_classes and can_learn else []
        needed = seconds + MIN_SECONDS + WORD_SECONDS * text.n_words
        has_time = seconds_left > needed
        # A network before is trained further, or it is an error.
        if fit.before is not None or (can_learn and has_time):
            members.append("network")
    if "network" in members and text.held_out is None:
        advice = "leave the network out" if fit.before is None else "held-out text"
        raise ValueError(
            f"a network needs {MIN_TOKENS:,} tokens, or held-out text, and there are "
            f"{text.n_tokens:,} tokens: give more text, or {advice}."
        )
    if "network" in members:
        _check_time("a network and n-grams", seconds + MIN_SECONDS / 2, fit)
    if "classes" in members and not n_classes:
        n_classes = max(2, min(CLASSES[-1], text.n_words // 2))
    if adapt and text.held_out is not None:  # which has the weight of the cache
        members = [*members, "cache"]
    has_rare = fit.recipe.tokens == "words" and has_rare_words(
        text.n_tokens, text.n_words
    )
    if "network" in members and fixed.get("spelling", has_rare):
        fit.word_features = spell()
    network = {name: v for name, v in settings.items() if name not in fixed}
    order = min(MAX_ORDER, text.n_columns + 1) if text.n_columns else MAX_ORDER
    fit.set(
        members=tuple(sorted(members, key=ORDER.index)),
        ngram_order=fixed.get("ngram_order", order),
        n_classes=n_classes if "classes" in members else 0,
        spelling=fit.word_features is not None,
    )  # fmt: skip
    choice = None
    if "network" in members:
        choice = NetworkChooser(fit, network).choose(fixed)
    if choice is None:
        members = tuple(name for name in fit.recipe.members if name != "network")
        fit.set(members=members, spelling=False)
        choice = Choice(fit.recipe)
    n_bytes = fit.n_bytes(choice.recipe)
    if fit.memory is not None and n_bytes > fit.memory:
        message = ParameterMessage(
            "{memory:memory} of {0:.3g} GB is too small: a fit of {1:,} tokens of "
            "{2:,} types takes about {3:.3g} GB; give more memory, or less text.",
            fit.memory / 1e9, text.n_tokens, text.n_words, n_bytes / 1e9,
        )  # fmt: skip
        raise ValueError(message)
    return replace(choice, n_bytes=n_bytes)


def _check_time(what: str, seconds: float, fit: AutoFit) -> None:
    """Raise ValueError if less time than this is left."""
    budget = fit.budget
    assert budget is not None
    if seconds > budget.left:
        needed = (1.5 * (budget.seconds - budget.left) + 2 * seconds) / 60
        message = ParameterMessage(
            "{minutes} is too short: {0} of {1:,} tokens take {2:.2g} minutes with "
            "reading them; give more minutes, or less text.", what,
            fit.text.n_tokens, needed, minutes=float(f"{budget.seconds / 60:.3g}"),
        )  # fmt: skip
        raise ValueError(message)


class NetworkChooser:
    """Chooses the network of a fit from the measured ones that fit in the memory.

    - `settings`: parameters of the network that are fixed
    """

    def __init__(self, fit: AutoFit, settings: dict[str, Any]) -> None:
        self.fit, self.settings, self.rows = fit, settings, list(ROWS)
        if fit.memory is not None:
            self.rows = [row for row in ROWS if self._n_bytes(row) <= fit.memory]

    def _n_bytes(self, row: Row) -> int:
        network = changed(row.network, self.settings)
        return self.fit.n_bytes(replace(self.fit.recipe, network=network))

    def choose(self, fixed: Mapping[str, Any]) -> Choice | None:
        """Choose the network, by two measurements at most.

        Returns None if there is no memory or no time for one.
        """
        fit, text, recipe, budget = (
            self.fit, self.fit.text, self.fit.recipe, self.fit.budget,
        )  # fmt: skip
        assert budget is not None
        is_required = "members" in fixed or fit.before is not None
        before = NGRAM_SECONDS * text.n_tokens if "ngrams" in recipe.members else 0.0
        if fit.known_classes(recipe.n_classes) is None:
            before += CLASS_SECONDS * text.n_words * recipe.n_classes
        before *= budget.slowness
        minutes = (budget.left - before) / 60
        if not self.rows:
            assert fit.memory is not None
            if is_required:
                message = ParameterMessage(
                    "{memory:memory} of {0:.3g} GB is too small for a network of {1:,} "
                    "words: give more, or leave the network out.", fit.memory / 1e9,
                    text.n_words,
                )  # fmt: skip
                raise ValueError(message)
            return None
        row = nearest_row(text.n_tokens, minutes, self.rows)
        building = math.inf
        for is_last in (False, True):
            parameters = self._parameters(row)
            seconds_to_build, speed, scoring = self._measured(
                parameters, PROBE_SHARE * budget.seconds
            )
            building = min(building, seconds_to_build)
            scoring_seconds = text.n_held_out / scoring
            n_parameters = STATES * fit.n_features * parameters["embedding_dim"]
            if "ngrams" in recipe.members:
                n_parameters += NGRAMS_A_TOKEN * text.n_tokens
            reserved = SAVING_SECONDS + PARAMETER_SECONDS * n_parameters
            reserved *= budget.slowness
            after = building + reserved + scoring_seconds
            seconds = budget.left - before - after
            further = self._row_after(row, minutes, speed)
            share = BUILDING_SHARE if seconds > 0 else 1 - BUILDING_SHARE
            is_known = is_last or (further is row and seconds > 0)
            if is_known or building > share * (budget.left - before):
                break
            row = further
        if seconds <= 0:
            if is_required:
                _check_time("a network and n-grams", before + after, fit)
            return None
        most = fixed.get("epochs", most_epochs(text.n_tokens))
        choice = Choice(
            recipe, scoring_seconds, reserved, math.ceil(most * text.n_tokens), speed
        )
        fit.choose_again = partial(self._again, row)
        return self._with_row(choice, row, seconds)

    def _again(self, row: Row, speed: float, seconds: float) -> Choice | None:
        """Choose again if the network trains at another speed than the measured one.

        Returns None if that changes nothing.

        - `speed`: words a second in training
        - `seconds`: for the network, from now on
        """
        choice = self.fit.choice
        ratio = speed / choice.speed
        if 1 / SAME_SPEED < ratio < SAME_SPEED:
            return None
        other = self._row_after(row, seconds / 60, speed)
        ratio *= other.speed / row.speed
        choice = replace(
            choice, speed=ratio * choice.speed,
            scoring_seconds=choice.scoring_seconds / ratio,
        )  # fmt: skip
        choice = self._with_row(choice, other, seconds)
        if choice.recipe.network == self.fit.recipe.network:
            return None
        self.fit.choose_again = partial(self._again, other)
        return choice

    def _row_after(self, row: Row, minutes: float, speed: float) -> Row:
        """Return the row for some minutes on a machine where `row` has a speed."""
        if "n_hidden" in self.settings:
            return row
        on_rows = minutes * speed / row.speed  # on the machine of the rows
        return nearest_row(self.fit.text.n_tokens, on_rows, self.rows)

    def _with_row(self, choice: Choice, row: Row, seconds: float) -> Choice:
        """Choose the network of a row, whose speed `choice` has, and plan its steps."""
        n_tokens = self.fit.text.n_tokens
        a_token = 1 / choice.speed + choice.scoring_seconds / n_tokens
        planned = max(1, round(min(seconds / a_token, choice.most)))
        dropout = dropout_for(n_tokens, planned / n_tokens)
        network = {"dropout": dropout} | self._parameters(row)
        recipe = replace(choice.recipe, network=network, planned=planned)
        return replace(choice, recipe=recipe)

    def _parameters(self, row: Row) -> dict[str, Any]:
        """Return the parameters of a row for a text that may be small, and settings."""
        text, parameters = self.fit.text, network_of_row(row)
        parameters["batch_size"] = batch_size_for(text.n_tokens, row.batch_size)
        has_loss = any(name.startswith("loss") for name in self.settings)
        if not has_loss and text.n_words <= MIN_WORDS_PER_NOISE_SAMPLE * row.n_noise:
            parameters["loss"] = "exact"
            del parameters["loss__n_noise"]
        if text.n_columns and text.n_tokens < SHORT_RUN * len(text.train.lengths):
            # A memory would begin anew in most windows.
            parameters |= {"order": text.n_columns + 1, "n_memory": 0}
        return changed(parameters, self.settings)

    def _measured(
        self, parameters: Mapping[str, object], seconds: float
    ) -> tuple[float, float, float]:
        """Measure a network.

        Returns the seconds to make it, and the words a second of training, and of the
        fastest of several scorings, because other programs may run meanwhile.
        """
        fit, text = self.fit, self.fit.text
        assert text.held_out is not None
        piece = replace(
            text, train=_first(text.train, PROBE_TOKENS),
            held_out=_first(text.held_out, PROBE_HELD_OUT),
        )  # fmt: skip
        network = fit.new_network(parameters)
        texts = replace(fit, text=piece).texts_of(network)
        request, now = FitRequest.of(network, *texts), time.perf_counter()
        probe = Probe(max(LEAST_PROBE, seconds))
        try:
            request.fit(plan=probe)
        except DivergenceError:
            if probe.speed:
                return 0.0, probe.speed, probe.speed
            raise
        history = network.history_
        building = time.perf_counter() - now
        building -= sum(sum(history[name]) for name in ("seconds", "scoring_seconds"))
        scored = [Scores.of("network", network, piece) for _ in range(PROBE_SCORINGS)]
        scoring = piece.n_held_out / max(min(score.seconds for score in scored), 1e-6)
        return building, probe.speed, scoring


def continued(recipe: AutoRecipe) -> dict[str, Any]:
    """Return the settings of a fit that trains the network of another further.

    Its n-grams stay as they were chosen.
    """
    kept = {name: v for name, v in recipe.network.items() if name != "dropout"}
    if kept:
        kept["learning_rate_init"] *= CONTINUED_RATE
    if "ngrams" in recipe.members:
        kept["ngram_order"] = recipe.ngram_order
    if "classes" in recipe.members:
        kept["n_classes"] = recipe.n_classes
    return kept


def _first(documents: Documents, n_tokens: int) -> Documents:
    """Return the first documents, with about so many tokens."""
    ends = np.cumsum(documents.lengths)
    lengths = documents.lengths - np.clip(ends - n_tokens, 0, documents.lengths)
    return Documents(documents.ids[:n_tokens], lengths[: 1 + (ends < n_tokens).sum()])


def _n_classes(text: AutoText, seconds: float) -> int:
    """Return the number of classes for which there is time, or 0."""
    for n in CLASSES:
        takes = CLASS_SECONDS * n * text.n_words
        if takes <= CLASS_SHARE * seconds and text.n_words > 4 * n:
            return n
    return 0
