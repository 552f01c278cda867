"""Clients that hold a connection: each is let go, and others are answered meanwhile."""

import http.client
import json
import queue
import socket
import time
from contextlib import ExitStack, contextmanager, suppress

import pytest

h11_impl = pytest.importorskip(
    "uvicorn.protocols.http.h11_impl", reason="uvicorn is not installed"
)
pytest.importorskip("fastapi", reason="FastAPI is not installed")

from nplm.cli.serve import guard, server  # noqa: E402

HEAD = b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
QUESTION = b'{"text": "the cat"}'
WHOLE = HEAD + b"Content-Length: %d\r\n\r\n" % len(QUESTION) + QUESTION


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.5)
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.5)


def answers_to(client, sent):
    """Send bytes one after the other until the server ends; return what it said."""
    with socket.create_connection(("127.0.0.1", client.port), timeout=20) as held:
        held.settimeout(20)
        held.sendall(sent[:-40])
        try:
            for byte in sent[-40:]:  # a byte now and then is no request either
                time.sleep(0.1)
                held.sendall(bytes([byte]))
                assert client.get("/health").status == 200
        except (BrokenPipeError, ConnectionResetError):
            pass
        try:
            return held.makefile("rb").read()
        except ConnectionResetError:
            return b""


def test_a_body_has_a_time(client, impatient):
    slow = HEAD + b"Content-Length: 1000\r\n\r\n" + b'{"text": "' + b"a" * 40
    head, body = answers_to(client, slow).split(b"\r\n\r\n")
    assert b" 408 " in head.split(b"\r\n")[0] and b"connection: close" in head.lower()
    assert "was not whole after 0.5 seconds" in json.loads(body)["error"]


@pytest.mark.parametrize("before", [b"", WHOLE], ids=["first", "kept alive"])
def test_a_head_has_a_time(client, impatient, before):
    answer = answers_to(client, before + HEAD[:10] + b"x" * 40)
    assert answer.count(b"HTTP/1.1") == (before != b"")


@contextmanager
def unread(client):
    """Ask for more than the buffers of both ends hold, and read none of it."""
    text = json.dumps({"text": "a " * 5_000, "model": "mixture"}).encode()
    request = HEAD + b"Content-Length: %d\r\n\r\n" % len(text) + text
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        held.settimeout(20)
        held.connect(("127.0.0.1", client.port))
        held.sendall(8 * request)
        yield held, 8 * len(client.post("/score", text).text)


@pytest.mark.slow
def test_an_answer_that_is_not_read_has_a_time(client, impatient, monkeypatch):
    ends = queue.SimpleQueue()
    lost = server.Connection.connection_lost
    monkeypatch.setattr(
        server.Connection, "connection_lost",
        lambda self, error: (lost(self, error), ends.put(self.client)),
    )  # fmt: skip
    with unread(client) as (held, length):
        while ends.get(timeout=20) != held.getsockname():
            pass
        received = 0
        with suppress(ConnectionResetError):
            while part := held.recv(1 << 20):
                received += len(part)
    assert received < length


@pytest.mark.slow
def test_the_end_waits_a_while_for_an_answer_that_is_not_read(
    serving, served, monkeypatch
):
    monkeypatch.setattr(server, "GRACE_SECONDS", 0.5)
    with ExitStack() as stack:
        with serving(served) as client:
            stack.enter_context(unread(client))
            began = time.monotonic()
        assert time.monotonic() - began < server.IDLE_SECONDS / 2


def test_a_client_that_asks_now_and_then_is_not_slow(client, monkeypatch):
    monkeypatch.setattr(server, "IDLE_SECONDS", 2)
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=20)
    connection.connect()
    first = connection.sock
    for _ in range(4):
        time.sleep(0.7)
        connection.request("GET", "/health")
        assert connection.getresponse().read()
    assert connection.sock is first
    connection.close()


def test_an_answer_waits_for_no_acknowledgement(client, monkeypatch):
    options = []

    def made(self, transport):
        accepted = transport.get_extra_info("socket")
        options.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        h11_impl.H11Protocol.connection_made(self, transport)

    monkeypatch.setattr(server.Connection, "connection_made", made)
    assert client.get("/health").status == 200
    assert all(options) and options
