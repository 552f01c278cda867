"""How long `nplm serve` takes to answer, on connections that are kept alive.

    python benchmarks/serve/latency.py [--requests N] [--json FILE]

One client, and eight at a time, ask for the surprisals of sentences of 20 words by a
Kneser-Ney model of order 5, each client on its own connection. /health costs what HTTP
costs. The server is a process of its own; the clients are threads of this one.
"""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # benchmarks/

import numpy as np

import nplm
from common.table import parser, report
from nplm import KneserNeyLM, TextLM
from nplm.datasets import load_python_docs

N_WORDS = 20


def client(port: int, path: str, texts: list[str]) -> list[float]:
    """The seconds of each request of one client."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    seconds = []
    for text in texts:
        body = json.dumps({"text": text})
        began = time.perf_counter()
        if path == "/health":
            connection.request("GET", path)
        else:
            headers = {"Content-Type": "application/json"}
            connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        answer.read()
        seconds.append(time.perf_counter() - began)
        assert answer.status == 200
    connection.close()
    return seconds


def measure(port: int, path: str, n_clients: int, texts: list[str]) -> dict:
    client(port, path, texts[:20])
    began = time.perf_counter()
    with ThreadPoolExecutor(n_clients) as pool:
        found = pool.map(
            lambda i: client(port, path, texts[i::n_clients]), range(n_clients)
        )
        milliseconds = 1e3 * np.concatenate(list(found))
    rate = len(texts) / (time.perf_counter() - began)
    p50, p99 = np.percentile(milliseconds, [50, 99])
    return {
        "path": path,
        "clients": n_clients,
        "p50 ms": float(p50),
        "p99 ms": float(p99),
        "requests a second": rate,
    }


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--requests", type=int, default=1000)
    args = options.parse_args()
    corpus = load_python_docs()
    words = corpus.words[corpus.train[corpus.train != corpus.boundary]]
    lines = [" ".join(words[i : i + N_WORDS]) for i in range(0, len(words), N_WORDS)]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model"
        nplm.save(TextLM(KneserNeyLM(), n_context=4).fit(lines), path)
        command = [sys.executable, "-m", "nplm", "serve", path, "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                port = int(re.search(r":(\d+)/", server.stdout.readline())[1])
                rows = [
                    measure(port, path, n_clients, lines[: args.requests])
                    for path in ("/health", "/score")
                    for n_clients in (1, 8)
                ]
            finally:
                server.send_signal(signal.SIGINT)
    report("Requests to nplm serve", rows, args.json)


if __name__ == "__main__":
    main()
