"""Extension modules only; everything else is in pyproject.toml."""

import os
from glob import glob

from Cython.Build import cythonize
from setuptools import Extension, setup

# Let the compiler reorder sums so that loops vectorise. The flags are named one
# by one: -ffast-math at link time would change the floating-point mode of the
# whole process, and -ffinite-math-only would hide a NaN.
COMPILE_ARGS = [
    "-O3",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-signed-zeros",
    "-fassociative-math",
    "-Wno-unused-function",
]

# NPLM_DEBUG=1 builds the kernels with bounds checks, to hunt a bad index.
DEBUG = bool(os.environ.get("NPLM_DEBUG"))

extensions = [
    Extension(
        path.removesuffix(".pyx").replace(os.sep, "."),
        [path],
        extra_compile_args=COMPILE_ARGS,
        depends=glob("nplm/_kernels/*.h") + glob("nplm/_kernels/*.pxd"),
    )
    for path in sorted(glob("nplm/_kernels/*.pyx"))
]

setup(
    ext_modules=cythonize(
        extensions,
        nthreads=os.cpu_count() or 1,
        compiler_directives={
            "language_level": "3",
            "boundscheck": DEBUG,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": DEBUG,
            "embedsignature": True,
        },
    ),
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
