"""Base classes of language models, and constraints of parameters."""
