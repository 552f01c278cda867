"""Estimators of known types as JSON and arrays, and back.

Values of JSON's types are stored as they are. Any other value is a JSON object with one
key, which names its kind. Estimators are a list in which each refers to earlier ones by
index, so shared members and arrays stay shared.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

import nplm
from nplm.base.array_types import Bytes
from nplm.base.encoded_words import EncodedWords
from nplm.base.files.tensors import is_storable
from nplm.base.fitted import INVALID_VALUE_ERRORS, Fitted, Saved, restore, saved
from nplm.base.generators import plain_state, taken_state
from nplm.models.auto.auto_recipe import AutoRecipe
from nplm.models.neural.options.base import Option
from nplm.text.subwords.models import library_of, packed, unpacked
from nplm.text.word_rows import is_keyed_vectors
from nplm.text.words.splitting import FLAGS, check_length, compiled

# scikit-learn's, beside nplm's: what is fitted is in the estimators among their
# parameters.
OTHERS = {kind.__name__: kind for kind in (FrozenEstimator, Pipeline)}
ENTRY = {"kind", "params", "fitted"}
NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
# Longer lists of words are stored as an array of bytes, which loads faster than JSON.
MAX_JSON_WORDS = 100
# Limits on repeated references in a file. Members of an estimator, counted once per
# reference: this many, and this many more for each estimator in the file.
FREE_MEMBERS, MEMBERS_PER_ESTIMATOR = 1000, 4
# Steps of an estimator's representation, a millisecond each: scikit-learn shows a
# parameter twice, and so an estimator nested in n others 2**n times.
MAX_SHOWN_STEPS = 5000
# Depth of nested lists and objects of JSON: the representation recurses.
MAX_NESTING = 16
# Bytes of arrays, counted once per reference: this many, and this many times the
# arrays of the file.
FREE_ARRAY_BYTES, MAX_ARRAY_REUSE = 1 << 20, 16


class Encoder:
    """Encode a fitted estimator as JSON objects and the arrays that they refer to.

    The last of `objects`, estimators and random generators, is the estimator itself.
    """

    def __init__(
        self, estimator: Any, *, optimizer: bool = True, dtype: str | None = None
    ) -> None:
        self._optimizer, self._dtype, self.n_networks = optimizer, dtype, 0
        self.objects: list[dict[str, object]] = []
        self.arrays: dict[str, NDArray[Any]] = {}
        # By id, with the value itself, which keeps its id from being reused.
        self._known: dict[int, tuple[object, object]] = {}
        self._data: dict[bytes, object] = {}
        self._encoded(estimator, "model")

    def _encoded(self, value: object, where: str) -> object:
        """Return a value as JSON; `where` is its path, for names and errors."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": str(value)}
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, EncodedWords):  # those of a mapped file
            value = value.tolist()
        if type(value) is list:
            return self._list(value, where)
        if type(value) is tuple:
            return {"tuple": self._items(value, where)}
        if type(value) is frozenset:  # an event; its order is not always the same
            return {"frozenset": sorted(self._items(value, where), key=json.dumps)}
        if isinstance(value, dict) and all(type(key) is str for key in value):
            items = value.items()
            return {"dict": {k: self._encoded(v, f"{where}.{k}") for k, v in items}}
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
            return {"pattern": [value.pattern, value.flags & int(FLAGS)]}
        if id(value) in self._known:
            return self._known[id(value)][1]
        known = self._encoded_once(value, where)
        self._known[id(value)] = value, known
        return known

    def _encoded_once(self, value: Any, where: str) -> object:
        if isinstance(value, np.ndarray) and is_storable(value.dtype):
            name = where if where not in self.arrays else f"{where} {len(self.arrays)}"
            self.arrays[name] = value
            return {"array": name}
        if (
            isinstance(value, np.ndarray)
            and value.ndim == 1
            and value.dtype.kind in "OU"
        ):
            return self._list(value.tolist(), where)  # words
        if is_keyed_vectors(value):
            words_and_rows = list(value.key_to_index), value.vectors
            return {"tuple": self._items(words_and_rows, where)}
        if issparse(value):
            matrix = csr_array(value, copy=True)
            parts = [matrix.data, matrix.indices, matrix.indptr]
            return {"sparse": [list(matrix.shape), *self._items(parts, where)]}
        if isinstance(value, AutoRecipe):
            return {"recipe": self._encoded(value.as_dict(), where)}
        if isinstance(value, np.random.RandomState):
            state = plain_state(value.get_state(legacy=False))
            return self._object("RandomState", state, None)
        if _kind(type(value).__name__) is type(value):
            return self._estimator(value, where)
        library = library_of(value)
        if library is not None:
            return {"subwords": [library, self._bytes(packed(value), where)]}
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise TypeError(
            f"nplm.save does not support {where}, a {kind}: it saves nplm's "
            "estimators, Pipelines and FrozenEstimators of them, and parameters that "
            "are numbers, text, arrays, sparse matrices or lists of them; use "
            "joblib.dump for others."
        )

    def _bytes(self, data: bytes, where: str) -> object:
        """Return the array of these bytes; equal ones have one array."""
        if data not in self._data:
            self._data[data] = self._encoded(np.frombuffer(data, np.uint8), where)
        return self._data[data]

    def _list(self, values: list[Any], where: str) -> object:
        if len(values) > MAX_JSON_WORDS and all(type(value) is str for value in values):
            return {"words": self._encoded(_bytes_of(values), where)}
        return self._items(values, where)

    def _items(self, values: Iterable[object], where: str) -> list[object]:
        return [self._encoded(value, f"{where}.{i}") for i, value in enumerate(values)]

    def _estimator(self, estimator: Any, where: str) -> dict[str, object]:
        fitted = None
        _check_parameters(estimator)
        if isinstance(estimator, Saved):
            try:
                check_is_fitted(estimator)
                fitted = saved(self._lightened(estimator))
            except NotFittedError:
                pass
        params = estimator.get_params(deep=False)
        return self._object(type(estimator).__name__, params, fitted)

    def _lightened(self, estimator: object) -> Any:
        """Return a fitted network without what is not to be saved."""
        lightened = getattr(estimator, "lightened", None)
        if lightened is None:
            return estimator
        self.n_networks += 1
        return lightened(optimizer=self._optimizer, dtype=self._dtype)

    def _object(self, kind: str, params: object, fitted: object) -> dict[str, object]:
        entry = {
            "kind": kind,
            "params": self._encoded(params, f"{kind}.params"),
            "fitted": self._encoded(fitted, kind),
        }
        _check_nesting(entry)
        self.objects.append(entry)
        return {"object": len(self.objects) - 1}


