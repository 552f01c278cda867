"""The command: what it serves, says and refuses."""

import json
import os
import re
import signal
import subprocess
import sys
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from nplm.cli import main
from nplm.cli.serve import command

REASON = "FastAPI and uvicorn are not installed"


def run(*arguments):
    return CliRunner().invoke(main, ["serve", *arguments])


def test_a_missing_package_is_named_with_what_installs_it(files, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = run(*files)
    assert result.exit_code == 1
    assert "python -m pip install fastapi uvicorn" in result.output


def test_models_are_served_until_an_interrupt(files):
    pytest.importorskip("fastapi", reason=REASON)
    pytest.importorskip("uvicorn", reason=REASON)
    started = subprocess.Popen(
        [sys.executable, "-m", "nplm", "serve", *files, "--port", "0", "--text", "the"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    with started:
        try:
            said = started.stdout.readline()
            found = re.fullmatch(
                r"Serving n-grams, mixture at (http://127\.0\.0\.1:\d+/) .*\n", said
            )
            assert found, said + started.stderr.read()
            with urlopen(f"{found[1]}models", timeout=30) as answer:
                about = json.load(answer)
            assert [m["name"] for m in about["models"]] == ["n-grams", "mixture"]
            assert about["text"] == "the"
        finally:
            started.send_signal(signal.SIGINT)
        assert started.wait(30) == 0
        assert started.stderr.read() == ""


def test_a_port_in_use_is_named(files):
    pytest.importorskip("fastapi", reason=REASON)
    with command._listening("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        result = run(*files, "--port", str(port))
    assert result.exit_code == 1
    assert f"cannot listen at --host 127.0.0.1 --port {port}: " in result.output
    assert "--port 0 for any that is free" in result.output


def test_a_long_text_to_begin_with_is_refused(files):
    pytest.importorskip("fastapi", reason=REASON)
    result = run(*files, "--text", "x" * 10_001)
    assert result.exit_code == 2
    assert "--text has 10,001 characters" in result.output


def test_a_model_needs_to_be_one(tmp_path):
    pytest.importorskip("fastapi", reason=REASON)
    (tmp_path / "text").write_text("the cat sat\n")
    assert run(str(tmp_path / "text")).exit_code == 1
    assert run(str(tmp_path / "none")).exit_code == 2
    assert run().exit_code == 2


def test_models_are_named_by_their_files():
    assert command._names_of(("a/x", "b/y.arpa")) == ["x", "y.arpa"]
    assert command._names_of(("a/x", "b/x")) == ["a/x", "b/x"]
    with pytest.raises(command.click.UsageError, match="given twice"):
        command._names_of(("a/x", "./a/x"))


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        ("localhost", True), ("127.0.0.1", True), ("127.0.0.2", True), ("::1", True),
        ("0.0.0.0", False), ("::", False), ("192.168.0.2", False), ("box.lan", False),
    ],
)  # fmt: skip
def test_addresses_of_this_machine_alone_are_told_from_others(host, is_loopback):
    assert command._is_loopback(host) is is_loopback
