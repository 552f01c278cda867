"""Extension modules only; everything else is in pyproject.toml."""

import os
from glob import glob

from Cython.Build import cythonize
from setuptools import Extension, setup

# Loops vectorise where they ask for it (omp simd). -ffast-math is not used: at
# link time it would change the floating-point mode of the whole process, and it
# would hide a NaN.
COMPILE_ARGS = [
    "-O3",
    "-fopenmp-simd",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wno-unused-function",  # a header serves two modules
]

# NPLM_DEBUG=1 builds the kernels with bounds checks, to hunt a bad index.
DEBUG = bool(os.environ.get("NPLM_DEBUG"))


def sources(kind: str) -> list[str]:
    """Files of a kind among the kernels."""
    return sorted(glob(f"nplm/_kernels/**/*.{kind}", recursive=True))


extensions = [
    Extension(
        path.removesuffix(".pyx").replace(os.sep, "."),
        [path],
        extra_compile_args=COMPILE_ARGS,
        include_dirs=["nplm/_kernels/neural", "nplm/_kernels/neural/tiers"],
        depends=sources("h") + sources("pxd"),
    )
    for path in sources("pyx")
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