class Decoder:
    """Decode an estimator from untrusted JSON and arrays, or raise ValueError."""

    def __init__(self, objects: object, arrays: dict[str, NDArray[Any]]) -> None:
        self._arrays, self._used = arrays, set[str]()
        self._objects: list[object] = []
        # For each estimator, and for the current one: the number of its members and
        # itself, and the steps of its representation.
        self._sizes: list[tuple[int, int]] = []
        self._size = self._shown = 1
        n_bytes = sum(array.nbytes for array in arrays.values())
        self._n_bytes_left = FREE_ARRAY_BYTES + MAX_ARRAY_REUSE * n_bytes
        self._patterns: dict[tuple[str, int], re.Pattern[str]] = {}
        self._unit_models: dict[tuple[str, str], object] = {}
        if not isinstance(objects, list) or not objects:
            raise ValueError("it lists no estimators")
        for entry in objects:
            if not isinstance(entry, dict) or entry.keys() != ENTRY:
                raise ValueError(f"{entry!r:.80} is not an estimator")
            _check_nesting(entry)
            self._size = self._shown = 1
            self._objects.append(self._object(**entry))
            self._sizes.append((self._size, self._shown))
        if self._used != arrays.keys():
            raise ValueError(f"{min(arrays.keys() - self._used)} is unused")

    @property
    def estimator(self) -> Any:
        """The saved estimator, the last of the list."""
        return self._objects[-1]

    def _decoded(self, node: object) -> Any:
        if node is None or type(node) in (bool, int, float, str):
            return node
        if isinstance(node, list):
            return [self._decoded(item) for item in node]
        if not isinstance(node, dict) or len(node) != 1:
            raise ValueError(f"{node!r:.80} is not a value")
        [(kind, value)] = node.items()
        decode = DECODERS.get(kind)
        if decode is None:
            raise ValueError(f"{kind!r:.80} is not a known kind of value")
        try:
            return decode(self, value)
        except INVALID_VALUE_ERRORS as error:
            raise ValueError(
                f"{value!r:.80} is not a valid {kind} ({error})"
            ) from error

    def _dict(self, items: dict[str, object]) -> dict[str, Any]:
        return {name: self._decoded(item) for name, item in items.items()}

    def _array(self, name: str) -> NDArray[Any]:
        array = self._arrays[name]
        self._used.add(name)
        self._n_bytes_left -= array.nbytes
        if self._n_bytes_left < 0:
            raise ValueError(
                f"it refers to its arrays more than {MAX_ARRAY_REUSE} times, which may "
                "be an attempt to fill the memory"
            )
        return array

    def _words(self, node: Any) -> list[str]:
        # A list of words takes many times the memory of the array.
        if node["array"] in self._used:
            raise ValueError(f"{node['array']!r:.80} is used twice")
        return _words_of(self._decoded(node))

    def _sparse(self, value: list[Any]) -> csr_array:
        shape, *parts = value
        # SciPy sorts indices in place.
        data, indices, indptr = (np.array(self._decoded(part)) for part in parts)
        matrix = csr_array((data, indices, indptr), shape=tuple(shape))
        matrix.check_format(full_check=True)
        return matrix

    def _subwords(self, value: list[Any]) -> object:
        library, node = value
        key = library, node["array"]
        data = self._decoded(node)
        if key not in self._unit_models:
            self._unit_models[key] = unpacked(library, data.tobytes())
        return self._unit_models[key]

    def _reference(self, number: int) -> object:
        if type(number) is not int or number < 0:
            raise ValueError(f"{number!r:.80} is not the index of an estimator")
        size, shown = self._sizes[number]
        self._size, self._shown = self._size + size, self._shown + 2 * shown
        # A walk over the members of an estimator takes this many steps.
        most = FREE_MEMBERS + MEMBERS_PER_ESTIMATOR * len(self._objects)
        if self._size > most or self._shown > MAX_SHOWN_STEPS:
            raise ValueError(
                f"an estimator has more than {most} members, counted once per "
                "reference, or they are nested too deeply"
            )
        return self._objects[number]

    def _pattern(self, value: list[Any]) -> re.Pattern[str]:
        pattern, flags = value
        if (pattern, flags) not in self._patterns:
            # The limit is on all patterns together: each takes time by its length.
            check_length("".join([pattern, *(text for text, _ in self._patterns)]))
            self._patterns[pattern, flags] = compiled(pattern, flags)
        return self._patterns[pattern, flags]

    def _object(self, kind: object, params: object, fitted: object) -> object:
        values, shown = self._decoded(params), self._shown
        # The fitted state is not part of the representation.
        state, self._shown = self._decoded(fitted), shown
        if not isinstance(values, dict) or not isinstance(kind, str):
            raise ValueError(f"{kind!r:.80} has no parameters")
        if kind == "RandomState":
            items, generator = Fitted(values, "RandomState."), np.random.RandomState(0)
            generator.set_state(taken_state(items))
            items.done()
            return generator
        known = _kind(kind)
        if known is None:
            raise ValueError(
                f"it has a {kind!r:.80}, which this nplm does not support: a newer "
                "nplm may have written it"
            )
        unknown = values.keys() - known._get_param_names()
        if unknown:
            raise ValueError(
                f"{kind} has the parameter {min(unknown)!r}, which this nplm does not "
                "support: a newer nplm may have written it"
            )
        try:
            estimator = known(**values)
            _check_parameters(estimator)
            if state is not None:
                restore(estimator, state)
        except INVALID_VALUE_ERRORS as error:
            raise ValueError(f"in its {kind}, {error}") from error
        return estimator


