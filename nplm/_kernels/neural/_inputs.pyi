from typing import Any

from nplm._kernels.neural._features import Features
from nplm._kernels.neural._loops import Scratch, Tier
from nplm._kernels.neural._solvers import Parameter

class Contexts:
    def __init__(self, scratch: Scratch, n_words: int, most: int) -> None: ...

class Activations:
    @property
    def scoring(self) -> bool: ...
    @property
    def learns_inputs(self) -> bool: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def columns(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def n_context(self) -> int: ...
    @property
    def n_inputs(self) -> int: ...
    @property
    def n_hidden(self) -> int: ...
    @property
    def n_columns(self) -> int: ...
    def __init__(
        self,
        tier: Tier,
        scratch: Scratch,
        *,
        batch_size: int,
        scoring: bool,
        n_context: int,
        n_inputs: int,
        n_hidden: int,
        learns_inputs: bool = True,
        n_columns: int | None = None,
    ) -> None: ...
    def apart(self, n_hidden: int, n_inputs: int | None = None) -> Activations: ...
    def positions(self, n_context: int) -> Activations: ...

class Inputs:
    def __init__(self, features: Features, *args: Any, **kwargs: Any) -> None: ...

class Concatenation(Inputs):
    def __init__(
        self, features: Features, n_window: int, *args: Any, **kwargs: Any
    ) -> None: ...

class DistantAverages(Concatenation):
    def __init__(
        self,
        features: Features,
        n_window: int,
        P: Parameter,
        scratch: Scratch,
        *args: Any,
    ) -> None: ...

class MixedSenses(Inputs):
    def __init__(
        self,
        features: Features,
        words: Inputs,
        at: Activations,
        n_window: int,
        S: Parameter,
        Q: Parameter,
        scratch: Scratch,
    ) -> None: ...
