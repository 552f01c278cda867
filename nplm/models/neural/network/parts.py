"""The parts of a network: the shapes of their parameters, and what may be in them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from nplm._kernels.neural._loops import row_stride
from nplm.base.array_types import Array, Counts, Shapes, State
from nplm.models.neural.network.hidden import Block, Tanh
from nplm.models.neural.network.inputs import Concatenation, MixedSenses
from nplm.models.neural.network.outputs.base import Output
from nplm.models.neural.network.parameters import Parameters, aligned_zeros, draw_normal
from nplm.models.neural.network.word_features import Features


class Parts(NamedTuple):
    """The parts of a network; they have sizes, but no parameters."""

    inputs: Concatenation | MixedSenses
    hidden: Tanh
    output: Output
    features: Features

    def output_share(self, n_words: int) -> float:
        """Return the share of the output units in the weights of the products."""
        inputs, hidden, output, _ = self
        n_outputs = hidden.n_activations + output.direct * inputs.n_inputs
        n_weights = output.n_rows(n_words) * n_outputs
        return n_weights / max(1, n_weights + hidden.n_weights(inputs.n_inputs))

    def shapes(self, n_words: int) -> Shapes:
        """Return the shapes of all trained arrays, without padding, by name."""
        inputs, hidden, output, features = self
        n_columns = 1 + (hidden.n_activations if output.weighted else 0)
        n_columns += inputs.n_inputs if output.direct else 0
        H = (hidden.lowest.n_sums, inputs.n_inputs)
        return {
            **({} if features.tied else {"C": (n_words, features.m)}),
            "H": H,
            "d": H[:1],
            "E": (output.n_rows(n_words), n_columns),
            **inputs.shapes(n_words),
            **hidden.shapes(inputs.n_inputs),
            **features.shapes(n_words),
            **output.shapes(features.m, hidden.n_hidden),
        }

    @property
    def n_columns(self) -> int:
        """Number of words of a window that are used."""
        return max(self.inputs.n_context, self.hidden.lowest.n_memory)

    @property
    def visited(self) -> tuple[str, ...]:
        """Names of the arrays of which an update visits few rows."""
        E = ("E",) if self.output.rows_are_visited else ()
        return self.features.visited + self.inputs.visited + E

    def initial(
        self,
        n_words: int,
        counts: Counts,
        rng: np.random.RandomState,
        dtype: DTypeLike,
        rows: slice = slice(None),
        embeddings: Array | None = None,
    ) -> Parameters:
        """Draw parameters, with some output `rows`, from counts of next words."""
        inputs, hidden, output, features = self
        arrays = self.zeros(n_words, dtype, rows)
        draw_normal(arrays["H"], rng, 3.0 / np.sqrt(max(inputs.n_inputs, 1)))
        features.draw_own(arrays, rng, embeddings)
        inputs.draw(arrays, rng)
        hidden.draw(arrays, rng)
        features.draw_shared(arrays, rng, embeddings)
        output.draw(arrays, rng)
        parameters = self.parameters(arrays)
        parameters.set("b", output.initial_biases(n_words, counts)[rows])
        features.settle(parameters)
        return parameters

    def zeros(self, n_words: int, dtype: DTypeLike, rows: slice = slice(None)) -> State:
        """Return all trained arrays, of zeros, with some `rows` of the output units."""
        arrays = {}
        for name, shape in self.shapes(n_words).items():
            if name == "E":
                shape = len(range(*rows.indices(shape[0]))), shape[1]
            arrays[name] = np.zeros(shape, dtype)
            if name == "E" or name == "own":
                is_padded = name == "E" or self.features.tied
                n_columns = row_stride(shape[1]) if is_padded else shape[1]
                arrays[name] = aligned_zeros((shape[0], n_columns), dtype)
        return arrays

    def parameters(self, arrays: State) -> Parameters:
        """Return parameters with these arrays, made by `zeros`."""
        output, features = self.output, self.features
        if features.tied:
            arrays = {"C": arrays["E"][:, : features.m]} | arrays
        return Parameters(
            direct=output.direct, weighted=output.weighted, visited=self.visited,
            derived=features.derived, tied=features.tied, **arrays,
        )  # fmt: skip


def check_sums(parameters: Parameters, parts: Parts) -> None:
    """Raise ValueError if weights are not finite, or sums of them may overflow."""
    arrays = parameters.trained() | {"C": parameters.C}
    size = {k: max(float(a.max(initial=0)), -float(a.min(initial=0)))
            for k, a in arrays.items()}  # fmt: skip
    if not np.isfinite(list(size.values())).all():
        raise ValueError("its weights have NaN or infinite values")
    P = parameters.more.get("P")
    x = size["C"] * max(1.0, 0.0 if P is None else float(np.abs(P).sum(axis=1).max()))
    x += size.get("S", 0.0)  # the mixture weights sum to 1
    sums = [size["d"] + parameters.H.shape[1] * size["H"] * x]
    if "H_next" in size:  # terms of the next word
        sums[0] += parts.features.m * size["H_next"] * size["C"]
        sums.append(len(parameters.d) * size.get("v", 0.0))
    if "Q" in size:
        of_others = 2 * parts.inputs.n_window * size["C"]
        sums.append(parameters.C.shape[1] * size["Q"] * of_others)
    a, h = 1.0, parameters.n_hidden
    if "V" in size:
        sums[0] += h * size["V"]
    for i, block in enumerate(Block.all_of(parameters.more), 1):
        H, d, U = (size[name] for name in Block.names(i))
        of_units = d + H * h**1.5  # the norm of norm(a) is sqrt(h)
        a += len(block.d) * U * of_units
        sums += [of_units, h * a**2]
    z = max(a, x)
    if "R" in size:
        z = parameters.more["R"].shape[1] * size["R"] * z
        sums.append(z)
    sums.append(parameters.n_outputs * size["E"] * max(1.0, z))
    if not max(sums) < np.finfo(parameters.dtype).max / 16:
        raise ValueError("its weights are so large that sums of them overflow")
