"""Atomic files, compressed files, and files of arrays."""
