"""Inspection of fitted models: predictions, words, displays, and model cards."""

from nplm.inspection.card import model_card
from nplm.inspection.feature_maps import FeatureMap, FeaturesDisplay, feature_map
from nplm.inspection.next_words import NextWordsDisplay
from nplm.inspection.perplexity import PerplexityDisplay
from nplm.inspection.predictions import (
    ExpectedWords,
    Surprisals,
    context_effects,
    expected_words,
    surprisals,
)
from nplm.inspection.training import TrainingDisplay
from nplm.inspection.weights import MixtureWeightsDisplay
from nplm.inspection.words import nearest_words, suggestions

__all__ = [
    "ExpectedWords", "FeatureMap", "FeaturesDisplay", "MixtureWeightsDisplay",
    "NextWordsDisplay", "PerplexityDisplay", "Surprisals", "TrainingDisplay",
    "context_effects", "expected_words", "feature_map", "model_card", "nearest_words",
    "suggestions", "surprisals",
]  # fmt: skip
