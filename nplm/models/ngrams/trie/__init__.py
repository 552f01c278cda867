"""Tries of n-grams: building, look-up, hash tables and quantization."""
