from nplm._kernels.neural._inputs import Activations
from nplm._kernels.neural._loops import Scratch, Tier

class Chunks:
    def __init__(
        self,
        tier: Tier,
        scratch: Scratch,
        at: Activations,
        *,
        n_words: int,
        size: int,
        tile_rows: int,
        columns: int,
    ) -> None: ...
