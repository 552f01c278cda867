"""Counts, back-off models, and the n-gram estimators."""
