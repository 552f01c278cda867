"""Models of other tools that nplm does not read, recognised by their first bytes."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["START_BYTES", "refuse_foreign"]

# First bytes that are enough to recognise them.
START_BYTES = 64


class Foreign(NamedTuple):
    """A kind of file: how it begins, what it is, and what to read instead."""

    start: re.Pattern[bytes]
    what: str
    advice: str


FOREIGN = (
    Foreign(
        re.compile(rb"mmap lm http://kheafield\.com/code"),
        "a binary model of KenLM, compressed or in place of another file",
        "give the file as build_binary wrote it to nplm.load, or to a command that "
        "takes a MODEL",
    ),
    Foreign(
        re.compile(rb"SRILM_BINARY_"),
        "a binary file of SRILM",
        "write a model as ARPA by 'ngram -order N -lm FILE -write-lm model.arpa'",
    ),
    Foreign(
        re.compile(rb"Trie Language Model[\0-\x08]|.{4}Darpa Trigram LM", re.S),
        "a binary model of CMU Sphinx",
        "write it as ARPA by 'pocketsphinx_lm_convert -i FILE -o FILE.arpa -ofmt arpa'",
    ),
    Foreign(
        re.compile(rb"[QI]?blmt \d+ \d+"),
        "a binary model of IRSTLM",
        "write it as ARPA by 'compile-lm --text=yes FILE model.arpa'",
    ),
    Foreign(
        re.compile(rb"\xba\x16\x4f\x2f"),
        "a model of fastText",
        "give its vectors, the .vec file",
    ),
    Foreign(
        re.compile(rb"\xd6\xfd\xb2\x7e"),
        "a transducer of OpenFst, such as Kaldi's",
        "give the ARPA file that it was built from",
    ),
)


def refuse_foreign(start: bytes, name: str) -> None:
    """Raise ValueError if a file of this name is another tool's that is not read.

    `start` are its first `START_BYTES`.
    """
    for foreign in FOREIGN:
        if foreign.start.match(start):
            raise ValueError(
                f"{name} is {foreign.what}, which nplm does not read: {foreign.advice}."
            )
