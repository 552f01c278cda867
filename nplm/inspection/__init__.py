"""What a model has learned, shown: similar words, and the words it expects."""

from nplm.inspection.words import nearest_words, suggestions

__all__ = ["nearest_words", "suggestions"]
