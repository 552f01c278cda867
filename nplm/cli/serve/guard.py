"""Guard: what is refused before a request is read, and the headers of answers."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_SECONDS = 30  # for the whole body of a request
HEALTH = "/health"  # any host: a load balancer names an address

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
        self, app: ASGIApp, hosts: Collection[str] | None, max_bytes: int
    ) -> None:
        self.app, self.hosts, self.max_bytes = app, hosts, max_bytes
        self._arriving: set[anyio.CancelScope] = set()

    def end(self) -> None:
        """Refuse the requests of which a part has not arrived."""
        for scope in self._arriving:
            scope.cancel()
        self._is_ending = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        try:
            if scope["path"] != HEALTH:
                self._check(Headers(scope=scope).get("host", ""))
            body = await self._body(receive)
        except HTTPException as error:  # the connection ends: the request is not read
            refusal = JSONResponse(
                {"error": error.detail}, error.status_code, {"connection": "close"}
            )
            await refusal(scope, receive, send_with_headers)
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
            raise HTTPException(
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
                        raise HTTPException(
                            413,
                            f"the request has more than {self.max_bytes} bytes: send "
                            "less text.",
                        )
            finally:
                self._arriving.discard(scope)
        if is_more and self._is_ending:
            raise HTTPException(503, "the server ends, and the request is not whole.")
        if is_more:
            raise HTTPException(
                408,
                f"the request was not whole after {BODY_SECONDS} seconds: send it "
                "again.",
            )
        return body


def name_of(host: str) -> str | None:
    """Return the name in a Host header, without its port."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None
