"""Base classes and helpers of all estimators."""
