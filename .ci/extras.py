"""Use one extra of nplm, as it is installed alone: ``extras.py EXTRA``.

``extras.py container`` takes the steps of the guide's Dockerfile.
"""

import sys


def use_datasets() -> None:
    """Download a file from a server on this machine."""
    import hashlib
    import http.server
    import threading
    from functools import partial
    from pathlib import Path

    from nplm.datasets._remote_files import RemoteFile, read_file

    folder, cache = "published", "cache"
    Path(folder).mkdir()
    (Path(folder) / "corpus.txt").write_text("a small corpus\n")
    data = (Path(folder) / "corpus.txt").read_bytes()
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    server = http.server.HTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/corpus.txt"
    file = RemoteFile("corpus.txt", url, hashlib.sha256(data).hexdigest())
    assert read_file(file, cache, True) == data
    server.shutdown()


def use_mpi() -> None:
    """Fit over two processes, as the user guide does."""
    import numpy as np

    from nplm import NeuralLM, mpi, windows

    X, y = windows(np.tile([0, 1, 2, 3], 50), 2)
    lm = NeuralLM(n_words=4, n_hidden=8, embedding_dim=2, random_state=0)
    mpi.fit(lm, X, y)
    assert mpi.MPI.COMM_WORLD.size == 2
    assert np.isfinite(lm.score(X, y))
    if mpi.rank() == 0:
        print(f"perplexity {lm.perplexity(X, y):.3f}")


def use_kenlm() -> None:
    """Score a sentence with KenLM by an ARPA file of nplm."""
    import math

    import kenlm
    import numpy as np

    from nplm import KneserNeyLM, windows
    from nplm.datasets import load_python_docs
    from nplm.formats import write_arpa

    corpus = load_python_docs()
    end = corpus.boundary
    lm = KneserNeyLM(n_words=corpus.n_words, boundary=end)
    lm.fit(*windows(corpus.train[:20_000], 2, boundary=end))
    write_arpa(lm, "model.arpa", corpus.words)

    sentence = np.unique(corpus.train[:20_000])[2:12]  # words of it, in any order
    text = " ".join(corpus.words[sentence])
    ours = lm.log_prob(*windows([*sentence, end], 2, boundary=end)).sum()
    theirs = kenlm.Model("model.arpa").score(text) * math.log(10)
    assert math.isclose(ours, theirs, abs_tol=0.01), (ours, theirs)
    print(f"log-probability of {text!r}: {ours:.4f}, by KenLM {theirs:.4f}")


def use_onnx() -> None:
    """Write a network for ONNX, and check the file."""
    import numpy as np
    import onnx

    from nplm import NeuralLM, windows
    from nplm.formats import write_onnx

    X, y = windows(np.arange(99) % 7, 2)
    write_onnx(NeuralLM(n_hidden=3, max_iter=1, random_state=0).fit(X, y), "lm.onnx")
    onnx.checker.check_model("lm.onnx", full_check=True)


def use_decoders() -> None:
    """Tune weights on word error rate and BLEU, and score as a decoder does."""
    from nplm import InterpolatedTrigram, Rescorer, TextLM, flashlight_lm

    lm = TextLM(InterpolatedTrigram(), 2).fit(["to be or not to be"] * 9)
    lists = [[("two be or not", -1.0), ("to be or not", -1.2), ("to bee or not", -1.3)]]
    for metric in ("wer", "bleu"):
        rescorer = Rescorer(lm, metric=metric).fit(lists, ["to be or not"])
        assert rescorer.predict(lists) == ["to be or not"]
        print(f"{metric}: {rescorer.metric_value_:.1f}")

    if sys.version_info < (3, 13):  # the last one that flashlight-text has wheels for
        decoder_lm = flashlight_lm(lm, ["to", "be"])
        start = decoder_lm.start(False)
        scores = [decoder_lm.score(start, i)[1] for i in range(2)]
        assert scores[0] > scores[1], scores
        print(f"log10 of words at the beginning: {scores}")


def use_plots() -> None:
    """Draw a display without a screen."""
    import numpy as np

    from nplm import InterpolatedTrigram, windows
    from nplm.inspection import MixtureWeightsDisplay

    X, y = windows(np.arange(99) % 7, 2)
    display = MixtureWeightsDisplay.from_estimator(InterpolatedTrigram().fit(X, y))
    display.figure_.savefig("weights.svg")


