"""A grid search over machines: the code of the guide, with local workers."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from nplm import windows
from tests.helpers import code_of, text

pytestmark = pytest.mark.slow


def test_search_over_dask_equals_search_in_one_process():
    distributed = pytest.importorskip("distributed")
    lines = code_of("parallel.rst", "search-over-machines")
    lines = lines.replace("[20, 50]", "[2, 5]")
    assert '"tcp://scheduler:8786"' in lines
    X, y = windows(text(400, n_words=12), 2)
    names = {"n_words": 12, "X": X, "y": y}
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        lines = lines.replace("tcp://scheduler:8786", cluster.scheduler_address)
        exec(lines, names)
        search, client = names["search"], names["client"]
        assert len(client.scheduler_info()["workers"]) == 2
        client.close()
    grid = {"n_hidden": [2, 5], "output__direct": [False, True]}
    alone = GridSearchCV(clone(names["network"]), grid, cv=3).fit(X, y)
    assert search.best_params_ == alone.best_params_
    found, expected = (s.cv_results_["mean_test_score"] for s in (search, alone))
    np.testing.assert_array_equal(found, expected)
