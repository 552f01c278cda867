"""The documentation names what is public; its examples run as doctests."""

from pathlib import Path

import pytest

import nplm
import nplm.datasets
import nplm.inspection

PAGE = Path(__file__).parents[1] / "docs" / "api.rst"


@pytest.mark.parametrize(
    "module", [nplm, nplm.datasets, nplm.inspection], ids=lambda module: module.__name__
)
def test_api_page_lists_every_public_name(module):
    listed = {line.strip() for line in PAGE.read_text().splitlines()}
    missing = set(module.__all__) - listed
    assert not missing, f"add {missing} to an autosummary of docs/api.rst"
