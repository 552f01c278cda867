"""Select the kernels that networks use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from nplm._kernels.neural._loops import available_tiers as _available_tiers
from nplm.base.exceptions import parameter_error

_REQUESTED: ContextVar[str | None] = ContextVar("tier", default=None)


def available_tiers(precision: str = "float32") -> list[str]:
    """Return the kernel tiers that this processor can run, fastest first.

    Parameters
    ----------
    precision : {"float32", "float64", "bfloat16"}, default="float32"
        Precision of the network.

    Returns
    -------
    tiers : list of str
        "avx512", "avx2", "neon" and "plain" are nplm's own kernels; "blas" uses the
        matrix products of SciPy. For bfloat16 they are "amx" and "avx512"; "plain"
        emulates them in C, slowly.

    Examples
    --------
    >>> from nplm import available_tiers
    >>> available_tiers()[-2:]
    ['plain', 'blas']
    """
    return _available_tiers(str(precision))  # may be a NumPy string


@contextmanager
def use_tier(name: str) -> Iterator[None]:
    """Train and score networks with the kernels of one tier, in a with statement.

    Parameters
    ----------
    name : str
        One of `available_tiers`. It overrides the environment variable ``NPLM_TIER``.

    Examples
    --------
    >>> import numpy as np
    >>> from nplm import NeuralLM, use_tier, windows
    >>> X, y = windows(np.tile([0, 1, 2, 3], 50), 2)
    >>> lm = NeuralLM(n_words=4, n_hidden=8, max_iter=2, random_state=0).fit(X, y)
    >>> with use_tier("plain"):
    ...     plain = lm.score(X, y)
    >>> bool(abs(lm.score(X, y) - plain) < 1e-5)
    True
    """
    token = _REQUESTED.set(name)
    try:
        yield
    finally:
        _REQUESTED.reset(token)


def multiplies_bfloat16() -> bool:
    """Return whether the tier in use multiplies bfloat16 by instructions for it."""
    tiers = available_tiers("bfloat16")
    tier = _REQUESTED.get() or os.environ.get("NPLM_TIER") or tiers[0]
    return tier in tiers and tier != "plain"


def kernel_tier(precision: str = "float32") -> str:
    """Return the tier in use: the requested one, or the fastest of this processor."""
    tiers = available_tiers(precision)
    requested = _REQUESTED.get() or os.environ.get("NPLM_TIER")
    if precision == "bfloat16" and tiers == ["plain"] and requested != "plain":
        raise parameter_error(
            "{precision} needs a processor that multiplies bfloat16 (AMX or "
            "AVX512_BF16) and kernels built for it (by GCC 11, clang 14 or newer), but "
            "one of them is missing; set {precision:precision}='float32'.",
            precision=precision,
        )
    tier = requested or tiers[0]
    if tier not in tiers:
        raise ValueError(
            f"{tier!r} (from NPLM_TIER or use_tier) is not a kernel tier of this "
            f"processor for {precision}; choose among {', '.join(tiers)}, or unset it."
        )
    return tier
