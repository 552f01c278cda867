"""Kernels of every kind for the tests that ask for them, and no disk to wait for."""

import os
import signal
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from nplm._kernels.neural._loops import available_tiers
from tests.helpers import PRECISIONS

# A shell ignores interrupts for what it starts in the background, and Python with it:
# fits that tests interrupt would go on for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# An example may take any time: beside other work, or under QEMU, it takes much.
settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("untimed")


# Of these all tests are slow: they start processes, and most of them wait.
SLOW_FOLDERS = {"faults", "fuzz", "hours", "mpi"}
# This example splits the pages of Python's documentation into words.
SLOW_EXAMPLES = {"nplm.datasets._corpora.load_python_docs"}


def pytest_collection_modifyitems(items):
    slow = [Path(__file__).parent / folder for folder in SLOW_FOLDERS]
    for item in items:
        of_folder = any(folder in item.path.parents for folder in slow)
        is_page = item.path.suffix == ".rst"  # whose examples train models
        is_slow = of_folder or is_page or item.name in SLOW_EXAMPLES
        if is_slow or item.get_closest_marker("corpora"):
            item.add_marker(pytest.mark.slow)
    # Folders whose tests wait come first, so that no worker waits alone at the end.
    items.sort(key=lambda item: not any(folder in item.path.parents for folder in slow))


@pytest.fixture(params=available_tiers())
def tier(request, monkeypatch):
    """Every tier of kernels that this processor can run."""
    monkeypatch.setenv("NPLM_TIER", request.param)
    return request.param


@pytest.fixture(params=PRECISIONS)
def precision(request, monkeypatch):
    """Every precision on every tier of kernels that this processor can run."""
    name, tier = request.param.split(", ")
    monkeypatch.setenv("NPLM_TIER", tier)
    return name


@pytest.fixture(scope="module")
def simulated_clock():
    """Fits take the time of the processor, and that of networks on a slow machine."""
    from tests.helpers.auto import SimulatedClock

    with pytest.MonkeyPatch.context() as context:
        clock = SimulatedClock(context, parameters_a_second=2e8)
        now = time.process_time
        context.setattr(time, "perf_counter", lambda: clock.seconds + now())
        yield


@pytest.fixture(autouse=True)
def no_disk_to_wait_for(monkeypatch):
    """What fsync promises no test could see; a busy disk may take a second for it."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    """Tests, and what they start, leave no notes of files in the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def keyed_vectors():
    """gensim's class of word vectors, where gensim can be had."""
    reason = (
        "gensim is not installed: its releases up to 4.4.0 do not build on Python 3.14"
    )
    return pytest.importorskip("gensim.models", reason=reason).KeyedVectors