DECODERS: dict[str, Callable[[Decoder, Any], object]] = {
    "array": Decoder._array,
    "dict": Decoder._dict,
    "float": lambda _, text: NUMBERS[text],
    "frozenset": lambda self, items: frozenset(map(self._decoded, items)),
    "object": Decoder._reference,
    "pattern": Decoder._pattern,
    "recipe": lambda self, node: AutoRecipe.of(self._decoded(node)),
    "sparse": Decoder._sparse,
    "subwords": Decoder._subwords,
    "tuple": lambda self, items: tuple(self._decoded(item) for item in items),
    "words": Decoder._words,
}


def _kind(name: str) -> Any:
    """Return the class of estimators or options of this name, None if not supported."""
    if name in OTHERS:
        return OTHERS[name]
    kind = getattr(nplm, name, None)
    is_option = isinstance(kind, type) and issubclass(kind, Option)
    return kind if is_option or getattr(kind, "can_be_saved", False) else None


def _check_nesting(entry: dict[str, object]) -> None:
    """Raise if an estimator has values nested too deeply to be shown."""
    level: list[Any] = [entry]
    for _ in range(MAX_NESTING):
        inside = [n.values() if isinstance(n, dict) else n for n in level]
        level = [n for nodes in inside for n in nodes if isinstance(n, (dict, list))]
        if not level:
            return
    raise ValueError(
        f"{entry['kind']!r:.80} has lists, tuples or dicts that are nested too deeply"
    )


def _check_parameters(estimator: Any) -> None:
    """Raise if an estimator has invalid parameters."""
    if isinstance(estimator, FrozenEstimator):
        frozen = type(estimator.estimator).__name__
        if _kind(frozen) is None:
            raise TypeError(
                f"nplm.save does not support a frozen {frozen}; nplm.formats may have "
                "a file for it."
            )
        return
    estimator._validate_params()
    if isinstance(estimator, Pipeline):
        estimator._validate_steps()
        # A cache holds pickles.
        if estimator.memory is not None:
            raise TypeError(
                f"a Pipeline with memory={estimator.memory!r:.80} cannot be saved: its "
                "cache consists of pickles; set memory=None."
            )


def _bytes_of(words: list[str]) -> Bytes:
    # Surrogates, of words that were not decoded, must survive too.
    text = "\n".join(word.replace("\\", "\\\\").replace("\n", "\\n") for word in words)
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)


def _words_of(data: Bytes) -> list[str]:
    text = data.tobytes().decode("utf-8", "surrogatepass")
    words = text.split("\n")
    if "\\" in text:
        unescaped = {"\\\\": "\\", "\\n": "\n"}
        words = [re.sub(r"\\.", lambda m: unescaped[m[0]], word) for word in words]
    return words
