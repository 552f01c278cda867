"""Inspection of fitted models: similar and next words, and matplotlib displays."""

from nplm.inspection.features import FeaturesDisplay
from nplm.inspection.next_words import NextWordsDisplay
from nplm.inspection.perplexity import PerplexityDisplay
from nplm.inspection.training import TrainingDisplay
from nplm.inspection.weights import MixtureWeightsDisplay
from nplm.inspection.words import nearest_words, suggestions

__all__ = [
    "FeaturesDisplay",
    "MixtureWeightsDisplay",
    "NextWordsDisplay",
    "PerplexityDisplay",
    "TrainingDisplay",
    "nearest_words",
    "suggestions",
]
