"""What doctests need: optional packages, an empty folder each, a corpus loaded once."""

from contextlib import chdir
from functools import cache
from importlib.util import find_spec

import pytest

from nplm import datasets

NEEDS_MPI = [
    "nplm/mpi.py",
    "nplm/models/training/parallel/agreement.py",
    "docs/guide/parallel.rst",
]
NEEDS_FASTAPI = [
    f"nplm/cli/serve/{name}.py" for name in ("app", "guard", "messages", "server")
]
NEEDS_SPARK = ["tests/hours/spark.py"]
collect_ignore = [
    *([] if find_spec("mpi4py") else NEEDS_MPI),
    *([] if find_spec("fastapi") else NEEDS_FASTAPI),
    *([] if find_spec("pyspark") else NEEDS_SPARK),
]


@pytest.fixture(scope="session", autouse=True)
def python_docs_are_read_once():
    """Pages show how to load them, which takes seconds: the first does it for all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets, "load_python_docs", cache(datasets.load_python_docs))
        yield


@pytest.fixture(autouse=True)
def folder_of_a_doctest(request, tmp_path_factory):
    """Examples write files by plain names."""
    if not isinstance(request.node, pytest.DoctestItem):
        yield
        return
    with chdir(tmp_path_factory.mktemp("doctest")):
        yield
