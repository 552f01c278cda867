"""The public names, and where each is; nplm loads a module when it is first asked."""

from nplm.base.exceptions import CheckpointError as CheckpointError
from nplm.base.exceptions import DivergenceError as DivergenceError
from nplm.formats.loading import ModelFile as ModelFile
from nplm.formats.loading import load as load
from nplm.formats.saving.files import save as save
from nplm.models.adaptation.adapted_reading import adapted_log_prob as adapted_log_prob
from nplm.models.adaptation.cache_lm import CacheLM as CacheLM
from nplm.models.adaptation.neural_cache_lm import NeuralCacheLM as NeuralCacheLM
from nplm.models.auto.auto_lm import AutoLM as AutoLM
from nplm.models.auto.auto_recipe import AutoRecipe as AutoRecipe
from nplm.models.classes.class_lm import ClassLM as ClassLM
from nplm.models.classes.word_classes import WordClasses as WordClasses
from nplm.models.classes.word_tree import word_tree as word_tree
from nplm.models.mixtures.changed_words import boost_words as boost_words
from nplm.models.mixtures.changed_words import limit_vocabulary as limit_vocabulary
from nplm.models.mixtures.class_expansion import expand_classes as expand_classes
from nplm.models.mixtures.mixture_lm import MixtureLM as MixtureLM
from nplm.models.mixtures.shortlist_lm import ShortlistLM as ShortlistLM
from nplm.models.mixtures.static_mixture import aligned as aligned
from nplm.models.mixtures.static_mixture import static_mixture as static_mixture
from nplm.models.mixtures.uniform_lm import UniformLM as UniformLM
from nplm.models.neural.energy_lm import EnergyLM as EnergyLM
from nplm.models.neural.neural_lm import NeuralLM as NeuralLM
from nplm.models.neural.options.features import Features as Features
from nplm.models.neural.options.losses import NCE as NCE
from nplm.models.neural.options.losses import Exact as Exact
from nplm.models.neural.options.losses import Importance as Importance
from nplm.models.neural.options.outputs import Classes as Classes
from nplm.models.neural.options.outputs import Softmax as Softmax
from nplm.models.neural.options.outputs import Tree as Tree
from nplm.models.neural.options.solvers import SGD as SGD
from nplm.models.neural.options.solvers import Adam as Adam
from nplm.models.neural.tiers import available_tiers as available_tiers
from nplm.models.neural.tiers import use_tier as use_tier
from nplm.models.neural.trainer import Trainer as Trainer
from nplm.models.ngrams.backoff_model import BackoffLM as BackoffLM
from nplm.models.ngrams.interpolated_trigram import (
    InterpolatedTrigram as InterpolatedTrigram,
)
from nplm.models.ngrams.kneser_ney import KneserNeyLM as KneserNeyLM
from nplm.models.ngrams.looked_up_lm import KenlmLM as KenlmLM
from nplm.models.ngrams.looked_up_lm import QuantizedLM as QuantizedLM
from nplm.models.versions import show_versions as show_versions
from nplm.text.decoding.decoders import flashlight_lm as flashlight_lm
from nplm.text.decoding.decoders import pyctcdecode_lm as pyctcdecode_lm
from nplm.text.decoding.rescoring import Rescorer as Rescorer
from nplm.text.decoding.shallow_fusion import ShallowFusion as ShallowFusion
from nplm.text.embeddings import cooccurrence_embeddings as cooccurrence_embeddings
from nplm.text.lm.scorer import Scorer as Scorer
from nplm.text.lm.scorings import neg_bits_per_character as neg_bits_per_character
from nplm.text.lm.scorings import neg_bits_per_token as neg_bits_per_token
from nplm.text.lm.scorings import neg_perplexity as neg_perplexity
from nplm.text.lm.text_lm import TextLM as TextLM
from nplm.text.lm.text_scores import TextScores as TextScores
from nplm.text.lm.text_scores import TokenScores as TokenScores
from nplm.text.subwords.subwords import Subwords as Subwords
from nplm.text.tasks.lm_classifier import LMClassifier as LMClassifier
from nplm.text.tasks.lm_detector import LMDetector as LMDetector
from nplm.text.tasks.lm_detector import OddToken as OddToken
from nplm.text.tokenizer import Tokenizer as Tokenizer
from nplm.text.vocabulary import Vocabulary as Vocabulary
from nplm.text.windows import contiguous_split as contiguous_split
from nplm.text.windows import windows as windows

__version__: str
