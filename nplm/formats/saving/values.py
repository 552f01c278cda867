"""Estimators as JSON and arrays, and back: of known kinds, and nothing else.

What JSON has stands for itself; anything else is an object with one key that names its
kind. Estimators are a list in which each refers to earlier ones by number, so that what
is shared (a member in two places, the arrays of two trees) stays so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from nplm.base.files.tensors import is_storable
from nplm.base.fitted import Fitted
from nplm.base.generators import plain_state, taken_state
from nplm.models.classes.class_lm import ClassLM
from nplm.models.classes.word_classes import WordClasses
from nplm.models.mixtures.mixture_lm import MixtureLM
from nplm.models.mixtures.shortlist_lm import ShortlistLM
from nplm.models.mixtures.uniform_lm import UniformLM
from nplm.models.neural.energy_lm import EnergyLM
from nplm.models.neural.neural_lm import NeuralLM
from nplm.models.ngrams.backoff_lm import BackoffLM
from nplm.models.ngrams.interpolated_trigram import InterpolatedTrigram
from nplm.models.ngrams.kneser_ney import KneserNeyLM
from nplm.text.lm.text_lm import TextLM
from nplm.text.tokenizer import FLAGS, Tokenizer, check_length, compiled
from nplm.text.vocabulary import Vocabulary
from nplm.text.word_rows import is_keyed_vectors

__all__ = ["Decoder", "Encoder"]

OWN = (
    BackoffLM, ClassLM, EnergyLM, InterpolatedTrigram, KneserNeyLM, MixtureLM, NeuralLM,
    ShortlistLM, TextLM, Tokenizer, UniformLM, Vocabulary, WordClasses,
)  # fmt: skip
# Of these parameters are all: what is fitted is in the estimators among them.
OTHERS = (FrozenEstimator, Pipeline)
KINDS = {kind.__name__: kind for kind in OWN + OTHERS}
ENTRY = {"kind", "params", "fitted"}
NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
# What is raised by things that are not of the kind that they should be.
UNFIT = (ValueError, TypeError, LookupError, AttributeError, OverflowError)
# Long lists of words are an array of their bytes, which is quicker read than JSON.
MANY = 100
# What a file may ask for by naming its parts again and again. Estimators, counted each
# time that one has them: so many, and so many for each in the file.
LEAST_MEMBERS, MOST_MEMBERS = 1000, 4
# Steps that showing an estimator may take, a millisecond each: scikit-learn shows what
# is in a parameter twice, and so an estimator 2**n times if it is in n others.
MOST_SHOWN = 5000
# Lists and objects of JSON in one another: showing an estimator recurses.
MOST_NESTED = 16
# Bytes of arrays, counted each time that one is named.
LEAST_NAMED, MOST_NAMED = 1 << 20, 16


class Encoder:
    """Takes an estimator apart.

    Attributes
    ----------
    objects : list of dict
        Estimators and random generators, as JSON has them; the last is the one that
        was given.
    arrays : dict of str to ndarray
        Those that they refer to.
    """

    def __init__(self, estimator: Any) -> None:
        self.objects: list[dict[str, Any]] = []
        self.arrays: dict[str, NDArray[Any]] = {}
        # By id, with the thing itself: while it lives nothing else has that id.
        self._known: dict[int, tuple[Any, Any]] = {}
        self._encoded(estimator, "model")

    def _encoded(self, value: Any, where: str) -> Any:
        """Give a value as JSON has it; `where` it is, for names and errors."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": str(value)}
        if value is None or type(value) in (bool, int, float, str):
            return value
        if type(value) is list:
            return self._list(value, where)
        if type(value) is tuple:
            return {"tuple": self._items(value, where)}
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

    def _encoded_once(self, value: Any, where: str) -> Any:
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
        if isinstance(value, np.random.RandomState):
            state = plain_state(value.get_state(legacy=False))
            return self._object("RandomState", state, None)
        if type(value) in KINDS.values():
            return self._estimator(value, where)
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise TypeError(
            f"nplm.save knows no {kind}, which {where} is: it saves nplm's estimators, "
            "Pipelines and FrozenEstimators of them, and parameters that are numbers, "
            "text, arrays, sparse matrices or lists of them; joblib.dump is for others."
        )

    def _list(self, values: list[Any], where: str) -> Any:
        if len(values) > MANY and all(type(value) is str for value in values):
            return {"words": self._encoded(_bytes_of(values), where)}
        return self._items(values, where)

    def _items(self, values: Any, where: str) -> list[Any]:
        return [self._encoded(value, f"{where}.{i}") for i, value in enumerate(values)]

    def _estimator(self, estimator: Any, where: str) -> dict[str, Any]:
        fitted = None
        _check_parameters(estimator)
        if isinstance(estimator, OWN):
            try:
                check_is_fitted(estimator)
                fitted = estimator._fitted()
            except NotFittedError:
                pass
        params = estimator.get_params(deep=False)
        return self._object(type(estimator).__name__, params, fitted)

    def _object(self, kind: str, params: Any, fitted: Any) -> dict[str, Any]:
        own = self._encoded(params, f"{kind}.params")
        left = self._encoded(fitted, kind)
        entry = {"kind": kind, "params": own, "fitted": left}
        _check_nesting(entry)
        self.objects.append(entry)
        return {"object": len(self.objects) - 1}


