"""The kernels in plain NumPy: same names, same results, and easy to read.

This is the specification that the compiled kernels are tested against; a kernel
without a twin says in its docstring why.
"""
