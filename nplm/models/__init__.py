"""The language models, a family a folder."""
