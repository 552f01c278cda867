"""Run the cases of tests/mpi/cases under mpiexec, with a time limit."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from nplm.base import system
from tests.helpers import mpi as jobs

pytest.importorskip("mpi4py", reason="mpi4py is not installed")
pytestmark = pytest.mark.skipif(jobs.MPIEXEC is None, reason="there is no mpiexec")

WORKER = Path(__file__).with_name("worker.py")
SECONDS = 120


def start(n_ranks, *args, **options):
    return jobs.start(n_ranks, WORKER, *args, **options)


def finish(job, seconds=SECONDS):
    try:
        output, _ = job.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        output, _ = job.communicate()
        pytest.fail(f"did not end within {seconds} s:\n{output[-3000:]}")
    return job.returncode, output


@cache
def all_in_turn(n_ranks):
    # Without -m mpi4py, which would end a job that hangs.
    return finish(start(n_ranks, "in_turn", *CASES[n_ranks], python=()), 2 * SECONDS)


SHARED_CASES = [
    "equals_serial", "stops_early_alike", "keeps", "diverges", "disagreements",
    "of_their_own", "equals_serial_by_allreduce", "every_network", "streams",
    "averages", "sharded_data", "every_network_by_messages", "common_memory",
    "bytes_of_messages",
]  # fmt: skip
# A third rank makes no difference in these.
OF_TWO = {
    "stops_early_alike", "diverges", "disagreements", "every_network_by_messages",
    "common_memory",
}  # fmt: skip
CASES = {
    1: ["equals_serial", "every_network", "averages", "sharded_data"],
    2: SHARED_CASES,
    3: [case for case in SHARED_CASES if case not in OF_TWO],
    4: ["equals_serial", "every_network", "bytes_of_messages"],
}


@pytest.mark.parametrize(
    ("n_ranks", "case"), [(n, case) for n, cases in CASES.items() for case in cases]
)
def test_all_ranks_finish(n_ranks, case):
    code, output = all_in_turn(n_ranks)
    assert f"{case}: passed by {n_ranks} ranks" in output, output
    assert code == 0 or case != CASES[n_ranks][-1], output


@pytest.mark.parametrize(
    ("case", "message", "python"),
    [
        ("raises", "ZeroDivisionError", ()),
        ("raises", "ZeroDivisionError", ("-m", "mpi4py")),
        ("raises_again", "ValueError", ()),
        ("interrupted", "KeyboardInterrupt", ()),
        ("cannot_begin", "MemoryError: no room", ()),
        ("raises_in_examples", "ZeroDivisionError", ()),
        ("raises_in_progress", "ZeroDivisionError", ()),
    ],
)
def test_error_in_a_rank_ends_the_job(case, message, python):
    code, output = finish(start(2, case, python=python), seconds=60)
    assert code != 0
    assert message in output
    rank = 0 if case == "raises_in_progress" else 1
    assert f"nplm.mpi: rank {rank} of 2 failed; ending the job." in output


@pytest.mark.parametrize(
    ("case", "python"), [("leaves_before", ()), ("leaves_between", ("-m", "mpi4py"))]
)
def test_missing_rank_times_out(case, python, monkeypatch):
    monkeypatch.setitem(jobs.ENVIRONMENT, "NPLM_MPI_TIMEOUT", "2")
    code, output = finish(start(3, case, python=python), seconds=60)
    assert code != 0
    assert "of 3 waited 2 s for the others, and one did not come" in output


def test_invalid_timeout_is_refused(monkeypatch):
    monkeypatch.setitem(jobs.ENVIRONMENT, "NPLM_MPI_TIMEOUT", "soon")
    code, output = finish(start(1, "disagreements", python=()), seconds=60)
    assert code != 0
    assert "NPLM_MPI_TIMEOUT='soon' must be a number of seconds above 0" in output


def test_ranks_save_before_they_end_and_continue_if_they_cannot(tmp_path):
    # In this order: they change how often fits save and score.
    cases = [
        "terminated_while_scoring", "terminated", "terminated_with_examples",
        "goes_on_without_its_folder",
    ]  # fmt: skip
    code, output = finish(start(2, "saves", tmp_path, *cases), 2 * SECONDS)
    assert code == 0, output
    for case in cases:
        assert f"{case}: passed by 2 ranks" in output, output


def test_terminated_ranks_that_send_messages_save_first(tmp_path, monkeypatch):
    monkeypatch.setitem(jobs.ENVIRONMENT, "NPLM_MPI_SHARED_MEMORY", "0")
    code, output = finish(start(2, "saves", tmp_path, "terminated_with_examples"))
    assert code == 0, output


@pytest.mark.parametrize("case", ["killed", "killed_in_examples"])
def test_killed_rank_ends_the_job(case):
    code, output = finish(start(2, case), seconds=60)
    assert code != 0
    assert "signal 9" in output.lower() or "killed" in output.lower(), output


def test_rank_that_waits_for_an_ended_one_ends_the_job():
    code, output = finish(start(2, "leaves_examples"), seconds=60)
    assert code != 0
    assert "rank 0 of 2 waits for rank 1 (process " in output, output
    assert "which has ended; ending the job" in output, output


def test_rank_whose_mpiexec_is_killed_frees_the_checkpoint(tmp_path):
    job = start(2, "orphaned", tmp_path)
    job.communicate(timeout=SECONDS)
    assert job.returncode == -signal.SIGKILL
    until = time.monotonic() + SECONDS
    with open(tmp_path / "lock") as lock:
        while time.monotonic() < until:
            with suppress(BlockingIOError):
                return system.lock(lock.fileno(), wait=False)
            time.sleep(0.1)
    pytest.fail("a rank still holds the checkpoint")


def test_killed_fit_resumes_with_the_same_bits(tmp_path):
    uninterrupted, interrupted = tmp_path / "one", tmp_path / "other"
    for folder in (uninterrupted, interrupted):
        folder.mkdir()
    code, output = finish(start(2, "checkpoints", str(uninterrupted)))
    assert code == 0, output

    code, output = finish(start(2, "checkpoints", str(interrupted), "3"))
    assert code != 0
    assert (interrupted / "saves" / "latest.json").exists(), output
    assert not (interrupted / "result.npz").exists()
    code, output = finish(start(2, "checkpoints", str(interrupted)))
    assert code == 0, output
    one, other = (np.load(f / "result.npz") for f in (uninterrupted, interrupted))
    for name in one.files:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)

    code, output = finish(start(1, "checkpoints", str(interrupted)))
    assert code != 0
    assert "its number of processes was 2, now it is 1" in output
