"""n-gram models: counts, estimators and back-off models."""
