"""The kernels in plain NumPy: same names, same results, and easy to read.

This is the specification against which the compiled kernels are tested; the
docstring of a kernel without a twin gives the reason.
"""
