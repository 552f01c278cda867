"""Job: what ``nplm train`` is asked for, whichever way it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import click

from nplm.cli._bars import stages
from nplm.cli._options import Settings
from nplm.cli._tally import report_perplexities
from nplm.cli._text import listed_words, refuse_empty
from nplm.text.lm.scorer import Scorer
from nplm.text.words.known_words import WordChoice
from nplm.text.words.splitting import BETWEEN_BLANKS, BLANKS, END, LineMarks, Splitter


@dataclass(frozen=True)
class Job:
    """What ``nplm train`` is asked for; `options` are the others, by parameter."""

    inputs: Sequence[str]
    output: Path
    valid: str | None
    test: str | None
    options: Settings

    @property
    def checkpoint(self) -> Path:
        """The folder for the state of a fit, beside its output."""
        return self.output.with_name(f"{self.output.name}.checkpoint")

    @cached_property
    def choice(self) -> WordChoice:
        """How the words of a vocabulary are chosen."""
        path, options = self.options["words_path"], self.options
        words = None if path is None else listed_words(path, "--vocabulary")
        return WordChoice(options["min_count"], options["max_words"], words=words)

    def read(
        self,
        *,
        at_blanks: bool,
        errors: str | None = None,
        limit: Callable[[int], None] = lambda _: None,
    ) -> tuple[list[str], list[str] | None]:
        """Read the lines to train on, and those held out; see `Chunk.documents`.

        - `limit`: called with the number of bytes of text so far, to refuse more
        """
        refuse_empty(self.test, "test")
        split = Splitter(BETWEEN_BLANKS).split_function() if at_blanks else None
        marks, held_out = LineMarks(END, split), None
        texts = self.lines(self.inputs, marks, "train on", errors, limit)
        if self.valid is not None:
            what_for = f"validate on in {self.valid}"
            held_out = self.lines([self.valid], marks, what_for, errors, limit)
        return texts, held_out

    def lines(
        self,
        names: Sequence[str],
        marks: LineMarks,
        what_for: str,
        errors: str | None = None,
        limit: Callable[[int], None] = lambda _: None,
    ) -> list[str]:
        """Read the lines of some files; see `read`."""
        texts: list[str] = []
        n_read = 0  # of text, which files may have compressed
        keep = self.options["blank_lines"]
        with stages() as bars:
            for chunk in bars.chunks(f"reading the text to {what_for}", names):
                n_read += len(chunk.lines) + sum(map(len, chunk.lines))
                limit(n_read)
                _, documents = chunk.documents(marks, errors, blank_lines=keep)
                texts += [line for [line] in documents]
        if not any(line.strip(BLANKS) for line in texts):
            raise click.ClickException(f"there is no text to {what_for}.")
        return texts

    def report(self, scorer: Scorer) -> None:
        """Report the perplexities of the texts to score."""
        keep = self.options["blank_lines"]
        report_perplexities(scorer, self.valid, self.test, blank_lines=keep)
