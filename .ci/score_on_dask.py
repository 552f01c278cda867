"""Scores on two worker processes of Dask's, which are those of this process."""

from pathlib import Path

from dask import bag
from dask.distributed import Client, LocalCluster

import nplm
from nplm import ModelFile
from nplm.formats import save_binary

if __name__ == "__main__":
    lines = [f"w{i % 7} w{i % 5} w{i % 3}" for i in range(999)]
    ngrams = nplm.TextLM(nplm.KneserNeyLM(discount_fallback=(0.5, 1, 1.5))).fit(lines)
    path = Path("model.nplm")
    save_binary(ngrams.estimator_, path, ngrams.vocabulary_.words_.tolist())
    file = ModelFile(path)
    workers = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with workers, Client(workers):
        parts = bag.from_sequence(lines, npartitions=8)
        found = parts.map_partitions(lambda part: file.load().score_samples(part))
        assert found.compute() == nplm.load(path).score_samples(lines).tolist()
    print(f"{len(lines)} lines have the scores of one process")
