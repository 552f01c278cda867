"""The options of ``nplm train``, by the models that have them."""

from __future__ import annotations

import click

from nplm.cli._options import ANY, BY_MINUTES, MODELS, NETWORKS, Command, of_models
from nplm.cli._text import BLANK_LINES, ERRORS, KeptText
from nplm.cli._values import (
    ABOVE_ZERO,
    AVAILABLE,
    COUNTS,
    DECAY,
    DISCOUNTS,
    MAX_ORDER,
    NOT_NEGATIVE,
    POSITIVE,
    SEED,
    SETTING,
    SHARES,
    SIZES,
    memory_option,
    threads_option,
)
from nplm.cli._writing import BITS, KEEP_OPTIMIZER

# Units that are a whole vocabulary, in which no text is unknown.
OPEN_UNITS = ("bpe", "unigram", "bytes")
UNITS = (*OPEN_UNITS, "characters")
# The parameters of Kneser-Ney.
SMOOTHING = (
    "order", "interpolate_unigrams", "min_counts", "min_counts_of", "discount_fallback",
)  # fmt: skip
# In the order of --help. Those of networks have the names that set_params takes, and
# the defaults of `NeuralLM`, whose import would slow the start of the commands.
OPTIONS = (
    of_models(
        " ".join(MODELS),
        click.option("--model", type=click.Choice(MODELS), default="kneser-ney"),
        click.option(
            "--vocabulary",
            "words_path",
            type=click.Path(exists=True, dir_okay=False),
            help="File with the words of the vocabulary, one a line; others are <unk>.",
        ),
        click.option(
            "--min-count", type=POSITIVE, default=1, help="Rarer words are <unk>."
        ),
        click.option(
            "--max-words",
            type=click.IntRange(min=3),
            help="Size of the vocabulary at most, with </s> and <unk>; it keeps the "
            "most frequent words.",
        ),
        click.option(
            "--order",
            type=click.IntRange(2, MAX_ORDER),
            default=5,
            help="The n of the model: it sees n - 1 words of context.",
        ),
    ),
    of_models(
        " ".join(ANY),
        click.option(
            "--valid",
            type=KeptText(),
            help="Held-out text: it stops the training of a network, and sets the "
            "weights of a mixture.",
        ),
        click.option(
            "--test", type=KeptText(), help="Text whose perplexity to report."
        ),
        click.option(
            "--tokens",
            type=click.Choice(["words", "blanks", "logs", *UNITS]),
            default="words",
            help="Split text into words and punctuation marks, at blanks, into words "
            "of log lines (<num> for numbers, <id> for addresses and others with a "
            "digit), or into units below words: bpe and unigram learn --max-words of "
            "them (8,000 by default).",
        ),
        BLANK_LINES,
        click.option(
            "--minutes",
            type=ABOVE_ZERO,
            help="Train the best model that this time makes of the text: a network, "
            "Kneser-Ney and classes, chosen by the text, the time and the machine, and "
            "mixed.",
        ),
        threads_option(1),
        SEED,
    ),
    of_models(
        f"kneser-ney {BY_MINUTES}",
        memory_option(
            "estimate Kneser-Ney, or for all of --minutes",
            f"2G with --minutes, else {AVAILABLE}",
        ),
    ),
    of_models(
        "kneser-ney",
        click.option(
            "--counts",
            "of_counts",
            is_flag=True,
            help="TEXT is files of n-gram counts, such as nplm count writes, as "
            "SRILM's -read: of complete lines, up to --order words or more, without "
            "cut-offs.",
        ),
        click.option(
            "--folder",
            type=click.Path(exists=True, file_okay=False),
            help="Folder for the temporary files of Kneser-Ney; by default the "
            "system's.",
        ),
        BITS,
        click.option(
            "--min-counts",
            type=COUNTS,
            help="Minimum count of the n-grams to keep, one per order, such as 1,1,2; "
            "the last one is that of all higher orders. By default every n-gram is "
            "kept.",
        ),
        click.option(
            "--min-counts-of",
            type=click.Choice(["modified", "text"]),
            default="modified",
            help="Counts that --min-counts is compared with: those that Kneser-Ney "
            "estimates from, as SRILM's -gt3min, or those in the text, as KenLM's "
            "--prune (1,1,2 is --prune 0 0 1).",
        ),
        click.option(
            "--no-marks",
            is_flag=True,
            help="Estimate n-grams without <s> and </s>: none reaches over the ends of "
            "a line, and no end is predicted. Scores of the model have no ends, "
            "either.",
        ),
    ),
    of_models(
        "kneser-ney shortlist mixture",
        click.option(
            "--interpolate-unigrams/--no-interpolate-unigrams",
            default=True,
            help="Whether Kneser-Ney gives what it discounts from single words to all "
            "words, as KenLM does, or to <unk> alone, as SRILM's ngram-count -unk "
            "does.",
        ),
    ),
    of_models(
        "kneser-ney classes shortlist mixture",
        click.option(
            "--discount-fallback",
            type=DISCOUNTS,
            help="Kneser-Ney's discounts where a text is too small to estimate them, "
            "such as 0.5,1,1.5. By default these are used with a note.",
        ),
    ),
    of_models(
        "classes",
        click.option(
            "--classes",
            "n_classes",
            type=POSITIVE,
            default=500,
            help="Number of word classes.",
        ),
    ),
    of_models(
        "shortlist",
        click.option(
            "--shortlist",
            "n_shortlist",
            type=POSITIVE,
            default=2000,
            help="Number of most frequent words that the network of a short-list model "
            "predicts.",
        ),
    ),
    of_models(
        NETWORKS,
        KEEP_OPTIMIZER,
        click.option(
            "--hidden",
            "n_hidden",
            type=SIZES,
            default=320,
            help="Hidden units, h; 400,800,800 adds residual blocks of 800 units.",
        ),
        click.option(
            "--embedding",
            "embedding_dim",
            type=POSITIVE,
            default=144,
            help="Features of a word, m.",
        ),
        click.option(
            "--loss",
            type=click.Choice(["auto", "exact", "importance", "nce"]),
            default="auto",
            help="Train on all words (exact), or on noise samples, which is many times "
            "as fast with a large vocabulary.",
        ),
        click.option(
            "--solver",
            type=click.Choice(["sgd", "adam"]),
            default="adam",
            help="sgd is the paper's.",
        ),
        click.option(
            "--schedule",
            "solver__learning_rate",
            type=click.Choice(["auto", "invscaling", "linear", "constant"]),
            default="auto",
            help="How the learning rate falls: in a line to 0 over a few epochs, which "
            "end the fit (auto), or over all --epochs (linear); as in the paper "
            "(invscaling); or not at all.",
        ),
        click.option(
            "--learning-rate",
            "learning_rate_init",
            type=ABOVE_ZERO,
            default=4e-3,
            help="Learning rate at the start; with sgd that of one example.",
        ),
        click.option(
            "--decay",
            "solver__learning_rate_decay",
            type=NOT_NEGATIVE,
            default=1e-8,
            help="With --schedule invscaling the learning rate is divided by 1 + decay "
            "* examples seen.",
        ),
        click.option(
            "--alpha",
            type=DECAY,
            default="auto",
            help="Weight decay, not on the biases; auto is larger for small corpora.",
        ),
        click.option(
            "--epochs",
            "max_iter",
            type=POSITIVE,
            default=100,
            help="Epochs at most; the validation part may stop training earlier.",
        ),
        click.option(
            "--patience",
            "n_iter_no_change",
            type=POSITIVE,
            default=1,
            help="Epochs without a better validation perplexity before training stops.",
        ),
        click.option(
            "--batch-size",
            type=POSITIVE,
            default=256,
            help="Examples of an update; 1 is the paper's algorithm.",
        ),
        click.option(
            "--parallel",
            type=click.Choice(["sync", "async", "locked"]),
            default="sync",
            help="How threads share the work: all compute each mini-batch (sync), or "
            "each has its own mini-batches, without (async) or with a lock (locked).",
        ),
        click.option(
            "--precision",
            type=click.Choice(["auto", "float32", "float64", "bfloat16"]),
            default="auto",
            help="Arithmetic of the network; bfloat16 rounds the factors of its "
            "products, and auto takes it where the processor multiplies it.",
        ),
    ),
    # A short-list network trains on all words of its list.
    of_models(
        "network energy mixture",
        click.option(
            "--samples",
            "loss__n_noise",
            type=POSITIVE,
            default=512,
            help="Noise samples of a mini-batch, or with --loss nce of an example. "
            "With --loss auto this option chooses --loss importance.",
        ),
    ),
    of_models(
        "network shortlist mixture",
        click.option(
            "--direct/--no-direct",
            "output__direct",
            default=False,
            help="Direct connections from the features to the output units.",
        ),
        click.option(
            "--dropout",
            type=SHARES,
            default=(0.05, 0.1, 0.15),
            help="Share of the features and hidden units that each example leaves out; "
            "or three shares: of the features, the hidden units, and their projection.",
        ),
    ),
    of_models(
        BY_MINUTES,
        click.option(
            "--text",
            type=click.Choice(["documents", "running"]),
            help="A line is a document (by default), or the lines are one text in its "
            "order, whose context goes on across lines.",
        ),
        click.option(
            "--adapt",
            is_flag=True,
            help="Mix in a cache of the last 500 words of the document or running "
            "text; compare scores only with those of models that adapt, too.",
        ),
        click.option(
            "--members",
            help="Models to train, of ngrams, classes and network, separated by "
            "commas.",
        ),
        click.option(
            "--set",
            "settings",
            multiple=True,
            type=SETTING,
            help="Fix a choice: ngram_order, n_classes, spelling, epochs, or a "
            "parameter of NeuralLM.",
        ),
        click.option(
            "--recipe",
            type=click.Path(exists=True, dir_okay=False),
            help="Train as this model was, without a clock: of the same text the same "
            "model.",
        ),
        click.option(
            "--continue",
            "continued",
            type=click.Path(exists=True, dir_okay=False),
            help="Go on from this model for --minutes more.",
        ),
        ERRORS,
    ),
)


def train_options(command: Command) -> Command:
    """Add the options to the command."""
    for options in reversed(OPTIONS):
        command = options(command)
    return command
