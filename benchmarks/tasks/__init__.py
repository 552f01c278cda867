"""Classifiers and detectors beside other methods."""
