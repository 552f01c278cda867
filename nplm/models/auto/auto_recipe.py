"""AutoRecipe: every choice of a fit of `AutoLM`, and what it came to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from nplm.models.training.plan import Correction, Plan

# The cache of `AutoLM(adapt=True)`, and those that may be chosen by hand.
CHOSEN = ("ngrams", "classes", "network")
MEMBERS = (*CHOSEN, "cache")
# Parameters of the network that a recipe needs.
REQUIRED = {"n_hidden", "embedding_dim", "learning_rate_init"}


@dataclass(frozen=True)
class AutoRecipe:
    """Every choice of a fit of `AutoLM`, and what it came to.

    A fit with this recipe, the same text and number of threads makes the same bits on
    the same machine, and reads no clock.

    - `minutes`: the time that it was made for
    - `seed`: of the network
    - `running_text`: whether the documents are one text in its order
    - `tokens`, `max_words`: "words" or "subwords", and how many at most
    - `n_tokens`: of the text, without what is held out; 0 if unknown
    - `continues`: whether the network of another model is trained further
    - `held_out`: number of tokens that are held out of the text or of the given
      held-out text
    - `members`: names of the models: "ngrams", "classes", "cache", "network"
    - `ngram_order`, `n_classes`: of the n-grams, and of those of classes
    - `spelling`: whether words of similar spelling share features in the network
    - `network`: parameters of the `NeuralLM`
    - `planned`: tokens that the network was to see
    - `corrections`: corrections of this number: the tokens seen, and the new number
    - `last`: the tokens seen, if the fit was stopped before
    - `kept_epoch`: the epoch whose weights the network has; 0 without held-out text
    - `weights`: of the members in the mixture
    """

    minutes: float
    seed: int = 0
    running_text: bool = False
    tokens: str = "words"
    max_words: int | None = None
    n_tokens: int = 0
    continues: bool = False
    held_out: int = 0
    members: tuple[str, ...] = ("ngrams",)
    ngram_order: int = 5
    n_classes: int = 0
    spelling: bool = False
    network: dict[str, Any] = field(default_factory=dict)
    planned: int = 0
    corrections: tuple[Correction, ...] = ()
    last: int | None = None
    kept_epoch: int = 0
    weights: tuple[float, ...] = ()

    def plan(self) -> Plan:
        """Return the plan of the network, which has no clock."""
        return Plan(self.planned, self.corrections, self.last)

    def as_dict(self) -> dict[str, object]:
        """Return the recipe for JSON."""
        return asdict(self)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return the recipe that `as_dict` describes, or raise ValueError.

        The values are untrusted, because a file may come from anywhere.
        """
        unknown = values.keys() - {f.name for f in fields(cls)}
        if unknown or "minutes" not in values:
            wrong = f"has {min(unknown)!r}" if unknown else "has no minutes"
            raise ValueError(f"a recipe {wrong}, which this nplm does not support.")
        try:
            checked = dict(values)
            for name in ("members", "weights"):
                checked[name] = tuple(values.get(name, cls.__dict__[name]))
            checked["corrections"] = tuple(
                (done, n) for done, n in values.get("corrections", ())
            )
            recipe = cls(**checked)
            is_valid = recipe._is_valid()
        except (TypeError, ValueError):
            is_valid = False
        if not is_valid:
            raise ValueError(f"{dict(values)!r:.200} is not a recipe of AutoLM.")
        return recipe

    def _is_valid(self) -> bool:
        steps = [n for pair in self.corrections for n in pair]
        counts = [
            self.seed, self.n_tokens, self.held_out, self.ngram_order, self.n_classes,
            self.planned, self.kept_epoch, *steps,
        ]  # fmt: skip
        counts += [n for n in (self.last, self.max_words) if n is not None]
        numbers, n = (self.minutes, *self.weights), len(self.members)
        return (
            all(type(n) is int and n >= 0 for n in counts)
            and all(type(x) in (int, float) and x >= 0 for x in numbers)
            and type(self.network) is dict
            and all(type(name) is str for name in self.network)
            and ("network" not in self.members or self.network.keys() >= REQUIRED)
            and 0 < n == len(set(self.members) & set(MEMBERS))
            and (not self.weights or n == len(self.weights))
            and (not self.weights or math.isclose(sum(self.weights), 1.0))
            and self.tokens in ("words", "subwords")
            and self.ngram_order > 0
            and {type(self.spelling), type(self.running_text), type(self.continues)}
            == {bool}
        )
