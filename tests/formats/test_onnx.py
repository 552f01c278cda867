"""ONNX files: onnxruntime computes the probabilities of the exported network."""

import os
import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from nplm import KneserNeyLM, windows
from nplm.formats import onnx as module
from nplm.formats import write_onnx
from tests.helpers import energy_lm, paper_lm, text

X, Y = windows(text(300), 4)
SMALL = dict(n_words=12, n_hidden=5, embedding_dim=3, max_iter=2, random_state=0)

NETWORKS = {
    "softmax": {},
    "direct, double": dict(direct=True, precision="float64"),
    "no hidden units": dict(n_hidden=0, direct=True),
    "smaller order": dict(order=3),
    "tied": dict(tied=True),
    "tied, direct": dict(tied=True, direct=True, precision="float64"),
    "tied, no hidden units": dict(tied=True, direct=True, n_hidden=0),
    "distant": dict(order=3, n_distant=4, direct=True),
    "senses": dict(n_senses=2),
    "senses, distant, double": dict(
        order=3, n_senses=3, n_distant=4, precision="float64"
    ),
    "of parts": dict(word_features=np.eye(12)[:, :4]),
    "nce": dict(loss="nce"),
    "blocks": dict(n_hidden=(5, 8, 4)),
    "tied, blocks, double": dict(
        n_hidden=(5, 8, 4), tied=True, direct=True, precision="float64"
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_onnxruntime_computes_the_same_scores(tmp_path, name):
    runtime = pytest.importorskip("onnxruntime")
    checker = pytest.importorskip("onnx.checker")
    lm = paper_lm(**SMALL | NETWORKS[name], learning_rate_init=0.1).fit(X, Y)
    write_onnx(lm, tmp_path / "lm.onnx")
    checker.check_model(str(tmp_path / "lm.onnx"), full_check=True)
    session = runtime.InferenceSession(tmp_path / "lm.onnx")
    expected = lm.predict_log_proba(X)
    for rows in (slice(None), slice(1)):
        [found] = session.run(None, {"contexts": X[rows].astype(np.int64)})
        assert found.dtype == expected.dtype
        tolerance = 1e-5 if found.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(found, expected[rows], atol=tolerance)
    assert os.listdir(tmp_path) == ["lm.onnx"]


def test_unsupported_models_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "lm.onnx"
    for lm, message in [
        (paper_lm(**SMALL, output="classes"), "ends in output='classes', and only a"),
        (paper_lm(**SMALL, output="tree"), "ends in output='tree'"),
        (paper_lm(1, **SMALL), "order=1 looks at no word"),
    ]:
        with pytest.raises(ValueError, match=message):
            write_onnx(lm.fit(X, Y), path)
    with pytest.raises(TypeError, match="EnergyLM is no NeuralLM"):
        write_onnx(energy_lm(**SMALL).fit(X, Y), path)
    with pytest.raises(TypeError, match="KneserNeyLM is no NeuralLM"):
        write_onnx(KneserNeyLM(), path)
    with pytest.raises(NotFittedError):
        write_onnx(paper_lm(), path)
    lm = paper_lm(**SMALL).fit(X, Y)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_onnx(lm, tmp_path / "absent" / "lm.onnx")
    with monkeypatch.context() as patch:
        patch.setattr(module, "MAX_BYTES", 100)
        with pytest.raises(ValueError, match="an ONNX file has 100 at most"):
            write_onnx(lm, path)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match="pip install onnx"):
        write_onnx(lm, path)
    assert not any(tmp_path.iterdir())
