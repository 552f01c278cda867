"""Base class of the options, and the strings that select them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from sklearn.utils._param_validation import InvalidParameterError

from nplm.base.checks import plain
from nplm.base.estimators.bases import Documented
from nplm.base.exceptions import ParameterMessage


class Option(Documented):
    """Base class of the options, of which recipes and networks hold plain copies."""

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {}

    def plain_copy(self) -> Self:
        """Return a copy with Python numbers in place of NumPy's."""
        params = self.get_params(deep=False)
        return type(self)(**{name: plain(value) for name, value in params.items()})

    def settings(self) -> dict[str, object]:
        """Return what identifies a fit: the parameters."""
        return self.get_params(deep=False)


def expanded(
    value: object,
    parameter: str,
    kinds: Mapping[str, type[Option]],
    *others: str,
    model: str,
) -> Any:
    """Return a plain copy of the option that the value of a parameter selects.

    `kinds` are the classes of the options, by the string that selects each with its
    defaults; `others` are further valid strings, which are returned unchanged.
    """
    if isinstance(value, str):
        value = str(value)  # may be a NumPy string
        if value in others:
            return value
        if value in kinds:
            return kinds[value]().plain_copy()
    if not isinstance(value, Option) or not isinstance(value, tuple(kinds.values())):
        names = ", ".join(repr(name) for name in (*others, *kinds))
        options = ", ".join(f"{kind.__name__}(...)" for kind in kinds.values())
        message = ParameterMessage(
            f"{{{parameter}:The {parameter!r} parameter of {model}}} must be one of "
            "{0}, {1}. Got {2!r} instead.", names, options, value,
            advice="", **{parameter: value},
        )  # fmt: skip
        raise InvalidParameterError(message)
    value._validate_params()
    return value.plain_copy()
