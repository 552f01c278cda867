"""The JSON API and the page, as an ASGI application."""

from __future__ import annotations

import math
import os
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.staticfiles import StaticFiles

import nplm
from nplm import TextLM
from nplm.cli._models import vocabulary_of
from nplm.cli.serve import messages
from nplm.cli.serve.guard import HEALTH, Guard
from nplm.inspection import (
    Surprisals,
    context_effects,
    expected_words,
    feature_map,
    surprisals,
)
from nplm.text.embeddings import features_of
from nplm.text.words.splitting import BLANKS

PAGE = Path(__file__).with_name("page")
REFUSALS: dict[int | str, dict[str, object]] = {
    400: {"model": messages.Failure, "description": "Not JSON"},
    404: {"model": messages.Failure, "description": "Nothing of this name"},
    408: {"model": messages.Failure, "description": "Too slow"},
    413: {"model": messages.Failure, "description": "Too many bytes"},
    421: {"model": messages.Failure, "description": "Another name of the host"},
    422: {"model": messages.Failure, "description": "A field is out of range"},
}


def make_app(
    models: Mapping[str, TextLM], *, hosts: Collection[str] | None, text: str = ""
) -> Guard:
    """Make the application that serves the page; see `Guard` for the hosts."""
    api = Api(models, text)
    app = FastAPI(
        title="nplm",
        description="Surprisals, next words and similar words of language models.",
        version=nplm.__version__,
        # FastAPI's own pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        lifespan=_few_threads,
    )
    app.add_api_route("/models", api.models, summary="The models, and limits")
    for path, answer, summary in (
        ("/score", api.score, "Surprisals of the tokens of a text"),
        ("/next", api.next, "The most probable next words"),
        ("/nearest", api.nearest, "The words with the most similar features"),
        ("/map", api.map, "Features of words in two dimensions"),
    ):
        app.add_api_route(
            path, answer, methods=["POST"], summary=summary, responses=REFUSALS
        )
    app.add_api_route(HEALTH, _health, summary="Whether the server answers")
    # What no route has is a file of the page. Mounted, it would take every method.
    app.router.default = PageFiles(directory=PAGE, html=True)
    app.add_exception_handler(StarletteHTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _failed)
    return Guard(app, hosts, messages.MAX_BODY_BYTES)


class PageFiles(StaticFiles):
    """The files of the page; a path without a file is not found by any method."""

    async def get_response(self, path: str, scope: Any) -> Response:
        """Return the file; a method other than GET and HEAD is refused."""
        try:
            return await super().get_response(path, scope)
        except StarletteHTTPException as error:
            if error.status_code == 405:
                await super().get_response(path, {**scope, "method": "GET"})
            raise


class Api:
    """The answers to requests: the first model is their default."""

    def __init__(self, models: Mapping[str, TextLM], text: str) -> None:
        self._models, self._text = dict(models), text

    def models(self) -> messages.About:
        """Return the models that are served, and the limits of requests."""
        return messages.About(
            version=nplm.__version__,
            text=self._text,
            models=[
                messages.Model(
                    name=name,
                    kind=type(lm.estimator_).__name__,
                    n_words=lm.n_words_,
                    n_context=lm.n_context_,
                    boundary=str(vocabulary_of(lm).words_[lm.boundary_]),
                    unknown=vocabulary_of(lm).unknown,
                    has_features=features_of(lm.estimator_) is not None,
                )
                for name, lm in self._models.items()
            ],
            max_text_chars=messages.MAX_TEXT_CHARS,
            max_next_words=messages.MAX_NEXT_WORDS,
            max_map_words=messages.MAX_MAP_WORDS,
        )

    def score(self, request: messages.ScoreRequest) -> messages.Scores:
        """Return the surprisal of each token, in bits."""
        name, lm = self._model(request.model)
        # Not splitlines: as for the other commands, only a line feed ends a line.
        lines = [line.rstrip("\r") for line in request.text.split("\n")]
        lines = [line for line in lines if line.strip(BLANKS)]
        with _refusals():
            scored = surprisals(lm, lines) if lines else []
        bits = np.concatenate([np.empty(0), *(part.bits for part in scored)])
        with np.errstate(over="ignore"):
            perplexity = np.exp2(bits.mean()) if len(bits) else math.nan
        return messages.Scores.model_validate(
            {
                "model": name,
                "members": scored[0].members if scored else [],
                "lines": _rows(text=lines, tokens=map(_tokens, scored)),
                "n_tokens": len(bits),
                "n_unknown": sum(int(part.unknown.sum()) for part in scored),
                "bits": float(bits.sum()),
                "perplexity": float(perplexity),
            }
        )

    def next(self, request: messages.ExpectedRequest) -> messages.Expected:
        """Return the most probable words, with the probabilities of each member."""
        name, lm = self._model(request.model)
        with _refusals():
            expected = expected_words(
                lm, request.text, request.k, position=request.position
            )
            effects = (
                context_effects(lm, request.text, position=request.position)
                if request.effects
                else np.empty(0)
            )
        by_member = zip(expected.member_proba, expected.member_order)
        words = _rows(
            word=map(str, expected.words),
            probability=expected.proba,
            order=repeat(None) if expected.order is None else expected.order,
            members=[_rows(probability=p, order=n) for p, n in by_member],
        )
        shares = _rows(name=expected.members, weight=expected.weights)
        return messages.Expected.model_validate(
            {
                "model": name,
                "members": shares,
                "words": words,
                "effects": effects.tolist(),
            }
        )

    def nearest(self, request: messages.NearestRequest) -> messages.Nearest:
        """Return the words whose features have the largest cosine to a word's."""
        name, lm = self._model_with_features(request.model)
        if request.word not in vocabulary_of(lm).ids_:
            raise HTTPException(
                404,
                f"{request.word!r} is not in the vocabulary of {lm.n_words_:,} words.",
            )
        words, cosines = lm.nearest(request.word, request.k)
        rows = _rows(word=map(str, words), cosine=cosines)
        return messages.Nearest.model_validate(
            {"model": name, "word": request.word, "words": rows}
        )

    def map(self, request: messages.MapRequest) -> messages.Map:
        """Return the first two principal components of features of unit length."""
        name, lm = self._model_with_features(request.model)
        with _refusals():
            places = feature_map(lm, n_words=request.n_words, normalize=True)
        ratio = places.explained_variance_ratio
        x, y = places.positions.T
        rows = _rows(word=map(str, places.words), x=x, y=y)
        explained = None if ratio is None else ratio.tolist()
        return messages.Map.model_validate(
            {"model": name, "words": rows, "explained": explained}
        )

    def _model(self, name: str | None) -> tuple[str, TextLM]:
        """Return a model by name, by default the first."""
        if name is None:
            return next(iter(self._models.items()))
        if name not in self._models:
            raise HTTPException(
                404,
                f"there is no model {name!r}; the models are "
                f"{', '.join(map(repr, self._models))}.",
            )
        return name, self._models[name]

    def _model_with_features(self, name: str | None) -> tuple[str, TextLM]:
        """Return a model of word features by name."""
        name, lm = self._model(name)
        if features_of(lm.estimator_) is None:
            raise HTTPException(
                404,
                f"the model {name!r}, a {type(lm.estimator_).__name__}, has no "
                "features of words: serve a network, or a mixture with one.",
            )
        return name, lm


