"""nplm: neural and n-gram language models with a scikit-learn API.

The models of Bengio, Ducharme, Vincent and Jauvin (2003), *A Neural
Probabilistic Language Model*, Journal of Machine Learning Research 3.
"""

import nplm._kernels  # noqa: F401 (first: unbuilt sources say what to run)
from nplm._base import neg_perplexity
from nplm._versions import show_versions
from nplm.classes.class_lm import ClassLM
from nplm.classes.word_classes import WordClasses
from nplm.classes.word_tree import word_tree
from nplm.exceptions import CheckpointError, DivergenceError
from nplm.formats.saving.saving import load, save
from nplm.mixtures.mixture_lm import MixtureLM
from nplm.mixtures.shortlist_lm import ShortlistLM
from nplm.mixtures.uniform_lm import UniformLM
from nplm.neural.energy_lm import EnergyLM
from nplm.neural.neural_lm import NeuralLM
from nplm.neural.tiers import available_tiers, use_tier
from nplm.neural.training.trainer import Trainer
from nplm.ngrams.backoff_lm import BackoffLM
from nplm.ngrams.interpolated_trigram import InterpolatedTrigram
from nplm.ngrams.kneser_ney import KneserNeyLM
from nplm.ngrams.packed_lm import PackedLM
from nplm.text.embeddings import cooccurrence_embeddings
from nplm.text.scorer import Scorer
from nplm.text.text_lm import TextLM
from nplm.text.token_scores import TokenScores
from nplm.text.tokenizer import Tokenizer
from nplm.text.vocabulary import Vocabulary
from nplm.text.windows import contiguous_split, windows

__version__ = "0.1.0.dev0"

__all__ = [
    "BackoffLM",
    "CheckpointError",
    "ClassLM",
    "DivergenceError",
    "EnergyLM",
    "InterpolatedTrigram",
    "KneserNeyLM",
    "MixtureLM",
    "NeuralLM",
    "PackedLM",
    "Scorer",
    "ShortlistLM",
    "TextLM",
    "TokenScores",
    "Tokenizer",
    "Trainer",
    "UniformLM",
    "Vocabulary",
    "WordClasses",
    "available_tiers",
    "contiguous_split",
    "cooccurrence_embeddings",
    "load",
    "neg_perplexity",
    "save",
    "show_versions",
    "use_tier",
    "windows",
    "word_tree",
]
