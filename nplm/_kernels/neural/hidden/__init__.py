"""Compiled hidden units of the network."""
