"""What the kernels of a team share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nplm._kernels.neural._inputs import Activations
from nplm._kernels.neural._loops import Scratch, Tier
from nplm.models.neural.network.array_types import State

Kernel = Any  # a compiled object of a part or a solver: its module has no types
Trained = dict[str, Kernel]  # parameters in the form that kernels take, by name


@dataclass(frozen=True)
class Workspace:
    """What the kernels of one team are made of.

    - `trained`: all parameters, by name
    - `features`: kernel of the features
    - `inputs`: the part of the network
    - `masks`: the `dropout.Masks`
    - `output_state`: see `Output.initial_state`; empty when scoring
    - `memory`: state of the hidden units (`Tanh.initial_memory`), empty where each
      window is scored alone
    - `first`: id of the word of the first row of E
    - `n_members`: number of threads that share the rows: 1 unless the output's
      `rows_are_shared`
    - `member`: number of this team among those that share the examples of mini-batches
    - `worker`, `n_workers`: number of this team, and how many teams train the same
      parameters
    - `solver`: kernel of the solver; None when scoring
    """

    tier: Tier
    scratch: Scratch
    activations: Activations
    trained: Trained
    features: Kernel
    inputs: Any
    masks: Any
    output_state: State
    memory: State
    first: int
    n_members: int
    member: int
    worker: int
    n_workers: int
    solver: Kernel | None
