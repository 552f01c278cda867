"""Every fitted estimator in one file, without pickle: `nplm.save` and `nplm.load`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nplm.base.files.tensors import read_tensors, write_tensors
from nplm.formats._model_files import check_writable

__all__ = ["load", "save"]

FORMAT = "nplm model"
VERSION = "2"
# The array that has all but the arrays, as JSON.
OBJECTS = "objects.json"


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted estimator of nplm's in one file, without pickle.

    A file of safetensors: arrays as they are in memory, and JSON for the rest. Any
    estimator of nplm goes in, with all that it is made of: models, mixtures of them,
    `TextLM`, vocabularies, classes, and scikit-learn's ``Pipeline`` and
    ``FrozenEstimator`` of them.

    Parameters
    ----------
    model : estimator
        A fitted estimator.
    path : path-like
        The file to write. It takes its place when all is written.

    Raises
    ------
    TypeError
        If the model, or one of its parameters, is of a kind that is not known.
    NotFittedError
        If it is not fitted.
    OSError
        If `path` cannot be written, before any work is done.

    See Also
    --------
    load : Gives the estimator back.
    nplm.formats.save_binary : n-grams alone, to be mapped without being read.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import nplm
    >>> X, y = nplm.windows(np.tile([0, 1, 2, 3], 50), 2)
    >>> lm = nplm.NeuralLM(n_words=4, n_hidden=8, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nplm.save(lm, f"{folder}/model")
    ...     again = nplm.load(f"{folder}/model")
    >>> bool((again.log_prob(X, y) == lm.log_prob(X, y)).all())
    True
    """
    check_writable(path)
    if not hasattr(model, "get_params"):
        raise TypeError(f"model must be an estimator of nplm's, got {model!r:.200}.")
    check_is_fitted(model)
    # Late, in both: Pipeline would make `import nplm` slower by a quarter.
    from nplm.formats.saving.values import Encoder

    encoder = Encoder(model)
    text = json.dumps(encoder.objects, allow_nan=False).encode()
    arrays = {OBJECTS: np.frombuffer(text, np.uint8)} | encoder.arrays
    write_tensors(path, arrays, {"format": FORMAT, "version": VERSION})


def load(path: str | os.PathLike[str], *, mmap: bool = True) -> Any:
    """Load an estimator that `save` wrote.

    All of the file is read once, compared with its checksums, and seen to be what a fit
    leaves: sizes, types, ids, order, and probabilities that sum to 1. So a file that is
    damaged, or that comes from someone you do not trust, is refused and runs no code.

    Parameters
    ----------
    path : path-like
        The file. With `mmap` it must stay as it is while the model is in use.
    mmap : bool, default=True
        Whether n-grams and counts stay in the file, mapped into memory read-only: what
        they take is then shared by all processes that load them. The numbers of a
        network, which can be set and trained, are copied in any case.

    Returns
    -------
    model : estimator
        It gives the same bits as the one that was saved, and goes on where that was: to
        be fitted further, cloned, or saved again.

    Raises
    ------
    ValueError
        If the file is none of ``save``'s, of another version, damaged, or has something
        of which this nplm knows nothing.
    OSError
        If it cannot be read.

    Notes
    -----
    The sum of the probabilities is that after every context of n-grams, and follows
    from the way in which the others are computed. A `BackoffLM` that did not sum to 1
    when it was saved, as one read from another tool's file may, does not either.
    """
    from nplm.formats.saving.values import Decoder

    path = Path(path)
    try:
        arrays, metadata = read_tensors(path, mmap=mmap)
        if metadata.get("format") != FORMAT:
            raise ValueError("it is no model that nplm.save wrote")
        if metadata.get("version") != VERSION:
            raise ValueError(
                f"it is of version {metadata.get('version')!r:.80}, and this nplm "
                f"reads version {VERSION!r}"
            )
        if OBJECTS not in arrays:
            raise ValueError(f"{OBJECTS} is missing")
        objects = json.loads(arrays.pop(OBJECTS).tobytes())
        with np.errstate(all="ignore"):  # of numbers that are then refused
            model = Decoder(objects, arrays).estimator
        check_is_fitted(model)
        return model
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{path} cannot be loaded: {str(error).rstrip('.')}. Copy it again, or "
            "save the model again with this nplm; if it is a file of another kind, "
            "nplm.formats may read it."
        ) from error
