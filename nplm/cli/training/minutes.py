"""``nplm train --minutes``: the best model that a time makes of a text."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from sklearn.base import clone

import nplm
from nplm import AutoLM
from nplm.base.progress import BAR
from nplm.cli._messages import check_auto_settings, report_in_options
from nplm.cli._options import Settings, refuse
from nplm.cli._outputs import BEGAN, INTERRUPTED, notify, refuse_arpa
from nplm.cli._tally import line_marks
from nplm.cli._text import n_bytes_of
from nplm.cli.training.in_memory import kept_fit, save_trained, tokenizer_of
from nplm.cli.training.job import Job
from nplm.models.auto.auto_lm import check_before, fit_within, scores_of
from nplm.models.auto.fitting import Budget, Scores, forget
from nplm.models.auto.rules import gain_of_twice
from nplm.models.training.folder_lock import FolderLock

# Bytes of text that are read, split and counted a second; and the share of the time
# that this may take.
READ_A_SECOND, READING_SHARE = 4e6, 0.7
# Bytes of memory of the program, and of the text and its ids for a byte of the text.
PROGRAM_BYTES, BYTES_A_BYTE = 200_000_000, 2.5
# What a recipe decides.
CHOICES = "minutes text adapt members settings tokens random_state"
# The share of its time that a fit takes which did not end early.
USED_SHARE = 0.9


def train_minutes(job: Job) -> None:
    """Train the best model in the time, save it, and report."""
    options, output = job.options, job.output
    began = click.get_current_context().meta[BEGAN]
    refuse_arpa(output)
    before = None if options["continued"] is None else _auto_of(options["continued"])
    lm = _auto_lm(options, before)
    budget = Budget(60 * lm.minutes, began)
    if before is not None:
        with report_in_options():
            check_before(before, lm.settings or {})
    # Until the model is saved: another run of this output would take the state.
    with report_in_options(), FolderLock(job.checkpoint) as folder:
        interrupted = _fit_and_save(lm, job, folder, budget, before)
    seconds, size = budget.spent, output.stat().st_size / 1e6
    _report(lm, job)
    of = "" if lm.recipe is not None else f" of {lm.minutes:g}"  # which reads no clock
    notify(f"{output}: {size:.1f} MB, after {seconds / 60:.2f}{of} minutes.")
    _report_gain(lm, seconds)
    job.report(lm.scorer())
    if interrupted:
        raise click.exceptions.Exit(INTERRUPTED)


def _auto_lm(options: Settings, before: AutoLM | None) -> AutoLM:
    """Make the model that the options ask for; what they leave out is as `before`."""
    memory = options["memory"]
    limits: dict[str, Any] = {} if memory is None else {"memory": memory}
    if options["recipe"] is not None:
        refuse(
            CHOICES.split(),
            "--recipe has all choices: leave {} out, or --recipe.",
        )  # fmt: skip
        model = _auto_of(options["recipe"])
        return clone(model).set_params(
            recipe=model.recipe_, settings=None, adapt=False, n_jobs=options["n_jobs"],
            verbose=BAR, **limits,
        )  # fmt: skip
    if options["minutes"] is None:
        raise click.UsageError("--continue needs the --minutes that it may take.")
    settings = dict(options["settings"])
    is_running, adapt = options["text"] == "running", options["adapt"]
    if before is not None:
        refuse(
            ["tokens"],
            "--continue splits the text as its model does: leave {} out.",
        )  # fmt: skip
        recipe, fixed = before.recipe_, before.settings or {}
        is_running = recipe.running_text if options["text"] is None else is_running
        adapt = adapt or "cache" in recipe.members
        if before.recipe is not None:  # which had the members, in place of settings
            fixed = {"members": [name for name in recipe.members if name != "cache"]}
        if "members" in fixed:
            settings = {"members": fixed["members"]} | settings
    if options["members"] is not None:
        settings["members"] = list(dict.fromkeys(options["members"].split(",")))
    check_auto_settings(settings)
    lm = AutoLM(
        options["minutes"], running_text=is_running, adapt=adapt, settings=settings,
        tokenizer=tokenizer_of(options["tokens"]) or "auto",
        n_jobs=options["n_jobs"], random_state=options["random_state"], verbose=BAR,
        **limits,
    )  # fmt: skip
    with report_in_options():
        lm._validate_params()
    return lm


def _auto_of(path: str) -> AutoLM:
    model = nplm.load(path)
    if not isinstance(model, AutoLM):
        raise click.ClickException(
            f"{path} has a {type(model).__name__}, which was trained without --minutes "
            "and has no recipe."
        )
    return model


def _refuse_too_large(lm: AutoLM, budget: Budget, n_bytes: int) -> None:
    """Refuse a text of at least `n_bytes` for which time or memory is too short.

    A fit that repeats another has no time.
    """
    minutes, needed = lm.minutes, n_bytes / READ_A_SECOND / READING_SHARE / 60
    size = f"{n_bytes / 1e6:,.2f} MB of text"
    reading = f"reading {size} takes"
    if lm.recipe is None and (needed > minutes or budget.left < 0):
        spent = budget.spent / 60
        why = f"{reading} most of {needed:.2g} minutes"
        if needed < spent:
            why = f"{spent:.2g} minutes had passed before {size} were read"
        raise click.ClickException(
            f"--minutes {minutes:g} is too short: {why}. Give more minutes, or a part "
            "of the text."
        )
    giga = (PROGRAM_BYTES + BYTES_A_BYTE * n_bytes) / 1e9
    if lm.memory is not None and giga > lm.memory / 1e9:
        raise click.ClickException(
            f"--memory of {lm.memory / 1e9:.2g} GB is too small: {reading} about "
            f"{giga:.2g} GB. Give more memory, or a part of the text."
        )


def _fit_and_save(
    lm: AutoLM, job: Job, folder: FolderLock, budget: Budget, before: AutoLM | None
) -> bool:
    """Fit and save the model; return whether an interrupt ended the fit early."""
    limit, whole = partial(_refuse_too_large, lm, budget), True
    limit(n_bytes_of(job.inputs))
    at_blanks = getattr(lm.tokenizer, "splits_at_blanks", False)
    errors = job.options["errors"]
    texts, held_out = job.read(at_blanks=at_blanks, errors=errors, limit=limit)
    with redirect_stdout(sys.stderr), kept_fit(job), _first_ends(budget):
        try:
            fit_within(
                budget, lm, texts, X_val=held_out, checkpoint=folder, before=before
            )
        except KeyboardInterrupt:
            if not hasattr(lm, "estimator_"):
                raise
            whole = False
        lm.set_params(verbose=0)
        save_trained(lm, job, optimizer=True, whole=whole)
    forget(folder)
    return budget.ends_soon or not whole


@contextmanager
def _first_ends(budget: Budget) -> Iterator[None]:
    """Let the first Ctrl-C end the fit soon; the second one stops it at once."""

    def end(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, before)
        budget.end_soon()
        # Not by click.echo, which would write into the line of a bar.
        print(
            "Ending: the learning rate falls to 0, and the model is saved. Ctrl-C "
            "again stops at once.",
            file=sys.stderr,
        )

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # of a program around the command
        yield
        return
    signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _report(lm: AutoLM, job: Job) -> None:
    """Print a table of the members and the mixture."""
    held_out, tested = _by_name(scores_of(lm)), _by_name([])
    if job.test is not None:
        marks = line_marks(lm.scorer().codec, lm.boundary_)
        tested = _by_name(scores_of(lm, job.lines([job.test], marks, "test on")))
    models = {
        name: model.estimator
        for name, model in getattr(lm.estimator_, "named_estimators_", {}).items()
    }
    weights = dict(zip(lm.recipe_.members, lm.recipe_.weights))
    table = Table("model", box=None)
    texts = {"held-out": held_out} | ({} if job.test is None else {"test": tested})
    for title in ("weight", *texts, "words/s", "parameters"):
        table.add_column(title, justify="right")
    for name in dict.fromkeys([*weights, "mixture"] if len(weights) > 1 else weights):
        model = models.get(name, lm.estimator_ if weights.get(name, 1.0) else None)
        timed = tested.get(name, held_out.get(name))
        table.add_row(
            name, f"{weights[name]:.2f}" if name in weights else "",
            *(f"{of[name].perplexity:.2f}" if name in of else ""
              for of in texts.values()),
            f"{timed.speed:,.0f}" if timed else "",
            f"{model.n_parameters_:,}" if model else "",
        )  # fmt: skip
    Console(stderr=True).print(table)


def _by_name(scores: list[Scores]) -> dict[str, Scores]:
    return {score.name: score for score in scores}


def _report_gain(lm: AutoLM, seconds: float) -> None:
    """Say what twice the minutes would give, or that the rules do not tell."""
    recipe = lm.recipe_
    # A fit that ended before its time has nothing to gain from more of it, and one with
    # a recipe takes the time that it needs.
    ended = lm.recipe is not None or seconds < USED_SHARE * 60 * lm.minutes
    weight = dict(zip(recipe.members, recipe.weights)).get("network")
    if ended or not weight:
        return
    seen = recipe.corrections[-1][1] if recipe.corrections else recipe.planned
    gain = gain_of_twice(lm.n_tokens_, lm.n_words_, seen, recipe.network)
    sentence = (
        "The rules do not tell what twice the minutes would give: they have no "
        "measurement of this network with twice its training on such a text."
    )
    if gain is not None:
        gain *= weight
        sentence = f"Twice the minutes would lower the perplexity by about {gain:.0%}."
    notify(sentence)
