"""How long `nplm serve` takes to answer, on connections that are kept alive.

    python benchmarks/serve/latency.py [--requests N] [--json FILE] [--docs FOLDER]

One client, and eight at a time, ask for the surprisals of sentences of 20 words and for
the words after them, by a Kneser-Ney model of order 5 and by the default network, each
client on its own connection. /health costs what HTTP costs. Each model has a server, a
process of its own, whose memory is its resident set after the requests; the clients are
threads of this one. --docs writes docs/measured/serve.inc.
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
from common.page import list_table
from common.table import machine, parser, report
from nplm import KneserNeyLM, NeuralLM, TextLM
from nplm.datasets import load_python_docs

N_WORDS = 20
NETWORK = {"max_iter": 1, "early_stopping": False, "random_state": 0}
COLUMNS = ["p50 ms", "p99 ms", "requests a second", "MB"]


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


def served(name: str, file: str, paths: list[str], texts: list[str]) -> list[dict]:
    """Measure a server of one model."""
    command = [sys.executable, "-m", "nplm", "serve", file, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            port = int(re.search(r":(\d+)/", server.stdout.readline())[1])
            rows = [
                {"model": name} | measure(port, path, n_clients, texts)
                for path in paths
                for n_clients in (1, 8)
            ]
            status = Path(f"/proc/{server.pid}/status").read_text()
            memory = int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1e3
        finally:
            server.send_signal(signal.SIGINT)
    return [row | {"MB": memory} for row in rows]


def page(rows: list[dict]) -> str:
    cells = [
        [row["model"], row["path"], str(row["clients"])]
        + [f"{row[column]:,.{1 if 'ms' in column else 0}f}" for column in COLUMNS]
        for row in rows
    ]
    here = machine()
    return list_table("", ["model", "request", "clients", *COLUMNS], cells) + (
        f"\nOn {here['cores']} cores of an {here['cpu']} that other programs used too: "
        f"a load of {here['load']:.1f} at the end.\n"
    )


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--requests", type=int, default=200)
    options.add_argument("--docs", type=Path, help="folder of the page")
    args = options.parse_args()
    corpus = load_python_docs()
    words = corpus.words[corpus.train[corpus.train != corpus.boundary]]
    lines = [" ".join(words[i : i + N_WORDS]) for i in range(0, len(words), N_WORDS)]
    ngrams = TextLM(KneserNeyLM(), n_context=4).fit(lines)
    network = TextLM(NeuralLM(**NETWORK), n_context=4).fit(lines[:5000])
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, lm in {"Kneser-Ney, order 5": ngrams, "network": network}.items():
            nplm.save(lm, f"{folder}/model")
            paths = ["/score", "/next"] if rows else ["/health", "/score", "/next"]
            rows += served(name, f"{folder}/model", paths, lines[: args.requests])
    report("Requests to nplm serve", rows, args.json)
    if args.docs:
        (args.docs / "serve.inc").write_text(page(rows))


if __name__ == "__main__":
    main()
