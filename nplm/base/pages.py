"""The link from an estimator's HTML representation to its page."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["Documented"]

# The documentation of a checkout, if it is built.
BUILT = Path(__file__).parents[2] / "docs" / "_build" / "html"


class Documented:
    """Link an estimator's HTML representation to its page in nplm's documentation.

    The environment variable ``NPLM_DOCS`` gives the address of the documentation. By
    default it is the one built in the checkout; without either there is no link.
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
