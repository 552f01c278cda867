"""The public names, and where each is; nplm loads a module when it is first asked."""

from nplm._base import neg_perplexity as neg_perplexity
from nplm._versions import show_versions as show_versions
from nplm.classes.class_lm import ClassLM as ClassLM
from nplm.classes.word_classes import WordClasses as WordClasses
from nplm.classes.word_tree import word_tree as word_tree
from nplm.exceptions import CheckpointError as CheckpointError
from nplm.exceptions import DivergenceError as DivergenceError
from nplm.formats.saving.saving import load as load
from nplm.formats.saving.saving import save as save
from nplm.mixtures.mixture_lm import MixtureLM as MixtureLM
from nplm.mixtures.shortlist_lm import ShortlistLM as ShortlistLM
from nplm.mixtures.uniform_lm import UniformLM as UniformLM
from nplm.neural.energy_lm import EnergyLM as EnergyLM
from nplm.neural.neural_lm import NeuralLM as NeuralLM
from nplm.neural.tiers import available_tiers as available_tiers
from nplm.neural.tiers import use_tier as use_tier
from nplm.neural.training.trainer import Trainer as Trainer
from nplm.ngrams.backoff_lm import BackoffLM as BackoffLM
from nplm.ngrams.interpolated_trigram import InterpolatedTrigram as InterpolatedTrigram
from nplm.ngrams.kneser_ney import KneserNeyLM as KneserNeyLM
from nplm.ngrams.quantized_lm import QuantizedLM as QuantizedLM
from nplm.text.embeddings import cooccurrence_embeddings as cooccurrence_embeddings
from nplm.text.scorer import Scorer as Scorer
from nplm.text.text_lm import TextLM as TextLM
from nplm.text.token_scores import TokenScores as TokenScores
from nplm.text.tokenizer import Tokenizer as Tokenizer
from nplm.text.vocabulary import Vocabulary as Vocabulary
from nplm.text.windows import contiguous_split as contiguous_split
from nplm.text.windows import windows as windows

__version__: str
__all__: list[str]
