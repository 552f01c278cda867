"""``nplm serve``: a page to look at models."""

from __future__ import annotations

import ipaddress
import os
import socket
from contextlib import suppress
from pathlib import Path

import click

from nplm import TextLM
from nplm.base.exceptions import missing_packages
from nplm.cli._models import MODELS, VERIFY, read_model
from nplm.cli._options import command, option
from nplm.cli._outputs import notify

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@command(
    "serve", MODELS,
    option("--host", None, "127.0.0.1", "Name or address to listen at."),
    option("--port", click.IntRange(0, 65535), 8000,
        "Port to listen at; 0 takes any that is free."),
    option("--allow-host allowed_hosts", None, None,
        "Answer requests to this name too, as a proxy forwards it in its Host header. "
        "May be repeated.", metavar="NAME", multiple=True),
    option("--text", None, None,
        "The text that the page begins with.  [default: the first model writes one]"),
    VERIFY,
)  # fmt: skip
def serve_command(
    models: tuple[str, ...],
    host: str,
    port: int,
    allowed_hosts: tuple[str, ...],
    text: str | None,
    verify: bool,
) -> None:
    """Serve a page to look at models, and a JSON API.

    The page colours each word of a text by its surprisal, and shows the next words,
    the part of each member of a mixture, the n-grams found, and similar words. Each
    MODEL is a text model that nplm saved, an ARPA file, or mapped n-grams. Several are
    compared. It is served to this machine only, unless --host is another address.
    Requires FastAPI and uvicorn: python -m pip install fastapi uvicorn.

    \b
    Examples:
      nplm serve model
      nplm serve ngrams.arpa.gz network --port 9000
    """  # noqa: D301  (click reads the control character)
    try:
        from nplm.cli.serve.app import make_app
        from nplm.cli.serve.guard import name_of
        from nplm.cli.serve.messages import MAX_TEXT_CHARS
        from nplm.cli.serve.server import Server
    except ImportError as error:
        why = missing_packages(
            "nplm serve", "fastapi", "uvicorn", otherwise=f"({error})"
        )
        raise click.ClickException(str(why)) from error
    if text is not None and len(text) > MAX_TEXT_CHARS:
        raise click.UsageError(
            f"--text has {len(text):,} characters, and the page takes at most "
            f"{MAX_TEXT_CHARS:,}: give less."
        )
    if text is not None and text != _in_utf8(text):
        raise click.UsageError("--text is not UTF-8: give it in UTF-8.")
    for name in allowed_hosts:
        if name_of(name) != name.strip("[]").lower():
            raise click.UsageError(
                f"--allow-host {name} is no name of a host: give the name alone, "
                "without http:// and without a port."
            )
    names = _names_of(models)
    # Not mapped: a server runs for long, and memory of its own has large pages.
    named = {
        name: read_model(path, mmap=False, verify=verify)
        for name, path in zip(names, models)
    }
    if text is None:
        text = _example(named[names[0]])
    is_local = _is_loopback(host)
    hosts = None
    if is_local or allowed_hosts:
        hosts = {name.strip("[]").lower() for name in (*LOOPBACK, host, *allowed_hosts)}
    server = Server(make_app(named, hosts=hosts, text=text))
    with _listening(host, port) as listener:
        port = listener.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        if not is_local:
            notify(f"Note: whoever reaches {shown}:{port} can ask these models.")
        click.echo(
            f"Serving {', '.join(named)} at http://{shown}:{port}/ (Ctrl-C ends it)."
        )
        # uvicorn ends by Ctrl-C, and then hands the interrupt on.
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listener])


def _example(lm: TextLM) -> str:
    """Return two lines that a model generates, the same each time."""
    try:
        lines = lm.generate(n=2, min_words=4, max_words=12, top_p=0.8, random_state=0)
    except ValueError:  # there is no such word
        return ""
    return "\n".join(map(str, lines))[:500]


def _names_of(paths: tuple[str, ...]) -> list[str]:
    """Return the names of files, or their paths if two have one name."""
    names = [_in_utf8(Path(path).name) for path in paths]
    if len(set(names)) == len(names):
        return names
    whole = [os.path.abspath(path) for path in paths]
    if len(set(whole)) < len(whole):
        twice = next(path for path in whole if whole.count(path) > 1)
        raise click.UsageError(f"MODEL {twice} is given twice: give it once.")
    return [_in_utf8(path) for path in paths]


def _in_utf8(argument: str) -> str:
    r"""Return an argument with its bytes that are not UTF-8 as ``\xff``."""
    return os.fsencode(argument).decode("utf-8", "backslashreplace")


def _is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens, at the first address of a host that can be had."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        *others, last = dict.fromkeys(family for family, *_ in addresses)
        for family in others:
            with suppress(OSError):
                return _listening_at(family, host, port)
        return _listening_at(last, host, port)
    except OSError as error:
        raise click.ClickException(
            f"cannot listen at --host {host} --port {port}: {error.strerror}. Give "
            "another, or --port 0 for any that is free."
        ) from error


def _listening_at(family: int, host: str, port: int) -> socket.socket:
    listener = socket.create_server((host, port), family=family)
    # Connections inherit it. uvicorn sends the head of an answer and its body apart,
    # and the body waits some 40 ms for the client's acknowledgement without it.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
