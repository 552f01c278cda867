"""Say what a fit of `AutoLM` will do, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from nplm.base.progress import BAR, Log, Stages, Surface, surface
from nplm.models.auto.choosing import MIN_TOKENS
from nplm.models.auto.fitting import Budget, Choice, Report
from nplm.models.auto.texts import CACHE_WORDS, AutoText

# The share by which a cache over documents has to be better for a hint.
HINT_SHARE = 0.02


def clock(seconds: float) -> str:
    """Return a time as in "2:05"."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"


def described(
    choice: Choice, text: AutoText, budget: Budget | None, fixed: Collection[str]
) -> str:
    """Return three lines: the text, the models, the time and the memory.

    - `budget`: None if a fit is repeated
    - `fixed`: the choices that were fixed by hand, for which no reason is said
    """
    gives_reason = budget is not None and "members" not in fixed
    recipe, n = choice.recipe, len(text.train.lengths)
    kind = "one text" if text.is_running else f"{n:,} document{'s' * (n != 1)}"
    names = {
        "ngrams": f"Kneser-Ney of order {recipe.ngram_order}",
        "classes": f"n-grams of {recipe.n_classes} classes",
        "cache": f"a cache of the last {CACHE_WORDS} words", "network": "a network",
    }  # fmt: skip
    models = ", ".join(names[name] for name in recipe.members)
    if "network" in recipe.members:
        network, epochs = recipe.network, recipe.planned / text.n_tokens
        models += (
            f" of {network['n_hidden']} units and {network['embedding_dim']} features, "
            f"which passes over the text {epochs:.2g} times"
        )
        if choice.speed:  # it was measured
            models += f", at {choice.speed:,.0f} tokens a second"
        if "epochs" not in fixed and 0 < 0.99 * choice.most <= recipe.planned:
            models += "; more passes teach it no more"
    elif gives_reason and text.n_tokens < MIN_TOKENS:
        models += f"; a network needs {MIN_TOKENS:,} tokens"
    elif gives_reason:
        models += "; there is no time for a network"
    time = "as of the fit that this one repeats"
    if budget is not None:
        left = clock(max(0.0, budget.left))
        time = f"{clock(budget.seconds)} minutes, of which {left} are left"
        if budget.spent_before:
            time += f", as the fit was killed after {clock(budget.spent_before)}"
    if choice.n_bytes:  # of a recipe it was not computed
        time += f"; about {choice.n_bytes / 1e9:.1f} GB of memory"
    types = "subwords" if recipe.tokens == "subwords" else "types"
    if recipe.max_words is not None:
        types += " (rarer ones are <unk>)"
    return (
        f"Text: {text.n_tokens:,} tokens of {text.n_words:,} {types}, {kind}; "
        f"{text.n_held_out:,} tokens are held out.\nModels: {models}.\nTime: {time}."
    )


def hint(order_gain: float) -> str | None:
    """Return a hint at running text, if it may be better than documents."""
    if order_gain < HINT_SHARE:
        return None
    return (
        f"Hint: a cache that goes on across documents lowers the held-out perplexity "
        f"by {order_gain:.0%}, as in one text in its order: running text "
        "(running_text=True, or --text running) may be better."
    )


class Shown(Surface):
    """Shows the stages of a fit on a surface, with the time left of its budget."""

    def __init__(self, on: Surface, budget: Budget) -> None:
        self._surface, self._budget, self._text = on, budget, ""

    def __call__(self, stage: str, note: str) -> None:
        """Show a stage, with a note."""
        self._text = ", ".join(filter(None, (f"AutoLM: {stage}", note)))
        self.show(None, "")

    def show(self, share: float | None, text: str) -> None:
        """Show the time left, also when a model of the fit shows its own progress."""
        if not self._text:  # no stage has begun: a fit that measures its speed
            return
        left = max(0.0, self._budget.left)
        share = min(1 - left / self._budget.seconds, 1.0)
        self._surface.show(share, f"{self._text}, {clock(left)} left")

    def line(self, text: str) -> None:
        if self._text:
            self._surface.line(text)


@contextmanager
def shown(verbose: int, budget: Budget) -> Iterator[Report]:
    """Show progress on a surface that `verbose` asks for."""
    if not verbose:
        yield lambda stage, note: None
        return
    on = surface() if verbose >= BAR else Log(20)
    all_stages = Shown(on, budget)
    try:
        with Stages(all_stages).enclosing():
            yield all_stages
    finally:
        on.close("")
