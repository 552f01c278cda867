"""ARPA files."""
