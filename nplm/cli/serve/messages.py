"""Requests and answers of the API, as pydantic models.

Requests are checked against them, and openapi.json is made of them.
"""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

MAX_TEXT_CHARS = 10_000
MAX_WORD_CHARS = 1_000
MAX_NEXT_WORDS = 100
MAX_MAP_WORDS = 2_000
# A text in which JSON escapes each character as two surrogates, and the other fields.
MAX_BODY_BYTES = 12 * MAX_TEXT_CHARS + 12 * MAX_WORD_CHARS + 1_000

Text = Annotated[str, Field(max_length=MAX_TEXT_CHARS)]
Word = Annotated[str, Field(min_length=1, max_length=MAX_WORD_CHARS)]


def _finite(number: float | None) -> float | None:
    """Return a number that JSON has; None for infinity and NaN."""
    return None if number is None or not math.isfinite(number) else number


# null stands for infinity, which JSON lacks. Neither is bounded: n-grams of a file need
# not sum to 1, and a probability above 1 has negative bits.
Bits = Annotated[float | None, BeforeValidator(_finite)]
Share = Annotated[float, Field(ge=0)]
# No n-gram is looked up for a model without them, which has an order of 0 or none.
Order = Annotated[
    Annotated[int, Field(ge=1)] | None, BeforeValidator(lambda order: order or None)
]


class Request(BaseModel):
    """A request. It refuses numbers in quotes, and unknown fields."""

    model_config = ConfigDict(strict=True, extra="forbid")

    model: str | None = Field(
        None, max_length=MAX_WORD_CHARS, description="Name of the model; the first."
    )


class ScoreRequest(Request):
    """A text to score."""

    text: Text = Field(description="A line is a document; blank lines are left out.")


class ExpectedRequest(Request):
    """A text to continue."""

    text: Text = Field("", description="One line: the start of a document.")
    position: int | None = Field(
        None,
        ge=0,
        le=MAX_TEXT_CHARS,
        description="Predict the token at this position of the text, from those before "
        "it; null predicts the token after the last.",
    )
    k: int = Field(10, ge=1, le=MAX_NEXT_WORDS, description="Number of words.")
    effects: bool = Field(False, description="Whether to explain the prediction.")


class NearestRequest(Request):
    """A word whose neighbours are asked for."""

    word: Word = Field(description="A word of the vocabulary.")
    k: int = Field(10, ge=1, le=MAX_NEXT_WORDS, description="Number of words.")


class MapRequest(Request):
    """A map of the features of the most frequent words."""

    n_words: int = Field(500, ge=3, le=MAX_MAP_WORDS, description="Number of words.")


class MemberScore(BaseModel):
    """The score of a token by one member of a mixture."""

    bits: Bits = Field(description="Surprisal by this member alone; null: infinite.")
    weight: Share
    order: Order = Field(description="Length of the n-gram found; null: no n-grams.")


class TokenScore(BaseModel):
    """A token of the text."""

    token: str
    unknown: bool = Field(description="Whether it is outside the vocabulary.")
    bits: Bits = Field(description="-log2 of its probability; null: infinite.")
    order: Order = Field(description="Length of the n-gram found; null: no n-grams.")
    members: list[MemberScore] = Field(description="In the order of their names.")


class Line(BaseModel):
    """A line of the text, which is a document."""

    text: str
    tokens: list[TokenScore]


class Scores(BaseModel):
    """Surprisals of the tokens of a text."""

    model: str
    members: list[str] = Field(description="Names of the members of a mixture.")
    lines: list[Line]
    n_tokens: int = Field(ge=0)
    n_unknown: int = Field(ge=0)
    bits: Bits = Field(description="Sum over all tokens; null: infinite.")
    perplexity: Bits = Field(description="Of all tokens; null: no token, or infinite.")


class MemberWord(BaseModel):
    """The probability of a word by one member of a mixture."""

    probability: Share
    order: Order


class ExpectedWord(BaseModel):
    """A word that may come next."""

    word: str
    probability: Share
    order: Order
    members: list[MemberWord] = Field(description="In the order of their names.")


class Member(BaseModel):
    """A member of a mixture, in one context."""

    name: str
    weight: Share


class Expected(BaseModel):
    """The most probable next words."""

    model: str
    members: list[Member]
    words: list[ExpectedWord] = Field(description="The most probable first.")
    effects: list[Bits] = Field(
        description="Bits that the token, or else the first of the words, has more "
        "without each of the last tokens before it; empty unless asked for."
    )


class Neighbour(BaseModel):
    """A word with similar features."""

    word: str
    cosine: float


class Nearest(BaseModel):
    """The words with the most similar features."""

    model: str
    word: str
    words: list[Neighbour] = Field(description="The nearest first.")


class Place(BaseModel):
    """A word of a map, and its position."""

    word: str
    x: float
    y: float


class Map(BaseModel):
    """Features of words in two dimensions."""

    model: str
    words: list[Place] = Field(description="The most frequent first.")
    explained: list[float] | None = Field(
        description="Share of the variance of each axis; null: the features have two "
        "dimensions."
    )


class Model(BaseModel):
    """A model that is served."""

    name: str
    kind: str = Field(description="Its class.")
    n_words: int = Field(description="Size of the vocabulary.")
    n_context: int = Field(description="Words of context that it sees.")
    boundary: str = Field(description="The symbol that ends a line.")
    unknown: str | None = Field(description="The symbol for unknown words.")
    has_features: bool = Field(description="Whether /nearest and /map answer.")


class About(BaseModel):
    """The models that are served, and the limits of requests."""

    version: str
    text: str = Field(description="The text that the page begins with.")
    models: list[Model]
    max_text_chars: int
    max_next_words: int
    max_map_words: int


class Health(BaseModel):
    """The server answers."""

    status: str


class Failure(BaseModel):
    """Why a request is refused."""

    error: str = Field(description="A sentence.")
