"""The options of ``nplm train``, by the models that have them."""

from __future__ import annotations

import click

import nplm.cli._values as values
from nplm.cli._options import (
    ANY,
    BY_MINUTES,
    EXISTING,
    MODELS,
    NETWORKS,
    flag,
    of_models,
    option,
)
from nplm.cli._text import BLANK_LINES, ERRORS, KeptText
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
TRAIN_OPTIONS = (
    of_models(" ".join(MODELS),
        option("--model", MODELS, "kneser-ney"),
        option("--vocabulary words_path", EXISTING, None,
            "File with the words of the vocabulary, one a line; others are <unk>."),
        option("--min-count", values.POSITIVE, 1, "Rarer words are <unk>."),
        option("--max-words", click.IntRange(min=3), None,
            "Size of the vocabulary at most, with </s> and <unk>; it keeps the "
            "most frequent words."),
        option("--order", click.IntRange(2, values.MAX_ORDER), 5,
            "The n of the model: it sees n - 1 words of context."),
    ),
    of_models(" ".join(ANY),
        option("--valid", KeptText(), None,
            "Held-out text: it stops the training of a network, and sets the "
            "weights of a mixture."),
        option("--test", KeptText(), None, "Text whose perplexity to report."),
        option("--tokens", ["words", "blanks", "logs", *UNITS], "words",
            "Split text into words and punctuation marks, at blanks, into words of "
            "log lines (<num> for numbers, <id> for addresses and others with a "
            "digit), or into units below words: bpe and unigram learn --max-words "
            "of them (8,000 by default)."),
        BLANK_LINES,
        option("--minutes", values.ABOVE_ZERO, None,
            "Train the best model that this time makes of the text: a network, "
            "Kneser-Ney and classes, chosen by the text, the time and the machine, "
            "and mixed."),
        values.threads_option(1),
        values.SEED,
    ),
    of_models(f"kneser-ney {BY_MINUTES}",
        values.memory_option("estimate Kneser-Ney, or for all of --minutes",
            f"2G with --minutes, else {values.AVAILABLE}"),
    ),
    of_models("kneser-ney",
        flag("--counts of_counts",
            "TEXT is files of n-gram counts, such as nplm count writes, as SRILM's "
            "-read: of complete lines, up to --order words or more, without "
            "cut-offs."),
        option("--folder", click.Path(exists=True, file_okay=False), None,
            "Folder for the temporary files of Kneser-Ney; by default the "
            "system's."),
        BITS,
        option("--min-counts", values.COUNTS, None,
            "Minimum count of the n-grams to keep, one per order, such as 1,1,2; "
            "the last one is that of all higher orders. By default every n-gram is "
            "kept."),
        option("--min-counts-of", ["modified", "text"], "modified",
            "Counts that --min-counts is compared with: those that Kneser-Ney "
            "estimates from, as SRILM's -gt3min, or those in the text, as KenLM's "
            "--prune (1,1,2 is --prune 0 0 1)."),
        flag("--no-marks",
            "Estimate n-grams without <s> and </s>: none reaches over the ends of "
            "a line, and no end is predicted. Scores of the model have no ends, "
            "either."),
    ),
    of_models("kneser-ney shortlist mixture",
        option("--interpolate-unigrams/--no-interpolate-unigrams", None, True,
            "Whether Kneser-Ney gives what it discounts from single words to all "
            "words, as KenLM does, or to <unk> alone, as SRILM's ngram-count -unk "
            "does."),
    ),
    of_models("kneser-ney classes shortlist mixture",
        option("--discount-fallback", values.DISCOUNTS, None,
            "Kneser-Ney's discounts where a text is too small to estimate them, "
            "such as 0.5,1,1.5. By default these are used with a note."),
    ),
    of_models("classes",
        option("--classes n_classes", values.POSITIVE, 500, "Number of word classes."),
    ),
    of_models("shortlist",
        option("--shortlist n_shortlist", values.POSITIVE, 2000,
            "Number of most frequent words that the network of a short-list model "
            "predicts."),
    ),
    of_models(NETWORKS,
        KEEP_OPTIMIZER,
        option("--hidden n_hidden", values.SIZES, 320,
            "Hidden units, h; 400,800,800 adds residual blocks of 800 units."),
        option("--embedding embedding_dim", values.POSITIVE, 144,
            "Features of a word, m."),
        option("--loss", ["auto", "exact", "importance", "nce"], "auto",
            "Train on all words (exact), or on noise samples, which is many times "
            "as fast with a large vocabulary."),
        option("--solver", ["sgd", "adam"], "adam", "sgd is the paper's."),
        option("--schedule solver__learning_rate",
            ["auto", "invscaling", "linear", "constant"], "auto",
            "How the learning rate falls: in a line to 0 over a few epochs, which "
            "end the fit (auto), or over all --epochs (linear); as in the paper "
            "(invscaling); or not at all."),
        option("--learning-rate learning_rate_init", values.ABOVE_ZERO, 4e-3,
            "Learning rate at the start; with sgd that of one example."),
        option("--decay solver__learning_rate_decay", values.NOT_NEGATIVE, 1e-8,
            "With --schedule invscaling the learning rate is divided by 1 + decay "
            "* examples seen."),
        option("--alpha", values.DECAY, "auto",
            "Weight decay, not on the biases; auto is larger for small corpora."),
        option("--epochs max_iter", values.POSITIVE, 100,
            "Epochs at most; the validation part may stop training earlier."),
        option("--patience n_iter_no_change", values.POSITIVE, 1,
            "Epochs without a better validation perplexity before training stops."),
        option("--batch-size", values.POSITIVE, 256,
            "Examples of an update; 1 is the paper's algorithm."),
        option("--parallel", ["sync", "async", "locked"], "sync",
            "How threads share the work: all compute each mini-batch (sync), or "
            "each has its own mini-batches, without (async) or with a lock "
            "(locked)."),
        option("--precision", ["auto", "float32", "float64", "bfloat16"], "auto",
            "Arithmetic of the network; bfloat16 rounds the factors of its "
            "products, and auto takes it where the processor multiplies it."),
    ),
    # A short-list network trains on all words of its list.
    of_models("network energy mixture",
        option("--samples loss__n_noise", values.POSITIVE, 512,
            "Noise samples of a mini-batch, or with --loss nce of an example. With "
            "--loss auto this option chooses --loss importance."),
    ),
    of_models("network shortlist mixture",
        option("--direct/--no-direct output__direct", None, False,
            "Direct connections from the features to the output units."),
        option("--dropout", values.SHARES, (0.05, 0.1, 0.15),
            "Share of the features and hidden units that each example leaves out; "
            "or three shares: of the features, the hidden units, and their "
            "projection."),
    ),
    of_models(BY_MINUTES,
        option("--text", ["documents", "running"], None,
            "A line is a document (by default), or the lines are one text in its "
            "order, whose context goes on across lines. With --continue the default "
            "is that of the model."),
        flag("--adapt",
            "Mix in a cache of the last 500 words of the document or running text; "
            "compare scores only with those of models that adapt, too."),
        option("--members", None, None,
            "Models to train, of ngrams, classes and network, separated by commas."),
        option("--set settings", values.SETTING, None,
            "Fix a choice: ngram_order, n_classes, spelling, epochs, or a "
            "parameter of NeuralLM.", multiple=True),
        option("--recipe", EXISTING, None,
            "Train as this model was, without a clock: of the same text the same "
            "model."),
        option("--continue continued", EXISTING, None,
            "Go on from this model for --minutes more, with its --text, --adapt and "
            "--members."),
        ERRORS,
    ),
)  # fmt: skip
