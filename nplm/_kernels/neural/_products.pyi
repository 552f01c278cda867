from typing import Any

from nplm._kernels.neural._loops import Scratch, Tier

def products_of(
    tier: Tier, *args: Any, columns: int, **options: Any
) -> Products | Bfloat16Products: ...

class Products:
    def __init__(
        self,
        tier: Tier,
        scratch: Scratch,
        *,
        columns: int,
        n_outputs: int,
        stride: int,
        tile_rows: int,
        n_slopes: int = -1,
        column: int = 0,
        E_stride: int = -1,
    ) -> None: ...

class Bfloat16Products(Products):
    def __init__(
        self,
        tier: Tier,
        scratch: Scratch,
        *,
        columns: int,
        n_outputs: int,
        stride: int,
        tile_rows: int,
        **options: Any,
    ) -> None: ...

class Recurrence:
    def __init__(
        self,
        tier: Tier,
        scratch: Scratch,
        *,
        rows: int,
        n: int,
        columns: int,
        scoring: bool,
        rounds: bool,
    ) -> None: ...
