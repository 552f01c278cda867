"""Say what a fit of `AutoLM` will do, and why."""

from __future__ import annotations

from nplm.models.auto.choosing import MIN_TOKENS, Choice
from nplm.models.auto.fitting import Budget
from nplm.models.auto.texts import AutoText

__all__ = ["clock", "described"]


def clock(seconds: float) -> str:
    """Return a time as in "2:05"."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"


def described(
    choice: Choice, text: AutoText, budget: Budget, *, gives_reason: bool
) -> list[str]:
    """Return three lines: the text, the models, the time and the memory.

    - `gives_reason`: whether to say why there is no network
    """
    recipe = choice.recipe
    kind = (
        "one text" if recipe.running_text else f"{len(text.train.lengths):,} documents"
    )
    lines = [
        f"Text: {text.n_tokens:,} tokens of {text.n_words:,} types, {kind}; "
        f"{text.n_held_out:,} tokens are held out."
    ]
    names = {
        "ngrams": f"Kneser-Ney of order {recipe.ngram_order}",
        "classes": f"n-grams of {recipe.n_classes} classes",
        "network": "a network",
    }
    models = f"Models: {_listed([names[name] for name in recipe.members])}"
    if "network" in recipe.members:
        network, epochs = recipe.network, recipe.planned / text.n_tokens
        models += (
            f" of {network['n_hidden']} units and {network['embedding_dim']} features, "
            f"which passes over the text {epochs:.2g} times"
        )
        if choice.speed:  # it was measured
            models += f", at {choice.speed:,.0f} tokens a second"
        if 0 < 0.99 * choice.most <= recipe.planned:
            models += "; more passes teach it no more"
    elif not gives_reason:
        pass
    elif text.n_tokens < MIN_TOKENS:
        models += f"; a network needs {MIN_TOKENS:,} tokens"
    else:
        models += "; there is no time for a network"
    left = clock(max(0.0, budget.left))
    time = f"Time: {clock(budget.seconds)} minutes, of which {left} are left"
    if choice.n_bytes:  # of a recipe it was not computed
        time += f"; about {choice.n_bytes / 1e9:.1f} GB of memory"
    return [*lines, f"{models}.", f"{time}."]


def _listed(names: list[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
