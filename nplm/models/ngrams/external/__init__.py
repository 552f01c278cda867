"""Estimation in bounded memory: sort n-grams on disk, merge them, build the trie."""
