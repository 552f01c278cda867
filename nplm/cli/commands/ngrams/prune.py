"""``nplm prune``: a model with fewer n-grams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nplm.cli._models import MODEL
from nplm.cli._options import EXISTING, command, option
from nplm.cli._outputs import OUTPUT, notify, refuse_to_replace
from nplm.cli._text import listed_words
from nplm.cli._values import NOT_NEGATIVE
from nplm.cli._writing import Target, size_of, target_options
from nplm.models.mixtures.changed_words import limited
from nplm.models.ngrams.stages.pruning import pruned_by_entropy
from nplm.models.ngrams.text_ngrams import TextNgrams
from nplm.models.ngrams.trie.work import Work

DEFAULT_THRESHOLD = 1e-7


@command(
    "prune", MODEL, OUTPUT,
    option("--threshold", NOT_NEGATIVE, None,
        "Remove each n-gram that changes the model's own perplexity by less than this "
        "share (Stolcke, 1998), as SRILM's -prune.",
        show_default="1e-7, or 0 with --limit-vocab"),
    option("--limit-vocab", EXISTING, None,
        "File of the words to keep, one a line. N-grams with others are removed and "
        "back-off weights recomputed, as by SRILM's -limit-vocab -renorm; other words "
        "become <unk>."),
    option("--mass-to", ["unknown", "words"], "unknown",
        "With --limit-vocab, give the probability of the words that are removed to "
        "<unk>, or divide it among all words that are kept, as SRILM does: for texts "
        "without other words."),
    target_options("sort n-grams and hold parts of the model"),
)  # fmt: skip
def prune_command(
    model: str,
    output: Path,
    threshold: float | None,
    limit_vocab: str | None,
    mass_to: str,
    verify: bool,
    **options: Any,
) -> None:
    """Write MODEL with fewer n-grams, or fewer words.

    By default those n-grams are left out that matter least. ARPA files and mapped
    n-grams are written within --memory, whatever the size of MODEL; a file of
    nplm.save takes the memory of the model.

    \b
    Examples:
      nplm prune --threshold 1e-8 model.arpa.gz small.arpa.gz
      nplm prune --limit-vocab words.txt model.arpa.gz small.arpa.gz
      nplm prune large.nplm small.nplm --to binary --memory 2G
    """  # noqa: D301  (click reads the control character)
    target = Target(output, **options)
    refuse_to_replace(output, model, limit_vocab)
    words = set[str]()
    if limit_vocab is not None:
        words = set(listed_words(limit_vocab, "--limit-vocab"))
    if threshold is None:
        threshold = DEFAULT_THRESHOLD if limit_vocab is None else 0.0
    with target.changed_from([model], verify=verify) as ([ngrams], work):
        n_before = size_of(ngrams)
        if limit_vocab is not None:
            ngrams = _limited(ngrams, words, limit_vocab, mass_to, work)
        trie = pruned_by_entropy(ngrams.trie, threshold, work)
        n_kept = target.write(ngrams._replace(trie=trie), work)
    notify(f"{n_kept:,} of {n_before:,} n-grams kept")


def _limited(
    ngrams: TextNgrams, words: set[str], path: str, mass_to: str, work: Work
) -> TextNgrams:
    """Restrict n-grams to the words of a file, and report them."""
    lacking = len(words - ngrams.words.ids.keys())
    try:
        fewer = limited(ngrams, words, work, mass_to)
    except ValueError as error:
        raise click.ClickException(f"--limit-vocab {path}: {error}") from error
    notify(
        f"{len(fewer.words):,} of {len(ngrams.words):,} words kept; {lacking:,} "
        f"words of {path} are not in the model"
    )
    return fewer
