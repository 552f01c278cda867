"""``python -m tests.hours.spark``: the guide's examples of Spark, on two workers.

Needs Java, and ``pip install pyspark "pandas<3" pyarrow`` (PySpark 4.3 warns of pandas
3). The workers are processes of Spark's ``local-cluster``, on one machine. The file
``spark.log`` has what this printed.
"""

import io
import os
import platform
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pyspark
from pyspark.sql import SparkSession

import nplm
from nplm import KneserNeyLM, NeuralLM, TextLM, Vocabulary
from nplm.formats import CountTables, estimate_binary, save_binary
from tests.helpers import code_of
from tests.helpers.ngrams import many_lines, words_of

N_WORKERS, N_PARTS, ORDER = 2, 8, 4
# Networks take longer.
N_SCORED = {"mapped n-grams": 100_000, "network": 10_000}

# Python runs this at the start of every worker: a load writes a line.
COUNT_LOADS = """
import os
from nplm.formats.open_model import OpenModel

load = OpenModel.load

def counted(file):
    with open(f"{file.path}.loads", "a") as loads:
        loads.write(f"{os.getpid()}\\n")
    return load(file)

OpenModel.load = counted
"""


def main():
    """Score and count, and print what was found."""
    versions = [f"{own.__name__} {own.__version__}" for own in (pyspark, pd, pyarrow)]
    print(f"Python {platform.python_version()}, {', '.join(versions)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sitecustomize.py").write_text(COUNT_LOADS)
        spark = session(folder)
        print(f"{spark.sparkContext.master}, Java {java(spark)}")
        lines = many_lines()
        for kind, lm in models(lines).items():
            own = folder / kind.replace(" ", "-")
            score(kind, lm, sorted(lines[: N_SCORED[kind]]), own)
        count(lines, folder / "counted")
        spark.stop()


def session(folder):
    """Start Spark; the guide's code then finds it."""
    settings = {
        "spark.executorEnv.PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
        "spark.scheduler.minRegisteredResourcesRatio": 1,  # waits for all workers
        "spark.sql.files.minPartitionNum": N_PARTS,
        "spark.sql.shuffle.partitions": N_PARTS,
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
    }
    # Of each worker cores and megabytes.
    builder = SparkSession.builder.master(f"local-cluster[{N_WORKERS},1,1024]")
    return builder.config(map=settings).getOrCreate()


def java(spark):
    return spark.sparkContext._jvm.java.lang.System.getProperty("java.version")


def run(page, label, here):
    """Run an example of the guide, with the names that are here."""
    lines = code_of(page, label)
    for usual, own in here.items():
        assert f'"{usual}"' in lines, usual
        lines = lines.replace(f'"{usual}"', repr(str(own)))
    names, start = {}, time.perf_counter()
    exec(lines, names)
    return names, f"{time.perf_counter() - start:.0f} s"


def models(lines):
    """Fit what is scored."""
    ngrams = KneserNeyLM(discount_fallback=(0.5, 1, 1.5))
    network = NeuralLM(n_hidden=20, embedding_dim=10, max_iter=1, random_state=0)
    vocabulary = Vocabulary(max_words=2_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # one epoch is no good fit
        return {
            "mapped n-grams": TextLM(ngrams, vocabulary=vocabulary).fit(lines),
            "network": TextLM(network, vocabulary=vocabulary).fit(lines[:5_000]),
        }


def score(kind, lm, documents, folder):
    """Compare the scores of the cluster with those of this process."""
    (folder / "texts").mkdir(parents=True)
    path = folder / "model.nplm"
    if kind == "network":
        nplm.save(lm, path)
    else:
        save_binary(lm.estimator_, path, lm.vocabulary_.words_.tolist())
    for i in range(N_PARTS):
        text = "\n".join(documents[i::N_PARTS]) + "\n"
        (folder / "texts" / f"{i}.txt").write_text(text)
    here = {f"/shared/{name}": folder / name for name in ("texts", "scores")}
    here["/shared/model.nplm"] = path
    names, seconds = run("parallel.rst", "score-with-spark", here)
    n_parts = names["lines"].rdd.getNumPartitions()

    found = pd.read_parquet(folder / "scores").sort_values("value")
    assert found["value"].tolist() == documents
    expected = nplm.load(path).score_samples(documents)
    np.testing.assert_array_equal(found["log_prob"], expected)
    processes = Path(f"{path}.loads").read_text().split()
    assert len(processes) == len(set(processes)) == N_WORKERS
    assert str(os.getpid()) not in processes
    print(
        f"{kind}: {len(documents):,} documents in {n_parts} partitions have the bits "
        f"of one process; each of {len(processes)} workers loaded it once ({seconds})"
    )


def count(lines, folder):
    """Compare the model of Spark's counts with that of the text."""
    folder.mkdir()
    text = "\n".join(lines) + "\n"
    (folder / "lines.txt").write_text(text)
    here = {name: folder / name for name in ("lines.txt", "counts")}
    names, seconds = run("ngrams.rst", "counted-by-spark", here)
    words = names["words"]
    assert words == words_of(lines)
    model = KneserNeyLM(ORDER, discount_fallback=(0.5, 1, 1.5))
    estimate_binary(model, CountTables([folder / "counts"], words), folder / "found")
    estimate_binary(
        model, [io.BytesIO(text.encode())], folder / "expected",
        vocabulary=Vocabulary(words=words, unknown=None),
    )  # fmt: skip
    found = (folder / "found").read_bytes()
    assert found == (folder / "expected").read_bytes()
    n_files = len(list((folder / "counts").glob("*.parquet")))
    n_rows = len(pd.read_parquet(folder / "counts"))
    print(
        f"counts: {n_rows:,} n-grams of order {ORDER} in {n_files} files make the "
        f"{len(found):,} bytes of the model of the text ({seconds})"
    )


if __name__ == "__main__":
    main()
