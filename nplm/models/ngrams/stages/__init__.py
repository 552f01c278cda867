"""Stages of estimations and changes, in memory or in a folder: see `Work`."""
