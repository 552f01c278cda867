"""Threads, processes and clusters: speed, memory, and models of the cost."""
