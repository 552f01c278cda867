"""nplm: neural and n-gram language models with a scikit-learn API.

The models of Bengio, Ducharme, Vincent and Jauvin (2003), *A Neural
Probabilistic Language Model*, Journal of Machine Learning Research 3.
"""

import nplm._kernels  # noqa: F401 (first: unbuilt sources say what to run)
from nplm.backoff_lm import BackoffLM
from nplm.checkpoint import CheckpointError
from nplm.class_lm import ClassLM
from nplm.kneser_ney import KneserNeyLM
from nplm.mixture import MixtureLM
from nplm.neural import NeuralLM
from nplm.ngram import InterpolatedTrigram
from nplm.text import Tokenizer, Vocabulary
from nplm.text_lm import TextLM
from nplm.training import DivergenceError
from nplm.uniform import UniformLM
from nplm.windows import contiguous_split, windows
from nplm.word_classes import WordClasses

__version__ = "0.1.0.dev0"

__all__ = [
    "BackoffLM",
    "CheckpointError",
    "ClassLM",
    "DivergenceError",
    "InterpolatedTrigram",
    "KneserNeyLM",
    "MixtureLM",
    "NeuralLM",
    "TextLM",
    "Tokenizer",
    "UniformLM",
    "Vocabulary",
    "WordClasses",
    "contiguous_split",
    "windows",
]
