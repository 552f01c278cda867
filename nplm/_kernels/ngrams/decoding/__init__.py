"""Compiled scores word by word, for decoders."""
