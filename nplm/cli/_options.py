"""Options as values: how commands declare them, and what only some models have."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

Params = click.Parameter | Sequence[click.Parameter]
Settings = dict[str, Any]  # values by parameter

MODELS = (
    "kneser-ney", "trigram", "classes", "network", "energy", "shortlist", "mixture",
)  # fmt: skip
NETWORKS = "network energy shortlist mixture"
# Stands for a model beside those of --model: what --minutes makes, which chooses the
# models and their settings.
BY_MINUTES = "--minutes"
ANY = (*MODELS, BY_MINUTES)
EXISTING = click.Path(exists=True, dir_okay=False)  # the type of a file to read


def command(
    name: str, *params: Params, cls: type[click.Command] = click.Command
) -> Callable[[Callable[..., None]], click.Command]:
    """Return the decorator of a command with these parameters, in their order."""
    return click.command(name, cls=cls, params=_flat(params))


def option(
    names: str, kind: Any, default: object, text: str | None = None, **settings: Any
) -> click.Option:
    """Return an option: its names between blanks, its type or choices, and its help.

    It has no default if that is None.
    """
    if isinstance(kind, Sequence):
        kind = click.Choice(kind)
    if default is not None or "/" in names:  # whose default would be False
        settings["default"] = default
    return click.Option(names.split(), type=kind, help=text, **settings)


def flag(names: str, text: str) -> click.Option:
    """Return an option without a value."""
    return click.Option(names.split(), is_flag=True, help=text)


def of_models(models: str, *params: Params) -> list[click.Parameter]:
    """Return options that only `models`, separated by blanks, have."""
    options = [copy.copy(option) for option in _flat(params)]
    for option in options:
        vars(option)["models"] = tuple(models.split())
    return options


def _flat(params: Iterable[Params]) -> list[click.Parameter]:
    return [
        param
        for group in params
        for param in ([group] if isinstance(group, click.Parameter) else group)
    ]


def models_of(option: click.Parameter) -> tuple[str, ...]:
    """Return the models that have an option, by default all."""
    return getattr(option, "models", ANY)


def chosen_model(ctx: click.Context) -> str | None:
    """Return the model that ``nplm train`` trains; None of other commands."""
    if not isinstance(ctx.command, ModelCommand):
        return None
    recipes = (ctx.params.get(name) for name in ("minutes", "recipe", "continued"))
    if any(value is not None for value in recipes):
        return BY_MINUTES
    return ctx.params.get("model")


def is_given(name: str) -> bool:
    """Whether the user gave this parameter, and not its default."""
    source = click.get_current_context().get_parameter_source(name)
    return source != click.core.ParameterSource.DEFAULT


def refuse(names: Iterable[str], message: str) -> None:
    """Refuse the first of some parameters that is given; ``{}`` is its option."""
    for option in click.get_current_context().command.params:
        name = str(option.name)
        if name in names and is_given(name):
            raise click.UsageError(message.format(option.opts[0]))


def refuse_other_models(ctx: click.Context) -> None:
    """Refuse an option that only other models have: it would change nothing."""
    model = chosen_model(ctx)
    for option in ctx.command.params:
        models = models_of(option)
        if model in models:
            continue
        if model == BY_MINUTES:
            message = (
                "--minutes chooses the models and their settings: leave {} out, or fix "
                "a choice by --set NAME=VALUE."
            )
        elif models == (BY_MINUTES,):
            message = "{} is for --minutes: give the minutes, or leave it out."
        else:
            others = ", ".join(name for name in models if name != BY_MINUTES)
            message = (
                f"--model {model} has no {{}}, an option of {others}: leave it out, or "
                "train another --model."
            )
        refuse([str(option.name)], message)


class ModelCommand(click.Command):
    """A command whose --help has a section for the options of some models."""

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the options that all models have, then the others."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for option in self.get_params(ctx):
            models, title = models_of(option), "Options"
            if not set(models) >= set(MODELS):
                names = ", ".join(name for name in models if name != BY_MINUTES)
                which = [f"--model {names}"] if names else []
                which += [BY_MINUTES] if BY_MINUTES in models else []
                title += f" of {' and '.join(which)}"
            record = option.get_help_record(ctx)
            if record is not None:
                sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)
