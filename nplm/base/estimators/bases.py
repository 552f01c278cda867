"""Base classes of scikit-learn, with types for mypy.

scikit-learn has no types, and mypy accepts any parameters of a class whose base it does
not know.
"""

# ruff: noqa: D101, F401

from __future__ import annotations

from typing import Any, Self

MYPY = False  # mypy takes it for True
if MYPY:

    class BaseEstimator:
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        @classmethod
        def _get_param_names(cls) -> list[str]: ...
        def _validate_params(self) -> None: ...
        def __sklearn_tags__(self) -> Any: ...
        def __getstate__(self) -> dict[str, Any]: ...
        def __setstate__(self, state: dict[str, Any]) -> None: ...
        def __getattr__(self, name: str) -> Any: ...

    class ClassifierMixin:
        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...

    class DensityMixin: ...

    class MetaEstimatorMixin: ...

    class OutlierMixin: ...

    class TransformerMixin: ...

    class _BaseComposition(BaseEstimator): ...

else:
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        DensityMixin,
        MetaEstimatorMixin,
        OutlierMixin,
        TransformerMixin,
    )
    from sklearn.utils.metaestimators import _BaseComposition
