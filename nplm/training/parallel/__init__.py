"""Threads and processes."""
