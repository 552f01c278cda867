"""Which kernels the networks use: the processor's fastest, or those asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from nplm._kernels.neural._loops import available_tiers as _available_tiers

__all__ = ["available_tiers", "kernel_tier", "use_tier"]

_ASKED: ContextVar[str | None] = ContextVar("tier", default=None)


def available_tiers(precision: str = "float32") -> list[str]:
    """Kernel tiers that this processor can run, fastest first.

    Parameters
    ----------
    precision : {"float32", "float64", "bfloat16"}, default="float32"
        Of the network.

    Returns
    -------
    tiers : list of str
        "avx512", "avx2", "neon" and "plain" are nplm's own kernels, "blas" has
        SciPy's matrix products. In bfloat16 there are "amx" and "avx512"; "plain" does
        in C what a processor would do, slowly.

    Examples
    --------
    >>> from nplm import available_tiers
    >>> available_tiers()[-2:]
    ['plain', 'blas']
    """
    tiers: list[str] = _available_tiers(str(precision))  # not NumPy's text
    return tiers


@contextmanager
def use_tier(name: str) -> Iterator[None]:
    """Context in which networks are trained and scored by the kernels of one tier.

    Parameters
    ----------
    name : str
        One of `available_tiers`. It goes before the environment's ``NPLM_TIER``.

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
    token = _ASKED.set(name)
    try:
        yield
    finally:
        _ASKED.reset(token)


def kernel_tier(precision: str = "float32") -> str:
    """Kernels in use: those asked for, or else the fastest of this processor.

    bfloat16's "plain" is used only when it is asked for.
    """
    tiers = available_tiers(precision)
    asked = _ASKED.get() or os.environ.get("NPLM_TIER")
    if precision == "bfloat16" and tiers == ["plain"] and asked != "plain":
        raise ValueError(
            "precision='bfloat16' needs a processor that multiplies bfloat16 (AMX or "
            "AVX512_BF16) and kernels built for it (by GCC 11, clang 14 or newer), and "
            "one of them is missing here: set precision='float32'."
        )
    tier = asked or tiers[0]
    if tier not in tiers:
        raise ValueError(
            f"{tier!r} (of NPLM_TIER or use_tier) is no kernel tier of this processor "
            f"for {precision}: choose among {', '.join(tiers)}, or ask for none."
        )
    return tier
