"""A printable character for each byte: the alphabet of GPT-2."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["BYTES", "bytes_to_unicode", "unicode_to_text"]

# Bytes that stand for themselves, as characters of Latin-1: those that are printable.
THEMSELVES = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
# The others follow Latin-1, in order: a blank is U+0120, a line feed U+010A.
OTHERS = [byte for byte in range(256) if byte not in THEMSELVES]
CODES = {byte: byte for byte in THEMSELVES} | {
    byte: 256 + i for i, byte in enumerate(OTHERS)
}
# The character of each byte.
BYTES = [chr(CODES[byte]) for byte in range(256)]
BYTE_OF = {character: byte for byte, character in enumerate(BYTES)}


def bytes_to_unicode(data: bytes) -> str:
    """Return bytes as characters, one for each: those of "a é" are "aĠÃ©"."""
    return data.decode("latin-1").translate(CODES)


def unicode_to_text(tokens: Iterable[str]) -> str:
    """Return the text of tokens that are spelled; invalid UTF-8 becomes U+FFFD."""
    data = bytes(BYTE_OF[c] for c in "".join(tokens) if c in BYTE_OF)
    return data.decode("utf-8", "replace")
