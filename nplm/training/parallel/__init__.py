"""Threads, and processes."""