def use_dask() -> None:
    """Search a grid, and score lines, on two workers of Dask."""
    from pathlib import Path

    import joblib
    import numpy as np
    from dask import bag
    from dask.distributed import Client, LocalCluster
    from sklearn.model_selection import GridSearchCV

    import nplm
    from nplm import ModelFile, NeuralLM, windows
    from nplm.formats import save_binary

    X, y = windows(np.arange(999) % 7, 2)
    network = NeuralLM(n_words=7, max_iter=1, random_state=0)
    workers = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with workers, Client(workers), joblib.parallel_config("dask"):
        search = GridSearchCV(network, {"n_hidden": [2, 4]}, cv=2).fit(X, y)
    print(search.best_params_)

    lines = [f"w{i % 7} w{i % 5} w{i % 3}" for i in range(999)]
    ngrams = nplm.TextLM(nplm.KneserNeyLM(discount_fallback=(0.5, 1, 1.5))).fit(lines)
    path = Path("model.nplm")
    save_binary(ngrams.estimator_, path, ngrams.vocabulary_.words_.tolist())
    file = ModelFile(path)
    workers = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with workers, Client(workers):
        parts = bag.from_sequence(lines, npartitions=8)
        scores = parts.map_partitions(lambda part: file.load().score_samples(part))
        assert scores.compute() == nplm.load(path).score_samples(lines).tolist()
    print(f"{len(lines)} lines have the scores of one process")


def use_serve() -> None:
    """Start the server of a page, ask it, and end it."""
    import json
    import signal
    import subprocess
    from urllib.request import Request, urlopen

    import nplm
    from nplm import KneserNeyLM, TextLM

    lm = TextLM(KneserNeyLM()).fit(["the cat sat on the mat", "a dog sat"] * 9)
    nplm.save(lm, "served")
    command = [sys.executable, "-m", "nplm", "serve", "served", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            # Serving served at http://127.0.0.1:... (...)
            said = server.stdout.readline()
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


def use_container() -> None:
    """Run the steps of the guide's Dockerfile, in environments in place of images."""
    import json
    import os
    import re
    import signal
    import subprocess
    import textwrap
    import time
    import venv
    from pathlib import Path

    root = Path(__file__).resolve().parents[1]
    page = (root / "docs/guide/serve.rst").read_text()
    block = re.search(r"code-block:: docker\n\n((?:   .*\n|\n)+)", page)[1]
    lines = textwrap.dedent(block).replace("\\\n", " ").split("\n")
    steps = [line.split(maxsplit=1) for line in lines if line]
    # Folders of the images; the other files of COPY are in them by their names.
    places = {"/nplm": str(root), "/wheels": "./wheels", "/model": "./model"}
    n_stages = 0

    def here(text: str) -> str:
        return re.sub("|".join(places), lambda match: places[match[0]], text)

    def run(command: str | list[str]) -> None:
        print(command, flush=True)
        subprocess.run(command, shell=isinstance(command, str), check=True)

    for word, rest in steps:
        if word == "FROM":
            n_stages += 1
            venv.create(f"stage{n_stages}", with_pip=True)
            path = f"{Path.cwd()}/stage{n_stages}/bin"
            os.environ["PATH"] = f"{path}:{os.environ['PATH']}"
        elif word == "RUN":
            # The system has a compiler and a user.
            for command in here(rest).split(" && "):
                if not command.startswith(("apt-get ", "useradd ")):
                    run(command)
    instructions = dict(steps)
    Path("text").write_text("the cat sat on the mat\n" * 50)
    run("nplm train text --output model")
    serve = json.loads(here(instructions["CMD"]))
    assert serve[-1] == instructions["EXPOSE"], "the port that is served is another"
    check = json.loads(instructions["HEALTHCHECK"].removeprefix("CMD"))
    with subprocess.Popen(serve) as server:
        try:
            until = time.monotonic() + 60
            while subprocess.run(check, stderr=subprocess.DEVNULL).returncode:
                assert time.monotonic() < until, "the server does not answer"
                time.sleep(0.5)
        finally:
            server.send_signal(signal.SIGINT)
    assert server.returncode == 0


def use_zstd() -> None:
    """Read a file compressed by zstd."""
    from importlib import import_module
    from pathlib import Path

    from nplm.datasets import TextLines

    zstd = import_module(
        "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    )
    Path("text.zst").write_bytes(zstd.compress(b"a rose\nis a rose\n"))
    assert list(TextLines("text.zst")) == ["a rose", "is a rose"]


def use_subwords() -> None:
    """Learn subword units, save them with a model and load it."""
    import nplm

    texts = ["to be or not to be", "that is the question"] * 20
    ngrams = nplm.KneserNeyLM(discount_fallback=(0.5, 1, 1.5))
    lm = nplm.TextLM(ngrams, tokenizer=nplm.Subwords("bpe", n_words=280)).fit(texts)
    nplm.save(lm, "lm")
    assert nplm.load("lm").text_scores(texts) == lm.text_scores(texts)


if __name__ == "__main__":
    globals()[f"use_{sys.argv[1]}"]()
