"""The options of each ``--model`` of ``nplm train``: refusals and --help."""

from __future__ import annotations

import click

__all__ = [
    "BY_MINUTES", "MODELS", "ON_DISK", "OPEN_UNITS", "UNITS", "ModelCommand",
    "is_given", "refuse_other_models",
]  # fmt: skip

MODELS = (
    "kneser-ney", "trigram", "classes", "network", "energy", "shortlist", "mixture",
)  # fmt: skip
# Units that are a whole vocabulary, in which no text is unknown.
OPEN_UNITS = ("bpe", "unigram", "bytes")
UNITS = (*OPEN_UNITS, "characters")
ON_DISK = "memory folder bits min_counts min_counts_of of_counts"
# Stands for a model beside those of --model: what --minutes makes, which chooses all
# that these have options for.
BY_MINUTES = "--minutes"
# Models, and the parameters of the options that only these have.
TABLE = {
    BY_MINUTES: "text members settings recipe continued errors",
    "kneser-ney": ON_DISK,
    "kneser-ney classes shortlist mixture": "discount_fallback",
    "kneser-ney shortlist mixture": "interpolate_unigrams",
    "classes": "n_classes",
    "network energy shortlist mixture": "n_hidden embedding_dim loss solver "
    "solver__learning_rate learning_rate_init solver__learning_rate_decay alpha "
    "max_iter n_iter_no_change batch_size parallel precision keep_optimizer",
    "network shortlist mixture": "output__direct dropout",
    # A short-list network trains on all words of its list.
    "network energy mixture": "loss__n_noise",
    "shortlist": "n_shortlist",
}
MODELS_OF = {
    parameter: models.split()
    for models, parameters in TABLE.items()
    for parameter in parameters.split()
}


def is_given(ctx: click.Context, name: str) -> bool:
    """Whether the user gave this parameter, and not its default."""
    return ctx.get_parameter_source(name) != click.core.ParameterSource.DEFAULT


# Options that --minutes decides, though all models have them.
DECIDED = ("model", "order", "min_count", "max_words", "words_path")


def refuse_other_models(ctx: click.Context, model: str) -> None:
    """Refuse an option that only other models have: it would change nothing."""
    for option in ctx.command.params:
        name = str(option.name)
        models = MODELS_OF.get(name, [model])
        is_decided = model == BY_MINUTES and (name in DECIDED or model not in models)
        if name == "memory" and model == BY_MINUTES:
            continue
        if is_decided and is_given(ctx, name):
            raise click.UsageError(
                f"--minutes chooses the models and their settings: leave "
                f"{option.opts[0]} out, or fix a choice by --set NAME=VALUE."
            )
        if models == [BY_MINUTES] != [model] and is_given(ctx, name):
            raise click.UsageError(
                f"{option.opts[0]} is for --minutes: give the minutes, or leave it out."
            )
        if model not in models and is_given(ctx, name):
            raise click.UsageError(
                f"--model {model} has no {option.opts[0]}, which is of "
                f"{', '.join(models)}: leave it out, or train another --model."
            )


class ModelCommand(click.Command):
    """A command whose --help has a section for the options of some models."""

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the options that all models have, then the others."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for option in self.get_params(ctx):
            models = MODELS_OF.get(str(option.name))
            title = "Options"
            if models is not None:
                by_minutes = models == [BY_MINUTES]
                title += f" of {'' if by_minutes else '--model '}{', '.join(models)}"
            record = option.get_help_record(ctx)
            if record is not None:
                sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)
