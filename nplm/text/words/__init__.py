"""Words of strings, and their ids: what is fitted or read from a file, as values."""
