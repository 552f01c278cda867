"""Hyper-parameters of networks that do not go together, and what to set instead."""

from __future__ import annotations

from typing import Any

import numpy as np

from nplm.base.checks import plain
from nplm.models.neural.network.outputs.base import Output
from nplm.training.parallel.threads import n_threads

__all__ = ["check_network", "check_neural", "check_shared"]


def check_network(lm: Any) -> None:
    """Raise where parameters that all networks have do not go together."""
    if lm.n_distant and lm.order is None:
        raise ValueError(
            f"n_distant={lm.n_distant} averages the features of so many words "
            "beside those of a window: set order to the window's words plus one."
        )
    least = np.finfo("float64" if lm.precision == "float64" else "float32").tiny
    if lm.epsilon < least:
        raise ValueError(
            f"epsilon={lm.epsilon!r} is 0 in {lm.precision}, and Adam would "
            f"divide by it: set it to {least:.0e} at least, as 1e-8."
        )
    lm._solver().check(plain(lm.batch_size))
    output = lm._output()
    is_shared = lm.parallel == "rows" and n_threads(lm.n_jobs) > 1
    if is_shared and not output.rows_are_shared:
        raise ValueError(
            f"n_jobs={lm.n_jobs} with parallel='rows' shares out the output units of a "
            f"full softmax, and {_unlike_softmax(lm, output)}: set parallel='async', "
            "or n_jobs=1."
        )
    if not output.rounds and lm.precision == "bfloat16":
        raise ValueError(
            "precision='bfloat16' rounds the products of a full softmax, and "
            f"{_unlike_softmax(lm, output)}: set precision='float32'."
        )


def check_neural(lm: Any) -> None:
    """Raise where those that `NeuralLM` has beside them do not go together."""
    if lm.tied and lm.output != "softmax":
        raise ValueError(
            f"tied=True makes the words' features the output weights of a softmax, "
            f"and output={lm.output!r} has no row a word: drop one of both."
        )
    for name, output in (("word_classes", "classes"), ("word_tree", "tree")):
        if getattr(lm, name) is not None and lm.output != output:
            raise ValueError(
                f"{name} is of output={output!r}, and output={lm.output!r} has "
                f"no use for it: set output={output!r}, or {name}=None."
            )
    if lm.n_hidden == 0 and not lm.direct:
        raise ValueError(
            "n_hidden=0 without direct connections leaves no path from the "
            "context to the output units; set direct=True or n_hidden above 0."
        )
    if lm.tied and lm.parallel != "rows" and lm.loss == "exact":
        raise ValueError(
            f"tied=True with parallel={lm.parallel!r}: an exact update "
            "changes all features; set parallel='rows', tied=False, or a loss that "
            "draws words."
        )
    if lm.loss in ("importance", "nce") and lm.output != "softmax":
        raise ValueError(
            f"loss={lm.loss!r} draws words instead of a softmax over all, and "
            f"output={lm.output!r} has no such softmax: drop one of both."
        )
    if lm.train_embeddings:
        return
    if lm.embeddings is None:
        raise ValueError(
            "train_embeddings=False without embeddings would leave features as "
            "they are drawn; give embeddings."
        )
    if lm.tied or lm.word_features is not None:
        name = "tied" if lm.tied else "word_features"
        raise ValueError(
            f"train_embeddings=False leaves features as they are, and {name} has "
            "them learned: drop one of both."
        )


def check_shared(lm: Any) -> None:
    """Raise unless the output units of `lm` can be spread over processes."""
    output = lm._output()
    if output.rows_are_shared and not output.rows_are_features:
        return
    # Those that stand in the way, and what comes to when the others are changed.
    wanted = {"output": "softmax", "tied": False, "loss": "exact"}
    given = lm.get_params(deep=False)
    others = [name for name in wanted if given.get(name, wanted[name]) != wanted[name]]
    has = ", ".join(f"{name}={given[name]!r}" for name in others)
    asked = ", ".join(f"{name}={wanted[name]!r}" for name in others)
    change = f", or call set_params({asked}), as NeuralLM.from_paper does"
    has_choice = wanted.keys() <= given.keys()  # EnergyLM has none of it
    raise ValueError(
        "processes share the output units of a full softmax that has weights of its "
        f"own (section 3.2), and this {type(lm).__name__} has "
        f"{has if has_choice else 'none'}: fit it in one process"
        f"{change if has_choice else ''}."
    )


def _unlike_softmax(lm: Any, output: Output) -> str:
    """Say which parameter makes its output no full softmax."""
    loss = lm._loss()
    if loss != "exact":
        return f"loss={loss!r} trains the rows of few words"
    return f"output={output.name!r} has other units"
