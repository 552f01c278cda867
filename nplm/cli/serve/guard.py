"""Guard: what is refused before a request is read, and the headers of answers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any
from urllib.parse import urlsplit

import anyio

BODY_SECONDS = 30  # for the whole body of a request
HEALTH = "/health"  # any host: a load balancer names an address

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

# All of the page comes from this server, and no other page may hold or ask it.
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; "
    "style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
}


class Guard:
    """ASGI middleware: hosts, sizes of requests, and headers of answers.

    - `hosts`: names in the Host header that are answered; None answers all. A page
      elsewhere whose name is made to point at this machine (DNS rebinding) sends its
      own
    """

    _is_ending = False

    def __init__(
        self, app: Application, hosts: Collection[str] | None, max_bytes: int
    ) -> None:
        self.app, self.hosts, self.max_bytes = app, hosts, max_bytes
        self._arriving: set[anyio.CancelScope] = set()

    def end(self) -> None:
        """Refuse the requests of which a part has not arrived."""
        for scope in self._arriving:
            scope.cancel()
        self._is_ending = True

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                more = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *more]
            await send(message)

        headers = {name.lower(): value for name, value in scope["headers"]}
        host = headers.get(b"host", b"").decode("latin-1")
        try:
            if not (self.hosts is None or scope["path"] == HEALTH):
                self._check(host)
            body = await self._body(receive)
        except _RefusalError as error:
            await _refuse(send_with_headers, *error.args)
            return
        if body is None:
            return
        whole = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive_whole() -> Message:
            """Give the body that was read, then what else comes."""
            return next(whole, None) or await receive()

        if scope["method"] == "HEAD":  # uvicorn leaves the body out
            scope = {**scope, "method": "GET"}
        await self.app(scope, receive_whole, send_with_headers)

    def _check(self, host: str) -> None:
        """Refuse another name of the host."""
        if self.hosts is not None and name_of(host) not in self.hosts:
            names = " or ".join(sorted(self.hosts))
            raise _RefusalError(
                421,
                f"this server is not {host!r}: open it as {names}, or start it with "
                "--allow-host and this name.",
            )

    async def _body(self, receive: Receive) -> bytes | None:
        """Read the body of a request; return None if the client is gone."""
        body, is_more = b"", True
        with anyio.move_on_after(BODY_SECONDS) as scope:
            self._arriving.add(scope)
            try:
                while is_more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    body += message.get("body", b"")
                    is_more = message.get("more_body", False)
                    if len(body) > self.max_bytes:
                        raise _RefusalError(
                            413,
                            f"the request has more than {self.max_bytes} bytes: send "
                            "less text.",
                        )
            finally:
                self._arriving.discard(scope)
        if is_more and self._is_ending:
            raise _RefusalError(503, "the server ends, and the request is not whole.")
        if is_more:
            raise _RefusalError(
                408,
                f"the request was not whole after {BODY_SECONDS} seconds: send it "
                "again.",
            )
        return body


class _RefusalError(Exception):
    """A status and a sentence."""


async def _refuse(send: Send, status: int, sentence: str) -> None:
    """Answer with a sentence, and end the connection: the request is not read."""
    body = json.dumps({"error": sentence}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def name_of(host: str) -> str | None:
    """Return the name in a Host header, without its port."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None