class Decoder:
    """Puts an estimator together again, of which nothing is believed.

    Parameters
    ----------
    objects : list
        As JSON gave it.
    arrays : dict of str to ndarray
        Those that it refers to.

    Raises
    ------
    ValueError
        Saying what is wrong.
    """

    def __init__(self, objects: Any, arrays: dict[str, NDArray[Any]]) -> None:
        self._arrays, self._used = arrays, set[str]()
        self._objects: list[Any] = []
        # Of each estimator and of the one in hand: those in it with itself, and the
        # steps that it takes to show it.
        self._sizes: list[tuple[int, int]] = []
        self._size = self._shown = 1
        own = sum(array.nbytes for array in arrays.values())
        self._n_bytes_left = LEAST_NAMED + MOST_NAMED * own
        self._patterns: dict[tuple[str, int], re.Pattern[str]] = {}
        if not isinstance(objects, list) or not objects:
            raise ValueError("it lists no estimators")
        for entry in objects:
            if not isinstance(entry, dict) or entry.keys() != ENTRY:
                raise ValueError(f"{entry!r:.80} is no estimator")
            _check_nesting(entry)
            self._size = self._shown = 1
            self._objects.append(self._object(**entry))
            self._sizes.append((self._size, self._shown))
        if self._used != arrays.keys():
            raise ValueError(f"nothing is known of {min(arrays.keys() - self._used)}")

    @property
    def estimator(self) -> Any:
        """The last of the estimators."""
        return self._objects[-1]

    def _decoded(self, node: Any) -> Any:
        if node is None or type(node) in (bool, int, float, str):
            return node
        if isinstance(node, list):
            return [self._decoded(item) for item in node]
        if not isinstance(node, dict) or len(node) != 1:
            raise ValueError(f"{node!r:.80} is no value")
        [(kind, value)] = node.items()
        decode = DECODED.get(kind)
        if decode is None:
            raise ValueError(f"nothing is known of a {kind!r:.80}")
        try:
            return decode(self, value)
        except UNFIT as error:
            raise ValueError(f"{value!r:.80} is no {kind} ({error})") from error

    def _dict(self, items: dict[str, Any]) -> dict[str, Any]:
        return {name: self._decoded(item) for name, item in items.items()}

    def _array(self, name: str) -> NDArray[Any]:
        array = self._arrays[name]
        self._used.add(name)
        self._n_bytes_left -= array.nbytes
        if self._n_bytes_left < 0:
            raise ValueError(
                f"it names its arrays {MOST_NAMED} times and more, which may be an "
                "attempt to fill the memory"
            )
        return array

    def _words(self, node: Any) -> list[str]:
        # As a list words take many times the bytes of their array.
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

    def _reference(self, number: int) -> Any:
        if type(number) is not int or number < 0:
            raise ValueError(f"{number!r:.80} is no number of an estimator")
        found = self._objects[number]
        size, shown = self._sizes[number]
        self._size, self._shown = self._size + size, self._shown + 2 * shown
        # Whatever goes through the members of an estimator takes as long.
        most = LEAST_MEMBERS + MOST_MEMBERS * len(self._objects)
        if self._size > most or self._shown > MOST_SHOWN:
            raise ValueError(
                f"an estimator has more than {most} others in it, counted each time "
                "that they are named, or too many in one another"
            )
        return found

    def _pattern(self, given: list[Any]) -> re.Pattern[str]:
        pattern, flags = given
        if (pattern, flags) not in self._patterns:
            # Of all together: each takes as long as another of its length.
            check_length("".join([pattern, *(text for text, _ in self._patterns)]))
            self._patterns[pattern, flags] = compiled(pattern, flags)
        return self._patterns[pattern, flags]

    def _object(self, kind: Any, params: Any, fitted: Any) -> Any:
        given, shown = self._decoded(params), self._shown
        left, self._shown = self._decoded(fitted), shown  # which is not shown
        if not isinstance(given, dict) or not isinstance(kind, str):
            raise ValueError(f"{kind!r:.80} has no parameters")
        if kind == "RandomState":
            return _generator(given)
        if kind not in KINDS:
            raise ValueError(
                f"it has a {kind!r:.80}, of which this nplm knows nothing: a newer one "
                "may have written it"
            )
        unknown = given.keys() - KINDS[kind]._get_param_names()
        if unknown:
            raise ValueError(
                f"{kind} has the parameter {min(unknown)!r}, of which this nplm knows "
                "nothing: a newer one may have written it"
            )
        return _made(KINDS[kind], given, left)


