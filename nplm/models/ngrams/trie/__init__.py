"""Tries of n-grams: how they are built, looked up in, hashed and quantized."""
