"""Subword units: the libraries' models, characters and bytes."""
