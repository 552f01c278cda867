"""The documentation names what is public; its examples run as doctests."""

from pathlib import Path

import pytest

import nplm
import nplm.datasets

PAGE = Path(__file__).parents[1] / "docs" / "api.rst"


@pytest.mark.parametrize("name", [*nplm.__all__, *nplm.datasets.__all__])
def test_api_page_lists_every_public_name(name):
    listed = [line.strip() for line in PAGE.read_text().splitlines()]
    assert name in listed, f"add {name} to an autosummary of docs/api.rst"
