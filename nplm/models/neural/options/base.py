"""Base class of the options."""

from __future__ import annotations

from typing import ClassVar, Self

from nplm.base.checks import plain
from nplm.base.estimators.bases import Documented


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
