"""The link from an estimator's HTML representation to its page."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["Documented"]

# Where a checkout has its pages, once they are built.
BUILT = Path(__file__).parents[2] / "docs" / "_build" / "html"


class Documented:
    """For estimators: scikit-learn's representation then links to nplm's own pages.

    They are where the environment variable ``NPLM_DOCS`` says, or in the checkout; else
    there is no link.
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
