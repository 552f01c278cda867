"""``nplm card``: a page beside a saved model."""

from __future__ import annotations

from pathlib import Path

import click

from nplm.base.files.atomic_files import replacing
from nplm.cli._models import MODEL, read_model
from nplm.cli._outputs import OutputFile, refuse_to_replace
from nplm.cli._tally import line_marks
from nplm.cli._text import lines_of
from nplm.inspection import model_card


@click.command("card")
@MODEL
@click.option(
    "--output",
    "-o",
    type=OutputFile(),
    help="File of the page, such as README.md; by default standard output.",
)
@click.option("--name", help="Name of the model; by default that of the file.")
@click.option("--trained-on", help="What it was trained on, in words.")
@click.option(
    "--licence",
    "--license",
    "licence",
    help="Licence of the model, by Hugging Face's identifier, such as cc-by-sa-4.0.",
)
@click.option("--language", help="Language of the text, by its code, such as en.")
@click.option(
    "--text",
    "texts",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    help="Text whose perplexities to measure; may be given several times.",
)
def card_command(
    model: str,
    output: Path | None,
    name: str | None,
    texts: tuple[str, ...],
    verify: bool,
    **options: str | None,
) -> None:
    """Describe MODEL on a page of Markdown.

    The page goes beside the file of the model. It has the sizes of the model, its
    vocabulary and parameters, perplexities, the licence, and how to load it. It begins
    with the metadata of Hugging Face's model cards. It tells what the file and the
    options tell, and nothing else.

    \b
    Examples:
      nplm card model
      nplm card model -o README.md --trained-on "Wikipedia, 2015" --language en
      nplm card model --licence cc-by-sa-4.0 --text valid.txt --text test.txt
    """  # noqa: D301  (click reads the control character)
    if output is not None:
        refuse_to_replace(output, model, *texts)
    lm = read_model(model, verify=verify)
    marks = line_marks(lm.scorer().codec, lm.boundary_)
    named = {
        Path(text).name: list(lines_of([text], marks, blank_lines=False))
        for text in texts
    }
    if len(named) < len(texts):
        raise click.UsageError("two texts have the same name: rename one of them.")
    for text, lines in named.items():
        if not lines:
            raise click.ClickException(f"there is no line of text in {text}.")
    card = model_card(lm, name or Path(model).name, texts=named, **options)
    if output is None:
        click.echo(card, nl=False)
        return
    with replacing(output) as file:
        file.write(card.encode())
