"""Estimation in bounded memory: n-grams sorted on disk, merged, and read in order."""
