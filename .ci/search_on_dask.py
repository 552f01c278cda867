"""A grid search on two worker processes of Dask's."""

import joblib
import numpy as np
from dask.distributed import Client, LocalCluster
from sklearn.model_selection import GridSearchCV

from nplm import NeuralLM, windows

if __name__ == "__main__":
    X, y = windows(np.arange(999) % 7, 2)
    network = NeuralLM(n_words=7, max_iter=1, random_state=0)
    workers = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with workers, Client(workers), joblib.parallel_config("dask"):
        search = GridSearchCV(network, {"n_hidden": [2, 4]}, cv=2).fit(X, y)
    print(search.best_params_)
