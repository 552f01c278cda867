"""nplm: neural and n-gram language models with a scikit-learn API.

The models of Bengio, Ducharme, Vincent and Jauvin (2003), *A Neural
Probabilistic Language Model*, Journal of Machine Learning Research 3.
"""

from importlib import import_module
from typing import Any

import nplm._kernels  # noqa: F401 (first: unbuilt sources say what to run)

__version__ = "0.1.0"

SUBMODULES = ("datasets", "experiments", "formats", "inspection", "kenlm")

# Where each public name is; ``__init__.pyi`` says the same to type checkers.
MODULES = {
    "Adam": "nplm.models.neural.options.solvers",
    "AutoLM": "nplm.models.auto.auto_lm",
    "AutoRecipe": "nplm.models.auto.recipe",
    "BackoffLM": "nplm.models.ngrams.backoff_model",
    "CacheLM": "nplm.models.adaptation.cache_lm",
    "CheckpointError": "nplm.base.exceptions",
    "ClassLM": "nplm.models.classes.class_lm",
    "Classes": "nplm.models.neural.options.outputs",
    "DivergenceError": "nplm.base.exceptions",
    "EnergyLM": "nplm.models.neural.energy_lm",
    "Exact": "nplm.models.neural.options.losses",
    "Features": "nplm.models.neural.options.features",
    "Importance": "nplm.models.neural.options.losses",
    "InterpolatedTrigram": "nplm.models.ngrams.interpolated_trigram",
    "KenlmLM": "nplm.models.ngrams.looked_up_lm",
    "KneserNeyLM": "nplm.models.ngrams.kneser_ney",
    "LMClassifier": "nplm.text.tasks.lm_classifier",
    "LMDetector": "nplm.text.tasks.lm_detector",
    "MixtureLM": "nplm.models.mixtures.mixture_lm",
    "ModelFile": "nplm.formats.model_file",
    "NCE": "nplm.models.neural.options.losses",
    "NeuralCacheLM": "nplm.models.adaptation.neural_cache_lm",
    "NeuralLM": "nplm.models.neural.neural_lm",
    "OddToken": "nplm.text.tasks.lm_detector",
    "QuantizedLM": "nplm.models.ngrams.looked_up_lm",
    "Rescorer": "nplm.text.decoding.rescoring",
    "SGD": "nplm.models.neural.options.solvers",
    "Scorer": "nplm.text.lm.scorer",
    "ShallowFusion": "nplm.text.decoding.shallow_fusion",
    "ShortlistLM": "nplm.models.mixtures.shortlist_lm",
    "Softmax": "nplm.models.neural.options.outputs",
    "Subwords": "nplm.text.subwords.subwords",
    "TextLM": "nplm.text.lm.text_lm",
    "TextScores": "nplm.text.lm.text_scores",
    "TokenScores": "nplm.text.lm.text_scores",
    "Tokenizer": "nplm.text.tokenizer",
    "Trainer": "nplm.models.neural.trainer",
    "Tree": "nplm.models.neural.options.outputs",
    "UniformLM": "nplm.models.mixtures.uniform_lm",
    "Vocabulary": "nplm.text.vocabulary",
    "WordClasses": "nplm.models.classes.word_classes",
    "adapted_log_prob": "nplm.models.adaptation.reading",
    "aligned": "nplm.models.mixtures.static_mixture",
    "available_tiers": "nplm.models.neural.tiers",
    "boost_words": "nplm.models.mixtures.boosted_words",
    "contiguous_split": "nplm.text.windows",
    "cooccurrence_embeddings": "nplm.text.embeddings",
    "expand_classes": "nplm.models.mixtures.class_expansion",
    "flashlight_lm": "nplm.text.decoding.flashlight",
    "limit_vocabulary": "nplm.models.mixtures.limited_vocabulary",
    "load": "nplm.formats.loading",
    "neg_bits_per_character": "nplm.text.lm.scorings",
    "neg_bits_per_token": "nplm.text.lm.scorings",
    "neg_perplexity": "nplm.text.lm.scorings",
    "pyctcdecode_lm": "nplm.text.decoding.pyctcdecode",
    "save": "nplm.formats.saving.files",
    "show_versions": "nplm.models.versions",
    "static_mixture": "nplm.models.mixtures.static_mixture",
    "use_tier": "nplm.models.neural.tiers",
    "windows": "nplm.text.windows",
    "word_tree": "nplm.models.classes.word_tree",
}
__all__ = sorted(MODULES)


def __getattr__(name: str) -> Any:
    """Load what is asked for: most programs need few of the models."""
    if name in SUBMODULES:
        return import_module(f"nplm.{name}")
    if name not in MODULES:
        raise AttributeError(f"module 'nplm' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *SUBMODULES, "mpi", "__version__"})
