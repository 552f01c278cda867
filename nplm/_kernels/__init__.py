"""Compiled loops, one idea a file; ``reference`` is their specification in NumPy.

Kernels take typed memoryviews and fill what they are given: no Python object,
no estimator, no print, no stopping rule. Bounds checks are off, so callers
check word ids first (``nplm._base``).
"""
