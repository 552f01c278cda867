"""``python -m nplm``: the `nplm` command."""

from nplm.cli import main

main(prog_name="python -m nplm")
