"""Extension modules only; everything else is in pyproject.toml."""

import os
import platform
import shutil
import sys
import sysconfig
from glob import glob
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import PlatformError

# Loops vectorise where they ask for it (omp simd). -ffast-math is not used: at
# link time it would change the floating-point mode of the whole process, and it
# would hide a NaN.
COMPILE_ARGS = [
    "-O3",
    "-fopenmp-simd",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-wrapv",  # Python's own: with it GCC keeps numbers of an inner loop in memory
    "-Wno-unused-function",  # a header serves two modules
]
LINK_ARGS: list[str] = []

# NPLM_DEBUG=1 builds the kernels with bounds checks, to hunt a bad index.
DEBUG = bool(os.environ.get("NPLM_DEBUG"))
# NPLM_SANITIZE=address,undefined (or thread) builds them with sanitizers: .ci/sanitize.
# Overflow is looked for too.
SANITIZERS = os.environ.get("NPLM_SANITIZE")
if SANITIZERS:
    COMPILE_ARGS += ["-O1", "-g1", f"-fsanitize={SANITIZERS}"]
    LINK_ARGS.append(f"-fsanitize={SANITIZERS}")
elif not DEBUG:
    # Python's own flags ask for what a debugger reads, which is most of a module.
    COMPILE_ARGS.append("-g0")
    LINK_ARGS += ["-Wl,--strip-all"] if sys.platform == "linux" else []

# What every module of Cython's needs, memoryviews above all, is compiled once: else it
# would be two thirds of each module.
SHARED = "nplm._kernels._cyutility"

COMPILER_MISSING = (
    "nplm's kernels are compiled, and there is no compiler {!r} here: install GCC 10, "
    "clang 14 or newer (on Debian or Ubuntu: apt install build-essential python3-dev), "
    "or name one, as CC=clang."
)
MICROSOFT = (
    "nplm's kernels are compiled by GCC or clang; Microsoft's compiler lacks their "
    "vector types and atomic operations. On Windows use WSL, where nplm installs as on "
    "Linux."
)
BIG_ENDIAN = (
    "nplm's kernels need a little-endian processor, such as x86-64 or ARM: they read "
    "numbers as they are in memory. This one is big-endian ({})."
)
HEADERS_MISSING = (
    "nplm's kernels are compiled, and {} is not there: install Python's headers (on "
    "Debian or Ubuntu: apt install python3-dev)."
)


class BuildKernels(build_ext):
    """Cython's modules, when all is there that it takes to compile them."""

    def build_extensions(self) -> None:
        """Translate to C, as many at once as there are cores, and compile."""
        self.check_compiler()
        translated = cythonize(
            self.extensions,
            nthreads=os.cpu_count() or 1,
            force=DEBUG,  # C files of the other directives are as new
            shared_utility_qualified_name=SHARED,
            compiler_directives={
                "language_level": "3",
                "boundscheck": DEBUG,
                "wraparound": False,
                "cdivision": True,
                "initializedcheck": DEBUG,
                "embedsignature": True,
                # Threads share what is only read, or written by C's atomics. A State of
                # nplm.kenlm, which scoring overwrites, belongs to one thread.
                "freethreading_compatible": True,
            },
        )
        c_files = {extension.name: extension.sources for extension in translated}
        for extension in self.extensions:
            extension.sources = c_files[extension.name]
        super().build_extensions()
        if DEBUG:  # the next installation is without the checks
            for files in c_files.values():
                Path(files[0]).unlink()

    def check_compiler(self) -> None:
        """Raise before a minute's work where the kernels cannot be compiled."""
        if sys.byteorder != "little":
            raise PlatformError(BIG_ENDIAN.format(platform.machine()))
        if self.compiler.compiler_type == "msvc":
            raise PlatformError(MICROSOFT)
        command = getattr(self.compiler, "compiler_so", None)
        if command and shutil.which(command[0]) is None:
            raise PlatformError(COMPILER_MISSING.format(command[0]))
        header = Path(sysconfig.get_path("include"), "Python.h")
        if not header.exists():
            raise PlatformError(HEADERS_MISSING.format(header))


def sources(kind: str) -> list[str]:
    """Files of a kind among the kernels."""
    return sorted(glob(f"nplm/_kernels/**/*.{kind}", recursive=True))


def extension(path: str) -> Extension:
    """Give the module of a source file."""
    return Extension(
        os.path.splitext(path)[0].replace(os.sep, "."),
        [path],
        extra_compile_args=COMPILE_ARGS,
        extra_link_args=LINK_ARGS,
        include_dirs=[
            "nplm/_kernels/neural",
            "nplm/_kernels/neural/tiers",
            numpy.get_include(),
        ],
        depends=sources("h") + sources("pxd"),
    )


setup(
    ext_modules=[
        extension(SHARED.replace(".", os.sep) + ".c"),
        *map(extension, sources("pyx")),
    ],
    cmdclass={"build_ext": BuildKernels},
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
