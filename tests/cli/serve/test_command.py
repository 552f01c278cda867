"""The command: what it serves, says and refuses."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from click.testing import CliRunner

from nplm.cli import main
from nplm.cli.serve import command

REASON = "FastAPI and uvicorn are not installed"


def run(*arguments):
    return CliRunner().invoke(main, ["serve", *arguments])


def test_a_missing_package_is_named_with_what_installs_it(files, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "nplm.cli.serve.server", raising=False)
    result = run(*files)
    assert result.exit_code == 1
    assert "python -m pip install fastapi uvicorn" in result.output


@contextmanager
def started(*arguments, **settings):
    """Run the command; give the process and its address."""
    pytest.importorskip("fastapi", reason=REASON)
    pytest.importorskip("uvicorn", reason=REASON)
    command = [sys.executable, "-m", "nplm", "serve", *arguments, "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    ) as process:  # fmt: skip
        try:
            said = process.stdout.readline()
            found = re.fullmatch(
                r"Serving (.*) at (http://127\.0\.0\.1:\d+/) .*\n", said
            )
            assert found, said + process.stderr.read()
            yield process, *found.groups()
        finally:
            process.kill()


def models_at(address, **headers):
    with urlopen(Request(f"{address}models", headers=headers), timeout=30) as answer:
        return json.load(answer)


@pytest.mark.slow
def test_models_are_served_until_an_interrupt(files):
    with started(*files, "--text", "the") as (process, names, address):
        about = models_at(address)
        assert names == "n-grams, mixture"
        assert [m["name"] for m in about["models"]] == ["n-grams", "mixture"]
        assert about["text"] == "the"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert process.stderr.read() == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /mod", b"POST /score HTTP/1.1\r\nHost: localhost\r\n"
     b"Content-Length: 99\r\n\r\n{"],
    ids=["nothing", "half a head", "half a body"],
)  # fmt: skip
def test_an_interrupt_ends_it_whatever_clients_hold(files, sent):
    with started(*files) as (process, _, address):
        with socket.create_connection(("127.0.0.1", urlsplit(address).port)) as held:
            held.sendall(sent)
            models_at(address)  # the server has read both
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
            answer = held.makefile("rb").read()
        assert process.stderr.read() == ""
    assert (b"HTTP/1.1 503" in answer) == sent.endswith(b"{"), answer


@pytest.mark.slow
def test_a_name_that_is_not_utf_8_is_shown_by_its_bytes(files, tmp_path):
    path = os.fsencode(tmp_path) + b"/mod\xffel"
    shutil.copy(files[0], path)
    with started(os.fsdecode(path)) as (_, names, address):
        [model] = models_at(address)["models"]
        assert names == model["name"] == "mod\\xffel"
        question = {"text": "the cat", "model": model["name"]}
        request = Request(
            f"{address}score", json.dumps(question).encode(),
            {"Content-Type": "application/json"},
        )  # fmt: skip
        with urlopen(request, timeout=30) as answer:
            assert json.load(answer)["model"] == model["name"]


@pytest.mark.slow
def test_names_of_a_proxy_are_answered_if_they_are_allowed(files):
    with started(files[0], "--allow-host", "LM.example.org") as (_, _, address):
        for name in ("lm.example.org", "lm.example.org:443", "localhost"):
            assert models_at(address, Host=name)["models"]
        with pytest.raises(HTTPError, match="421") as refused:
            models_at(address, Host="evil.example")
        with refused.value as answer:
            assert "--allow-host" in json.load(answer)["error"]


def test_a_port_in_use_is_named(files):
    pytest.importorskip("fastapi", reason=REASON)
    with command._listening("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        result = run(*files, "--port", str(port))
    assert result.exit_code == 1
    assert f"cannot listen at --host 127.0.0.1 --port {port}: " in result.output
    assert "--port 0 for any that is free" in result.output


@pytest.mark.slow
def test_the_first_model_writes_an_example(files, served):
    with started(*files) as (_, _, address):
        text = models_at(address)["text"]
    lines = text.splitlines()
    assert len(lines) == 2
    known = set(served["n-grams"].vocabulary_.words_) - {"</s>", "<unk>"}
    assert all(4 <= len(line.split()) <= 12 for line in lines)
    assert set(text.split()) <= known


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--text", "x" * 10_001], 2, "--text has 10,001 characters"),
        (["--text", os.fsdecode(b"caf\xe9")], 2, "--text is not UTF-8"),
        (["--allow-host", "http://lm.example.org"], 2, "give the name alone"),
        (["--allow-host", "lm.example.org:80"], 2, "give the name alone"),
        (["--allow-host", ""], 2, "give the name alone"),
        ([__file__], 1, "this is not an ARPA file"),
        (["absent"], 2, "does not exist"),
    ],
)
def test_mistakes_are_sentences(files, arguments, code, message):
    pytest.importorskip("fastapi", reason=REASON)
    result = run(files[0], *arguments)
    assert result.exit_code == code
    assert message in " ".join(result.output.replace("│", " ").split())


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
