"""Small models, and a server that answers for them."""

import http.client
import json
from contextlib import contextmanager
from threading import Thread
from typing import NamedTuple

import pytest

from nplm import KneserNeyLM, MixtureLM, TextLM, save
from tests.helpers import paper_lm

TEXTS = ["a cat saw the dog", "the dog saw a cat", "the cat sat", "a dog sat"] * 9


@pytest.fixture(scope="session")
def served():
    """Two models of the same words: n-grams, and a mixture with a network."""
    ngrams = KneserNeyLM(order=3, discount_fallback=(0.5, 1, 1.5))
    network = paper_lm(n_hidden=4, embedding_dim=3, max_iter=3, random_state=0)
    mixture = MixtureLM([("kn", ngrams), ("net", network)], [0.25, 0.75])
    models = {"n-grams": ngrams, "mixture": mixture}
    return {name: TextLM(m, n_context=2).fit(TEXTS) for name, m in models.items()}


@pytest.fixture(scope="session")
def files(served, tmp_path_factory):
    """The models in files."""
    folder = tmp_path_factory.mktemp("served")
    for name, lm in served.items():
        save(lm, folder / name)
    return [str(folder / name) for name in served]


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    text: str

    @property
    def json(self):
        return json.loads(self.text)


class Client:
    """Asks a server at a port."""

    def __init__(self, port):
        self.port, self.url = port, f"http://127.0.0.1:{port}/"

    def get(self, path, **headers):
        return self.ask("GET", path, headers=headers)

    def post(self, path, question):
        body = question if isinstance(question, bytes) else json.dumps(question)
        return self.ask(
            "POST", path, body=body, headers={"Content-Type": "application/json"}
        )

    def ask(self, method, path, **given):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, **given)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read().decode())
        finally:
            connection.close()


@pytest.fixture(scope="session")
def serving():
    """Return a context that serves models, and gives a client."""
    reason = "FastAPI and uvicorn are not installed"
    pytest.importorskip("fastapi", reason=reason)
    pytest.importorskip("uvicorn", reason=reason)
    from nplm.cli.serve.app import make_app
    from nplm.cli.serve.command import LOOPBACK, _listening
    from nplm.cli.serve.server import Server

    @contextmanager
    def serving(models, hosts=LOOPBACK, **settings):
        server = Server(make_app(models, hosts=hosts, **settings))
        with _listening("127.0.0.1", 0) as listener:
            thread = Thread(target=server.run, kwargs={"sockets": [listener]})
            thread.start()
            try:
                yield Client(listener.getsockname()[1])
            finally:
                server.should_exit = True
                thread.join()

    return serving


@pytest.fixture(scope="module")
def client(serving, served):
    """A client of a server of both models."""
    with serving(served, text="the dog") as client:
        yield client
