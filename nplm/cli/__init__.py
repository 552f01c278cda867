"""The ``nplm`` command."""

from nplm.cli.compare import main

__all__ = ["main"]
