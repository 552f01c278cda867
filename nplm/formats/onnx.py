"""ONNX: a fitted network as a graph that other runtimes score with."""

from __future__ import annotations

import os

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nplm.base.array_types import AnyArray
from nplm.base.exceptions import optional_module
from nplm.base.files.atomic_files import check_writable
from nplm.formats._model_files import writing
from nplm.models.neural.fitted_network import trained_network
from nplm.models.neural.network.hidden import NORM_EPSILON
from nplm.models.neural.neural_lm import NeuralLM

# Versions of 2022, which runtimes since then read.
OPSET, IR_VERSION = 17, 8
# Limit of a file of protocol buffers.
MAX_BYTES = (1 << 31) - (1 << 20)


def write_onnx(model: NeuralLM, path: str | os.PathLike[str]) -> None:
    """Write a network as an ONNX file, for onnxruntime and others to score with.

    Parameters
    ----------
    model : NeuralLM
        A fitted network that ends in a softmax: with or without direct connections,
        hidden units, senses, distant words, or ``tied``; trained with any ``loss``.
    path : path-like
        The file to write. It takes its place when all is written.

    Raises
    ------
    TypeError
        If the model is no `NeuralLM`.
    NotFittedError
        If it is not fitted.
    ValueError
        If it ends in classes or a tree, has ``order=1``, or is too large for ONNX (2
        GB).
    ImportError
        If the package onnx is not installed.
    OSError
        If `path` cannot be written, before any work is done.

    Notes
    -----
    The graph's input is ``contexts``, int64 of shape (n, n_features_in_), the nearest
    word in the last column; ids are unchecked. Its output is ``log_proba``, of shape
    (n, n_words_): ``predict_log_proba``, up to rounding. A model of
    ``precision="bfloat16"`` is written with its weights, which are float32, and is
    computed in that.

    Examples
    --------
    ::

        nplm.formats.write_onnx(lm, "lm.onnx")
        session = onnxruntime.InferenceSession("lm.onnx")
        [log_proba] = session.run(None, {"contexts": X.astype(np.int64)})
    """
    check_writable(path)
    if not isinstance(model, NeuralLM):
        raise TypeError(
            f"{type(model).__name__} is no NeuralLM, which is what an ONNX file is "
            "made of; of a mixture, write the network among its members."
        )
    check_is_fitted(model)
    architecture = trained_network(model).architecture
    if architecture.output.name != "softmax":
        raise ValueError(
            f"the network ends in output={architecture.output.name!r}, and only a "
            "softmax is written to ONNX: fit one with output='softmax'."
        )
    if architecture.n_memory:
        raise ValueError(
            f"the network has LSTM cells (n_memory={architecture.n_memory}), which are "
            "not written to ONNX: fit one with n_memory=0."
        )
    if architecture.order == 1:
        raise ValueError("order=1 looks at no word: there is nothing to compute.")
    arrays = trained_network(model).parameters.named().values()
    size = sum(array.nbytes for array in arrays if array is not None)
    if size > MAX_BYTES:
        raise ValueError(
            f"the weights take {size:,} bytes, and an ONNX file has {MAX_BYTES:,} at "
            "most."
        )
    with writing(path) as file:
        file.write(_Graph(model).encoded())