def _rows(**columns: Iterable[object]) -> list[dict[str, object]]:
    """Return the rows of columns of a table, by name; arrays as Python's numbers."""
    values = (c.tolist() if isinstance(c, np.ndarray) else c for c in columns.values())
    return [dict(zip(columns, row)) for row in zip(*values)]


def _tokens(scored: Surprisals) -> list[dict[str, object]]:
    """Return the tokens of a line."""
    scores = zip(scored.member_bits, scored.weights, scored.member_order)
    return _rows(
        token=map(str, scored.tokens),
        unknown=scored.unknown,
        bits=scored.bits,
        order=repeat(None) if scored.order is None else scored.order,
        members=[_rows(bits=b, weight=w, order=n) for b, w, n in scores],
    )


async def _health() -> messages.Health:
    """Answer at once, also while all cores compute."""
    return messages.Health(status="ok")


@asynccontextmanager
async def _few_threads(app: FastAPI) -> AsyncIterator[None]:
    """Let as many requests compute at a time as there are cores; others wait."""
    current_default_thread_limiter().total_tokens = os.cpu_count() or 1
    yield


# -- errors, each a sentence ----------------------------------------------------------


@contextmanager
def _refusals() -> Iterator[None]:
    """Refuse what a model cannot do, with its message."""
    try:
        yield
    except ValueError as error:
        raise HTTPException(422, str(error)) from error


def _answer(
    status: int, sentence: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    return JSONResponse({"error": sentence}, status, headers)


async def _refused(request: Request, error: Any) -> JSONResponse:
    """Answer with the sentence of an HTTPException, or with what was asked."""
    sentence = str(error.detail)
    if error.status_code == 400:  # FastAPI's own
        sentence = "the request cannot be read as JSON in UTF-8."
    if sentence == HTTPStatus(error.status_code).phrase:  # Starlette's own
        sentence = f"{request.method} {request.url.path}: {sentence.lower()}."
    return _answer(error.status_code, sentence, error.headers)


async def _invalid(request: Request, error: Any) -> JSONResponse:
    """Answer with the first field that is out of range."""
    [first, *_] = error.errors()
    if first["type"] == "json_invalid":
        why = first["ctx"]["error"]
        return _answer(
            400, f"the request is not JSON: {why}, at character {first['loc'][1]}."
        )
    if first["loc"] == ("body",):
        return _answer(
            422, "the request is not an object of JSON: send one, with the header "
            "Content-Type: application/json.",
        )  # fmt: skip
    where = ".".join(str(part) for part in first["loc"][1:])
    return _answer(422, f"{where}: {first['msg']}.")


async def _failed(request: Request, error: object) -> JSONResponse:
    """Answer to a fault of ours, which the terminal shows."""
    return _answer(500, "the server failed: its terminal shows the error.")