DECODED: dict[str, Callable[[Decoder, Any], Any]] = {
    "array": Decoder._array,
    "dict": Decoder._dict,
    "float": lambda _, text: NUMBERS[text],
    "object": Decoder._reference,
    "pattern": Decoder._pattern,
    "sparse": Decoder._sparse,
    "tuple": lambda self, items: tuple(self._decoded(list(items))),
    "words": Decoder._words,
}


def _check_nesting(entry: dict[str, Any]) -> None:
    """Raise where values of an estimator are too deep in one another to be shown."""
    level: list[Any] = [entry]
    for _ in range(MOST_NESTED):
        inside = [n.values() if isinstance(n, dict) else n for n in level]
        level = [n for nodes in inside for n in nodes if isinstance(n, (dict, list))]
        if not level:
            return
    raise ValueError(
        f"{entry['kind']!r:.80} has lists, tuples or dicts that are too deep in one "
        "another"
    )


def _made(kind: Any, params: dict[str, Any], left: Any) -> Any:
    """Make an estimator as its parameters say, and as a fit left it."""
    try:
        estimator = kind(**params)
        _check_parameters(estimator)
        if left is not None:
            fitted = Fitted(left)
            estimator._restore(fitted)
            fitted.done()
    except UNFIT as error:
        raise ValueError(f"of its {kind.__name__}, {error}") from error
    return estimator


def _check_parameters(estimator: Any) -> None:
    """Raise where an estimator has parameters that it cannot be fitted with."""
    if isinstance(estimator, FrozenEstimator):
        if not isinstance(estimator.estimator, (*OWN, *OTHERS)):
            raise TypeError(
                f"nplm.save knows no {type(estimator.estimator).__name__}, which is "
                "frozen here; nplm.formats may have a file for it."
            )
        return
    estimator._validate_params()
    if isinstance(estimator, Pipeline):
        estimator._validate_steps()
        # What a cache has is pickled.
        if estimator.memory is not None:
            raise TypeError(
                f"a Pipeline with memory={estimator.memory!r:.80} is not saved: its "
                "cache is made of pickles; set memory=None."
            )


def _bytes_of(words: list[str]) -> NDArray[np.uint8]:
    # Surrogates too, which a word may have that was not decoded: all words are told.
    text = "\n".join(word.replace("\\", "\\\\").replace("\n", "\\n") for word in words)
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)


def _words_of(data: NDArray[np.uint8]) -> list[str]:
    text = data.tobytes().decode("utf-8", "surrogatepass")
    words = text.split("\n")
    if "\\" in text:
        back = {"\\\\": "\\", "\\n": "\n"}
        words = [re.sub(r"\\.", lambda m: back[m[0]], word) for word in words]
    return words


def _generator(given: dict[str, Any]) -> np.random.RandomState:
    fitted = Fitted(given, "RandomState.")
    state = taken_state(fitted)
    fitted.done()
    generator = np.random.RandomState(0)
    generator.set_state(state)
    return generator
