"""Save fitted estimators without pickle, and read them: `nplm.save`."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nplm.base.exceptions import parameter_error
from nplm.base.files.atomic_files import check_writable
from nplm.base.files.tensors import TensorFile, write_tensors
from nplm.formats._model_files import SAVED

# Name of the array that holds the estimators as JSON.
OBJECTS = "objects.json"


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    optimizer: bool = True,
    dtype: str | None = None,
) -> None:
    """Save a fitted estimator of nplm in one file, without pickle.

    The file is in safetensors format: arrays as they are in memory, and JSON for the
    rest. It can hold any estimator of nplm with all its parts: models, mixtures of
    them, `TextLM`, vocabularies, classes, and scikit-learn's ``Pipeline`` and
    ``FrozenEstimator`` of them.

    Parameters
    ----------
    model : estimator
        A fitted estimator.
    path : path-like
        The file to write. An existing file is replaced once the new one is complete.
    optimizer : bool, default=True
        Whether the state of the optimizer of a network is saved: the moments of
        `Adam`, twice as large as the weights. Without it every score is the same, and a
        further ``partial_fit`` starts with moments of 0, as after a change of solver.
    dtype : {"float16"}, optional
        Store the weights of networks in half precision. They are float32 again when the
        file is loaded, rounded to 11 bits. By default they are stored as they are.

    Raises
    ------
    TypeError
        If the type of the model, or of one of its parameters, is not supported.
    ValueError
        If `dtype` is given, and the model has no network, a network with
        ``precision="float64"``, or weights beyond 65504.
    NotFittedError
        If it is not fitted.
    OSError
        If `path` cannot be written, before any work is done.

    See Also
    --------
    load : Load models from files of any kind.
    nplm.formats.save_binary : Save n-grams alone, to be mapped into memory.

    Notes
    -----
    Arrays are written as they are in memory, without a copy, so that saving takes
    little more memory than the model has: the words, encoded, and with `dtype` the
    rounded weights. A model whose n-grams are mapped from a file of ``save_binary`` is
    unpacked into memory first, which takes about 50 bytes for each n-gram, and half of
    that as long as the model is there. ``nplm convert`` writes mapped and ARPA files of
    any size in bounded memory.

    Examples
    --------
    >>> import numpy as np
    >>> import nplm
    >>> X, y = nplm.windows(np.tile([0, 1, 2, 3], 50), 2)
    >>> lm = nplm.NeuralLM(n_words=4, n_hidden=8, random_state=0).fit(X, y)
    >>> nplm.save(lm, "model")
    >>> again = nplm.load("model")
    >>> bool((again.log_prob(X, y) == lm.log_prob(X, y)).all())
    True

    A small file, to share:

    >>> nplm.save(lm, "model", optimizer=False, dtype="float16")
    >>> again = nplm.load("model")
    >>> bool(abs(again.score(X, y) - lm.score(X, y)) < 1e-3)
    True
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(
            f"path must be the name of a file, got {path!r:.200}: call save(model, "
            "path), the model first."
        )
    check_writable(path)
    if dtype not in (None, "float16"):
        raise ValueError(f'dtype must be "float16" or None, got {dtype!r}.')
    if not hasattr(model, "get_params"):
        raise TypeError(f"model must be an estimator of nplm, got {model!r:.200}.")
    check_is_fitted(model)
    # Imported here and in `load`: Pipeline would slow `import nplm` by a quarter.
    from nplm.formats.saving.values import Encoder

    encoder = Encoder(model, optimizer=optimizer, dtype=dtype)
    if dtype is not None and encoder.n_networks == 0:
        raise parameter_error(
            "{dtype} is of the weights of a network, and this {0} has none: leave it "
            "out. N-grams have {bits} instead (nplm.formats.save_binary).",
            type(model).__name__, dtype=dtype, bits=8,
        )  # fmt: skip
    text = json.dumps(encoder.objects, allow_nan=False).encode()
    arrays = {OBJECTS: np.frombuffer(text, np.uint8)} | encoder.arrays
    write_tensors(path, arrays, SAVED.metadata())


def read_saved(file: TensorFile, *, mmap: bool) -> Any:
    """Read the estimator of an open file, as `nplm.load` does.

    Raises ValueError, TypeError or RecursionError, without the file's name.
    """
    from nplm.formats.saving.values import Decoder

    if not SAVED.holds(file):
        raise ValueError("it is not a model that nplm.save wrote")
    arrays = file.plain_arrays(mmap=mmap)
    if OBJECTS not in arrays:
        raise ValueError(f"{OBJECTS} is missing")
    objects = json.loads(arrays.pop(OBJECTS).tobytes())
    with np.errstate(all="ignore"):  # invalid numbers raise an error below
        model = Decoder(objects, arrays).estimator
    check_is_fitted(model)
    return model