class _Graph:
    """Nodes and weights of a network, from contexts to log-probabilities."""

    def __init__(self, model: NeuralLM) -> None:
        onnx = optional_module("onnx", "write_onnx")
        self._helper, self._numpy = onnx.helper, onnx.numpy_helper
        self._model = model
        self._nodes: list[object] = []
        self._weights: list[object] = []

    def encoded(self) -> bytes:
        """Return the bytes of the file."""
        model, helper = self._model, self._helper
        x = self._inputs()
        a = []
        if len(model.d_):
            a = [self._hidden(x)]
        logits = self._logits(x, a)
        self._op("LogSoftmax", logits, result="log_proba", axis=1)
        kind = helper.np_dtype_to_tensor_dtype(model.C_.dtype)
        n_outcomes = len(model.b_)
        shape = ["n", model.n_features_in_]
        int64 = helper.np_dtype_to_tensor_dtype(np.dtype(np.int64))
        graph = helper.make_graph(
            self._nodes, "nplm",
            [helper.make_tensor_value_info("contexts", int64, shape)],
            [helper.make_tensor_value_info("log_proba", kind, ["n", n_outcomes])],
            self._weights,
        )  # fmt: skip
        graph_file = helper.make_model(
            graph, producer_name="nplm", ir_version=IR_VERSION,
            opset_imports=[helper.make_opsetid("", OPSET)],
        )  # fmt: skip
        return graph_file.SerializeToString()

    def _inputs(self) -> str:
        """Return x: the features of the words, then averages of distant ones."""
        model, inputs = self._model, trained_network(self._model).parts.inputs
        C = self._weight("C", model.C_)
        m = model.C_.shape[1]

        def words(n: int) -> str:
            places = np.arange(model.n_features_in_)[::-1][:n].astype(np.int64)
            return self._op("Gather", "contexts", self._weight("at", places), axis=1)

        def nearest(n: int) -> str:
            return self._op("Gather", C, words(n), axis=0)

        def flat(features: str, n: int) -> str:
            shape = self._weight("shape", np.array([-1, n * m]))
            return self._op("Reshape", features, shape)

        near = nearest(inputs.n_window)
        if model.S_ is not None:
            near = self._with_senses(near, words(inputs.n_window), inputs.n_window)
        x = flat(near, inputs.n_window)
        P = model.P_
        if P is None:
            return x
        averages = self._op("MatMul", self._weight("P", P), nearest(P.shape[1]))
        return self._op("Concat", x, flat(averages, len(P)), axis=1)

    def _with_senses(self, near: str, words: str, n: int) -> str:
        """Add the senses of n words, mixed by what the other words are."""
        S, Q, m = self._model.S_, self._model.Q_, self._model.C_.shape[1]
        rows = self._op("Min", words, self._weight("last", np.array([len(S) - 1])))

        def of_words(array: AnyArray) -> str:  # a row a sense
            senses = self._op("Gather", self._weight("senses", array), rows, axis=0)
            return shaped(senses, -1, n, S.shape[1] // m, m)

        def shaped(values: str, *shape: int) -> str:
            return self._op("Reshape", values, self._weight("shape", np.array(shape)))

        total = self._op("ReduceSum", near, self._weight("axis", np.array([1])))
        others = shaped(self._op("Sub", total, near), -1, n, m, 1)
        shares = self._op("Softmax", self._op("MatMul", of_words(Q), others), axis=2)
        mixed = self._op("Mul", shares, of_words(S))
        axis = self._weight("axis", np.array([2]))
        return self._op("Add", near, self._op("ReduceSum", mixed, axis, keepdims=0))

    def _hidden(self, x: str) -> str:
        """Return tanh(d + Hx), with what residual blocks add to it."""
        model = self._model
        a = self._op("Tanh", self._affine(x, model.H_, model.d_))
        for block in model.blocks_:
            gain = self._weight("gain", np.ones_like(model.d_))
            v = self._op("LayerNormalization", a, gain, epsilon=NORM_EPSILON)
            u = self._op("Relu", self._affine(v, block.H, block.d))
            a = self._op("Add", a, self._product(u, block.U))
        return a

    def _logits(self, x: str, a: list[str]) -> str:
        """Return b + Ua + Wx, or b + Cs with s = R [a | x]."""
        model = self._model
        b, U, W, R = model.b_, model.U_, model.W_, model.R_
        if R is not None:
            direct = R.shape[1] > len(model.d_)
            z = [*a, x] if direct else a
            joint = self._op("Concat", *z, axis=1) if len(z) > 1 else z[0]
            s = self._op("MatMul", joint, self._weight("R", R.T))
            return self._affine(s, model.C_, b)
        if a and U is not None:
            logits = self._affine(a[0], U, b)
            if W is None:
                return logits
            return self._op("Add", logits, self._product(x, W))
        return self._affine(x, W, b)

    def _affine(self, x: str, weights: AnyArray, biases: AnyArray) -> str:
        return self._op("Add", self._product(x, weights), self._weight("b", biases))

    def _product(self, x: str, weights: AnyArray) -> str:
        return self._op("MatMul", x, self._weight("W", weights.T))

    def _weight(self, name: str, array: AnyArray) -> str:
        name = f"{name}{len(self._weights)}"
        array = np.ascontiguousarray(array)
        self._weights.append(self._numpy.from_array(array, name))
        return name

    def _op(self, kind: str, *inputs: str, result: str = "", **options: object) -> str:
        result = result or f"{kind}{len(self._nodes)}"
        node = self._helper.make_node(kind, list(inputs), [result], **options)
        self._nodes.append(node)
        return result
