"""``nplm card``: a page beside a saved model."""

from __future__ import annotations

from pathlib import Path

import click

from nplm.base.files.atomic_files import replacing
from nplm.cli._models import MODEL, read_model
from nplm.cli._options import EXISTING, command, option
from nplm.cli._outputs import OutputFile, refuse_to_replace
from nplm.cli._tally import line_marks
from nplm.cli._text import lines_of
from nplm.inspection import model_card


@command(
    "card", MODEL,
    option("--output -o", OutputFile(), None,
        "File of the page, such as README.md; by default standard output."),
    option("--name", None, None, "Name of the model; by default that of the file."),
    option("--trained-on", None, None, "What it was trained on, in words."),
    option("--licence --license licence", None, None,
        "Licence of the model, by Hugging Face's identifier, such as cc-by-sa-4.0."),
    option("--language", None, None, "Language of the text, by its code, such as en."),
    option("--text texts", EXISTING, None,
        "Text whose perplexities to measure; may be given several times.",
        multiple=True),
)  # fmt: skip
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
