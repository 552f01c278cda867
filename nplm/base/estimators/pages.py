"""Bases of estimators: their page, errors of parameters, documents as samples."""

from __future__ import annotations

import os
from pathlib import Path

from sklearn.utils import Tags
from sklearn.utils._param_validation import InvalidParameterError

from nplm.base.estimators.bases import BaseEstimator
from nplm.base.exceptions import ParameterMessage
from nplm.base.fitted import Saved

# The documentation of a checkout, if it is built.
BUILT = Path(__file__).parents[3] / "docs" / "_build" / "html"


class Documented(BaseEstimator):
    """Link an estimator's HTML representation to its page in nplm's documentation.

    Its address is in ``NPLM_DOCS``, by default that of a checkout where it is built.
    Errors of parameters carry the name and the value; see `ParameterMessage`.
    """

    _doc_link_module = "nplm"  # a class from elsewhere has no page here

    @property
    def _doc_link_template(self) -> str:
        address = os.environ.get("NPLM_DOCS", "").rstrip("/")
        if not address:
            if not (BUILT / "index.html").exists():
                return ""
            address = BUILT.as_uri()
        return address + "/api/generated/nplm.{estimator_name}.html"

    def _validate_params(self) -> None:
        try:
            super()._validate_params()
        except InvalidParameterError as error:
            for name, value in self.get_params(deep=False).items():
                subject = f"The {name!r} parameter of {type(self).__name__}"
                if str(error).startswith(subject):
                    rest = str(error).removeprefix(subject)
                    text = f"{{{name}:{subject}}}{{0}}"
                    message = ParameterMessage(text, rest, **{name: value})
                    raise InvalidParameterError(message) from None
            raise


class DocumentEstimator(Saved, Documented):
    """Base of the estimators whose samples are documents: text, tokens or ids."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.no_validation = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags
