"""Parts of the docstrings that the network models share.

A class that is `documented` has them in the place of ``[[name]]``, so that its own
docstring keeps the order of its parameters, and its defaults for ``default=?``.
"""

from __future__ import annotations

import re
from inspect import cleandoc, signature
from typing import TypeVar

__all__ = ["documented"]

Model = TypeVar("Model")

SHARED = {
    "n_distant": """
n_distant : int, default=0
    Words, nearest first, whose features are averaged into more inputs: each
    average has learned weights by position (``P_``), which begin with half-lives
    of 2, 8, 32, ... words. X then needs so many columns, and `order` must be set.
    0 is the paper's network.
""",
    "loss": """
    What training follows. "exact" is the paper's log-likelihood, of all words.
    "importance" estimates its gradient from `n_samples` drawn words, which all
    examples of a mini-batch share (section 5.1; Bengio and Senecal, 2003): many
    times as fast where the vocabulary is large. "nce", noise-contrastive
    estimation (Mnih and Teh, 2012), learns to tell next words from drawn ones;
    scores then come to be log-probabilities by themselves, and
    ``log_prob(X, y, normalize=False)`` need not look at other words. All are the
    same network: its probabilities are of all words, and held-out losses exact.
""",
    "sampling": """
n_samples : int, default=?
    Words that are drawn for each mini-batch, none of them twice, or all words
    where there are no more; the noise words of an example for "nce". Not for
    "exact".
proposal : {"unigram"} or array-like of float, shape (n_words,), default="unigram"
    What words are drawn from: how often each is a next word, plus one; or a
    positive number for each word, in proportion.
proposal_power : float, default=1
    Power that `proposal` is raised to: 0 is uniform, and below 1 rare words are
    drawn more often than they occur.
min_effective_samples : float, default=0
    Of "importance": where the effective sample size is less, in the mean over
    some mini-batches, `n_samples` is doubled, up to 16 times. 0 leaves it as
    it is. ``history_`` tells both. Each `fit` and `partial_fit` begins
    with `n_samples` again, and with the unigrams of its own ``y``.
""",
    "solver": """
solver : {"sgd", "adam"}, default=?
    How parameters follow their gradients. "sgd" is the paper's stochastic gradient
    ascent. "adam" is that of scikit-learn's networks (Kingma and Ba, 2015), with
    weight decay apart from the gradient (Loshchilov and Hutter, 2019): at a large
    `batch_size`, such as 512, try ``learning_rate_init=1e-3``.
learning_rate : {"adaptive", "invscaling", "linear", "constant"}, default=?
    How the step falls. "adaptive" halves it after the first epoch that lowers the
    held-out loss by less than 0.01 nats a token, and after each that follows, so that
    nobody need know how many epochs it takes; where nothing is held out, as by
    ``partial_fit`` and trainers, the step stays as it is. "invscaling" is the
    paper's: after t examples it is
    ``learning_rate_init / (1 + learning_rate_decay t)``. "linear" has it fall in a
    line from `learning_rate_init` to 0 at the end of `max_iter` epochs: early
    stopping may end the fit before, with a step that is not small yet. A fit with
    `warm_start` begins with `learning_rate_init` again, while calls of
    ``partial_fit`` (an epoch each) and trainers share one fall. "constant" does not
    fall.
""",
    "learning_rate_decay": """
learning_rate_decay : float, default=1e-8
    r of the paper's schedule; only for "invscaling".
""",
    "training": """
beta_1, beta_2 : float, default=0.9, 0.999
    Decay of the means of gradients and of their squares; only for "adam".
epsilon : float, default=?
    Added to the root of the mean square; only for "adam".
batch_size : int, default=?
    Examples whose gradients make one update: summed, so that the step stays per
    example ("adam": their mean). 1 is the paper's algorithm (section 3.2),
    example by example.
max_iter : int, default=?
    Epochs, passes over the training windows.
early_stopping : {"auto"} or bool, default="auto"
    Stop when the held-out loss stops improving, and keep the weights of the
    best epoch. Where ``X_val`` is not given to `fit`, the last `validation_fraction`
    of the windows is held out: by True, and by "auto" of 100 windows or more.
    False trains `max_iter` epochs and keeps the last weights, as does "auto" with
    fewer windows, with a warning where the step is "adaptive".
validation_fraction : float, default=0.1
    See `early_stopping`.
n_iter_no_change : int, default=?
    Epochs without improvement before training stops early.
tol : float, default=?
    Improvement of the held-out loss, in nats a token, that counts.
shuffle : bool, default=True
    Present the examples of each epoch in a new random order.
n_jobs : int or None, default=None
    Threads of one fit or score; None is 1, -1 all cores.
parallel : {"rows", "async", "locked"}, default="rows"
    What the threads of a fit share (section 3 of the paper). "rows": the
    output units of each example; nothing races, and the larger the
    `batch_size` the better. "async": the examples, each thread updating the
    parameters at any time without a lock; nobody waits, and words can be
    drawn, but no two fits are the same, for now and then part of an update
    is lost. "locked": the same with a lock around updates, the paper's
    first attempt, slow.
""",
    "running": """
warm_start : bool, default=False
    Let `fit` go on from the weights of the previous fit.
random_state : int, RandomState instance or None, default=None
    Seeds the initial weights and the order of examples. The same seed,
    `n_jobs` and machine give the same bits, unless several threads train
    with ``parallel="async"`` or "locked". What a fitted model says of a window
    has the same bits for any `n_jobs`, alone or among other windows.
verbose : int, default=0
    1 prints a line an epoch, 2 shows a bar: in a notebook, on a terminal, or as
    lines of a log.
""",
    "progress": """
n_iter_ : int
    Epochs run since the weights were drawn: a `partial_fit` or a fit with
    `warm_start` adds its own. Early stopping may keep an earlier one's weights.
n_seen_ : int
    Examples seen, the t of the schedule.
history_ : dict of list
    ``n_iter_`` entries, one an epoch: ``loss`` (mean negative log-likelihood
    of each training example just before its update), ``val_loss`` (nan without
    held-out data), both in nats a token, and ``seconds``. The probabilities of
    ``loss`` are those with what dropout leaves, where there is such; of
    "importance", their estimates from the drawn words, which tend to be too large;
    of "nce", not normalised. ``val_loss`` is always exact. Of "importance" also
    ``n_samples`` and ``effective_samples``, as they are at the end of the epoch.
""",
}


def documented(model: type[Model]) -> type[Model]:
    """Put the shared parts, and the model's own defaults, into its docstring."""
    if model.__doc__ is None:  # python -OO has none
        return model
    model.__doc__ = cleandoc(model.__doc__)
    for name, part in SHARED.items():
        model.__doc__ = model.__doc__.replace(f"[[{name}]]", part.strip())
    parameters = signature(model).parameters

    def with_default(line: re.Match[str]) -> str:
        default = str(parameters[line["name"]].default)
        names = f'"{default}"'
        quoted = names if names in line["type"] else default
        return f"{line['name']} : {line['type']}, default={quoted}"

    asked = r"^(?P<name>\w+) : (?P<type>.*), default=\?$"
    model.__doc__ = re.sub(asked, with_default, model.__doc__, flags=re.MULTILINE)
    return model
