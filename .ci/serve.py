"""The server of a page, with packages as the extra brings them: asked, and ended."""

import json
import signal
import subprocess
import sys
from urllib.request import Request, urlopen

import nplm
from nplm import KneserNeyLM, TextLM

lm = TextLM(KneserNeyLM()).fit(["the cat sat on the mat", "a dog sat"] * 9)
nplm.save(lm, "served")
command = [sys.executable, "-m", "nplm", "serve", "served", "--port", "0"]
with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
    try:
        said = server.stdout.readline()  # Serving served at http://127.0.0.1:... (...)
        address = said.split()[3]
        with urlopen(address) as page:
            assert b"page.js" in page.read()
        question = Request(
            f"{address}score",
            json.dumps({"text": "the dog sat"}).encode(),
            {"Content-Type": "application/json"},
        )
        with urlopen(question) as answer:
            perplexity = json.load(answer)["perplexity"]
    finally:
        server.send_signal(signal.SIGINT)
assert server.returncode == 0
assert abs(perplexity - lm.perplexity(["the dog sat"])) < 1e-6
print(said.strip(), f"perplexity {perplexity:.2f}")
