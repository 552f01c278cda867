"""Joining of tokens: text with blanks where a writer has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["joined"]

Split = Callable[[str], list[str]]

# No blank follows an opening mark, and none precedes a closing one.
OPENING = frozenset("([{“‘«„‚¿¡$£€¥#@")  # noqa: RUF001
CLOSING = frozenset(".,;:!?…%)]}”’»‰°")
# Nor does one precede those of Hindi and its relatives, Arabic, Urdu and Ethiopic.
CLOSING |= frozenset("।॥؟،؛۔።፣፤")  # noqa: RUF001
# Chinese and Japanese have no blanks at all.
WIDE = frozenset("。、，．！？：；・（）「」『』【】《》〈〉")  # noqa: RUF001
# Between two words, these have no blank on either side.
INSIDE = frozenset("-/‐‑—")  # noqa: RUF001
# Alternately opening and closing.
STRAIGHT = frozenset("\"'")


def joined(tokens: Sequence[str], split: Split) -> str:
    """Join tokens: the inverse of a tokenizer, as far as it has one.

    Two tokens are written without a blank between them if a writer would do so, and
    if the text is then still split into the same tokens.

    - `tokens`: tokens of one document
    - `split`: the tokenizer: returns the tokens of a text
    """
    if split(" "):  # blanks are tokens
        return "".join(tokens)
    chunks: list[str] = []
    n_straight = dict.fromkeys(STRAIGHT, 0)
    # The tokens of the last chunk, and whether no blank should follow it.
    inside: list[str] = []
    opens = False
    for i, token in enumerate(tokens):
        before = tokens[i - 1] if i else ""
        after = tokens[i + 1] if i + 1 < len(tokens) else ""
        is_straight = token in STRAIGHT
        closes = token in CLOSING or (is_straight and n_straight[token] % 2 == 1)
        links = token in INSIDE and _is_word(before) and _is_word(after)
        is_wide = token in WIDE
        glued = (opens or closes or links or is_wide) and chunks
        pieces = split(token)
        if glued and split(chunks[-1] + token) == inside + pieces:
            chunks[-1] += token
            inside += pieces
        else:
            chunks.append(token)
            inside = pieces
        opens = links or is_wide or token in OPENING or (is_straight and not closes)
        if is_straight:
            n_straight[token] += 1
    return " ".join(chunks)


def _is_word(token: str) -> bool:
    return token[:1].isalnum()
