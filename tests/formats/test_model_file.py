"""Models in files, loaded once in each process: here, in threads and on Dask."""

import os
import pickle
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import nplm
from nplm import KneserNeyLM, ModelFile, NeuralLM, TextLM
from nplm.formats import loading, save_binary, write_arpa
from nplm.formats.open_model import OpenModel
from tests.helpers import code_of, small_text
from tests.helpers.texts import texts

pytestmark = small_text
LOAD = OpenModel.load


LINES = texts(300, n_words=30)


@pytest.fixture(scope="module")
def models():
    with pytest.warns(UserWarning, match="Kneser-Ney"):
        ngrams = TextLM(KneserNeyLM(), n_context=2).fit(LINES)
    network = NeuralLM(n_hidden=8, embedding_dim=6, max_iter=1, random_state=0)
    return {"n-grams": ngrams, "network": TextLM(network, 2).fit(LINES)}


def save_mapped(lm, path, write=save_binary):
    write(lm.estimator_, path, lm.vocabulary_.words_.tolist())


def save_arpa(lm, path):
    save_mapped(lm, path, write_arpa)


@pytest.fixture
def path(tmp_path, models):
    save_mapped(models["n-grams"], tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def loads(monkeypatch):
    """The files that this process loads."""
    found = []

    def counted(file):
        found.append(file.path)
        return LOAD(file)

    monkeypatch.setattr(OpenModel, "load", counted)
    monkeypatch.setattr(loading._Cache, "models", {})
    return found


def test_a_process_loads_a_file_once(path, loads, monkeypatch):
    monkeypatch.chdir(path.parent)
    file = ModelFile("model")
    monkeypatch.chdir("/")
    sent = pickle.dumps(file)
    assert len(sent) < 500
    with ThreadPoolExecutor(8) as pool:
        loaded = list(pool.map(lambda _: pickle.loads(sent).load(), range(8)))
    lm = file.load()
    assert all(other is lm for other in [*loaded, ModelFile(path).load()])
    assert loads == [path]
    expected = nplm.load(path).score_samples(LINES)
    np.testing.assert_array_equal(lm.score_samples(LINES), expected)


def test_equal_copies_are_loaded_once(path, loads):
    file = ModelFile(path)
    lm = file.load()
    shutil.copy(path, path.with_name("copy"))
    os.replace(path.with_name("copy"), path)
    assert file.load() is lm
    assert len(loads) == 1


@pytest.mark.parametrize("write", [save_mapped, nplm.save, save_arpa])
def test_replaced_files_are_refused(tmp_path, models, loads, write):
    path = tmp_path / "model"
    write(models["n-grams"], path)
    file, unopened = ModelFile(path), ModelFile(path)
    old = file.load()
    with pytest.warns(UserWarning, match="Kneser-Ney"):
        other = TextLM(KneserNeyLM(), n_context=2).fit(LINES[::-1] * 2)
    write(other, path)
    for sent in (file, pickle.loads(pickle.dumps(unopened))):
        with pytest.raises(ValueError, match=r"model on .* is another file than when"):
            sent.load()
    new = ModelFile(path).load()
    assert new is not old
    # Refused also when the new one is loaded; and only one is kept.
    with pytest.raises(ValueError, match="Copy the model again, or make another"):
        file.load()
    assert len(loads) == 2 and len(loading._Cache.models) == 1


def test_file_that_is_replaced_while_it_is_loaded_is_refused(path, loads, monkeypatch):
    file = ModelFile(path)

    def replaced(file):
        lm = LOAD(file)
        os.utime(file.path, (0, 0))
        return lm

    monkeypatch.setattr(OpenModel, "load", replaced)
    with pytest.raises(ValueError, match="it was written while it was read"):
        file.load()


def test_missing_and_damaged_files_are_refused(path, loads):
    file = ModelFile(path)
    data = path.read_bytes()
    path.unlink()
    for fails in (file.load, lambda: ModelFile(path)):
        with pytest.raises(FileNotFoundError, match=r"no file .*model on .*every mach"):
            fails()
    with pytest.raises(IsADirectoryError):
        ModelFile(path.parent)
    path.write_bytes(data[:-8])
    for fails in (file.load, lambda: ModelFile(path)):
        with pytest.raises(ValueError, match=r"model on .* cannot be .*: it is trunc"):
            fails()
    path.write_text("no model\n")
    with pytest.raises(ValueError, match="not an ARPA file"):
        ModelFile(path).load()
    # A file that could not be loaded can be when it is put right.
    path.write_bytes(data)
    assert file.load().n_words_ == nplm.load(path).n_words_


def test_file_is_mapped_unread_unless_it_is_to_be_verified(path, loads):
    expected = nplm.load(path, verify=True).score_samples(LINES)
    file = ModelFile(path)
    assert repr(file) == f"ModelFile({str(path)!r})"
    found = file.load()
    np.testing.assert_array_equal(found.score_samples(LINES), expected)
    # Another owner may need it checked.
    checked = ModelFile(path, verify=True)
    assert repr(checked) == f"ModelFile({str(path)!r}, verify=True)"
    assert checked.load() is not found
    damaged = bytearray(path.read_bytes())
    damaged[-500] ^= 1
    path.write_bytes(bytes(damaged))
    loading._Cache.models.clear()
    ModelFile(path).load()
    with pytest.raises(ValueError, match=r"model is damaged: the checksum of"):
        ModelFile(path, verify=True).load()


# What Python says of a fork of a process with threads.
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_fork_loads_while_another_thread_holds_the_lock(path, loads):
    file = ModelFile(path)
    with loading._Cache.lock:
        child = os.fork()
        if not child:
            signal.alarm(30)
            os._exit(0 if file.load().n_words_ else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def count_loads():
    """Replace the loader of a worker by one that counts."""
    loading.n_loads = 0

    def counted(file):
        loading.n_loads += 1
        return LOAD(file)

    OpenModel.load = counted


def loads_here():
    return os.getpid(), loading.n_loads


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mapped", "n-grams", "network"])
def test_dask_scores_as_one_process(tmp_path, models, workers, name):
    distributed = pytest.importorskip("distributed")
    pytest.importorskip("dask.bag")
    path = tmp_path / "model.nplm"
    if name == "mapped":
        save_mapped(models["n-grams"], path)
    else:
        nplm.save(models[name], path)
    lines = code_of("parallel.rst", "score-over-machines")
    for i in range(8):
        own = "\n".join(LINES[i::8]) + "\n"
        (tmp_path / f"{i}.txt").write_text(own)
    for usual, here in [
        ("tcp://scheduler:8786", workers.scheduler_address),
        ("/shared/model.nplm", str(path)),
        ("/shared/texts/", f"{tmp_path}/"),
    ]:
        assert usual in lines
        lines = lines.replace(usual, here)
    with distributed.Client(workers) as client:
        client.run(count_loads)
        names = {}
        exec(lines, names)
        counts = client.run(loads_here).values()
        names["client"].close()
    assert len({pid for pid, _ in counts} - {os.getpid()}) == 2
    assert [n for _, n in counts] == [1, 1]
    documents = [line for i in range(8) for line in LINES[i::8]]
    expected = nplm.load(path).score_samples(documents)
    np.testing.assert_array_equal(names["log_probs"], expected)
    if name != "mapped":
        np.testing.assert_array_equal(
            names["log_probs"], models[name].score_samples(documents)
        )


@pytest.fixture(scope="module")
def workers():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        yield cluster
