"""Compiled outputs of the network."""
