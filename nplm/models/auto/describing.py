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


def described(choice: Choice, text: AutoText, budget: Budget) -> list[str]:
    """Return three lines: the text, the models, the time and the memory."""
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
            f"which passes over the text {epochs:.2g} times, at {choice.speed:,.0f} "
            "tokens a second"
        )
        if recipe.planned >= 0.99 * choice.most:
            models += "; more passes teach it no more"
    elif text.n_tokens < MIN_TOKENS:
        models += f"; a network needs {MIN_TOKENS:,} tokens"
    else:
        models += "; there is no time for a network"
    memory = choice.n_bytes / 1e9
    left = clock(max(0.0, budget.left))
    time = f"Time: {clock(budget.seconds)} minutes, of which {left} are left"
    return [*lines, f"{models}.", f"{time}; about {memory:.1f} GB of memory."]


def _listed(names: list[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
