"""What the kernels of a team share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nplm._kernels.neural._inputs import Activations
from nplm._kernels.neural._loops import Scratch, Tier
from nplm._kernels.neural._solvers import Parameter, Solver
from nplm.base.array_types import State

Kernel = Any  # a compiled object of a part or a solver, of a class for each kind
Trained = dict[str, Parameter]  # parameters in the form that kernels take, by name


@dataclass(frozen=True)
class Workspace:
    """What the kernels of one team are made of."""

    tier: Tier
    scratch: Scratch
    activations: Activations
    trained: Trained
    features: Kernel  # kernel of the features
    inputs: Any  # the part of the network
    masks: Any  # `dropout.Masks`
    output_state: State  # of `Output.initial_state`; empty when scoring
    memory: State  # of `Tanh.initial_memory`; empty where windows are scored alone
    first: int  # id of the word of the first row of E
    n_members: int  # threads that share the rows
    member: int  # number of this team among those that share mini-batches
    worker: int  # number of this team among those that train the same parameters
    n_workers: int
    solver: Solver | None  # None when scoring
