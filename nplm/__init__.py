"""nplm: neural and n-gram language models with a scikit-learn API.

The models of Bengio, Ducharme, Vincent and Jauvin (2003), *A Neural
Probabilistic Language Model*, Journal of Machine Learning Research 3.
"""

from nplm.checkpoint import CheckpointError
from nplm.mixture import MixtureLM
from nplm.neural import NeuralLM
from nplm.ngram import InterpolatedTrigram, KneserNeyLM
from nplm.text import Tokenizer, Vocabulary
from nplm.text_lm import TextLM
from nplm.training import DivergenceError
from nplm.windows import contiguous_split, windows

__version__ = "0.1.0.dev0"

__all__ = [
    "CheckpointError",
    "DivergenceError",
    "InterpolatedTrigram",
    "KneserNeyLM",
    "MixtureLM",
    "NeuralLM",
    "TextLM",
    "Tokenizer",
    "Vocabulary",
    "contiguous_split",
    "windows",
]
