"""Files to share: networks without the optimizer's state, and in half precision."""

import numpy as np
import pytest

import nplm
from nplm.base.files.tensors import read_tensors
from tests.helpers import small_text

NETWORK = ["--epochs", "2", "--hidden", "8", "--embedding", "4", "--order", "3"]


@pytest.fixture(scope="module")
def made(folder, run):
    for model, options in {"network": [], "kept": ["--keep-optimizer"]}.items():
        train = ["@train", "--model", "network", *NETWORK, *options]
        run("train", *train, "-o", f"@{model}")
    run("train", "@train", "--order", "2", "-o", "@kn")
    return folder


def arrays_of(path):
    return read_tensors(path, mmap=False)[0]


def test_a_trained_network_has_no_state_of_the_optimizer(made, run):
    light, kept = (nplm.load(made / name) for name in ("network", "kept"))
    assert light.estimator_._trained.solver_state == {}
    assert kept.estimator_._trained.solver_state
    assert not any("moments" in name for name in arrays_of(made / "network"))
    scores = [run("score", f"@{n}", "@test").stdout for n in ("network", "kept")]
    assert scores[0] == scores[1]


def test_convert_drops_the_optimizer_and_halves_the_weights(made, run, tmp_path):
    sizes = {}
    for name, options in {
        "light": [], "kept": ["--keep-optimizer"], "half": ["--float16"],
    }.items():  # fmt: skip
        run("convert", "@kept", str(tmp_path / name), *options)
        sizes[name] = sum(
            array.nbytes
            for key, array in arrays_of(tmp_path / name).items()
            if ".arrays." in key or ".moments." in key
        )
    assert sizes["kept"] == pytest.approx(3 * sizes["light"], rel=0.2)
    assert sizes["half"] == sizes["light"] / 2
    score = ["score", "@kept", "@test"]
    wanted = np.array(run(*score).stdout.split(), float)
    found = run("score", str(tmp_path / "half"), "@test").stdout.split()
    np.testing.assert_allclose(np.array(found, float), wanted, atol=0.01)


@small_text
def test_convert_notes_what_a_file_of_ngrams_does_not_hold(run, tmp_path):
    texts = ["a rose is a rose", "the rose is red"] * 5
    models = {
        "plain": {"tokenizer": nplm.Tokenizer(lowercase=True)},
        "pieces": {"tokenizer": nplm.Subwords("bytes")},
        "no ends": {"predict_boundary": False},
    }
    notes = {}
    for name, options in models.items():
        lm = nplm.TextLM(nplm.KneserNeyLM(2), 1, **options).fit(texts)
        nplm.save(lm, tmp_path / name)
        out = str(tmp_path / "out")
        made = run("convert", str(tmp_path / name), out, "--to", "binary")
        notes[name] = made.stderr
    assert notes["plain"] == ""
    assert "out has no tokenizer" in notes["pieces"]
    assert "the end of a line will count as a token" in notes["no ends"]


def test_convert_writes_an_fst_from_every_kind_of_ngrams(made, run, tmp_path):
    out = tmp_path / "G"
    table, arpa = str(tmp_path / "words.txt"), str(tmp_path / "lm.arpa")
    run("convert", "@kn", arpa)
    run("convert", arpa, str(tmp_path / "mapped"), "--to", "binary")
    found = []
    for model in ("@kn", arpa, str(tmp_path / "mapped")):
        run("convert", model, str(out), "--to", "fst", "--symbols", table)
        found.append([line.rsplit("\t", 1)[0] for line in out.read_text().splitlines()])
    assert found[0] == found[1] == found[2]
    texts = []
    for options in ([], ["--backoff-symbol", "<eps>"]):
        run("convert", arpa, str(out), "--to", "fst", *options)
        texts.append(out.read_text())
    assert texts[0].replace("#0", "<eps>") == texts[1] != texts[0]


def test_convert_adds_and_boosts_words_of_every_kind_of_ngrams(made, run, tmp_path):
    names, arpa = tmp_path / "names", str(tmp_path / "lm.arpa")
    names.write_text("zebra 4\n\ndog 2.5\ngnu\n")
    run("convert", "@kn", arpa)
    run("convert", arpa, str(tmp_path / "lm8"), "--bits", "8")
    expected = nplm.boost_words(nplm.load(arpa), {"zebra": 4, "dog": 2.5, "gnu": 1})
    texts = ["the zebra sees", "a dog bites it", "gnu", "unknown"]
    forms = ("lm.arpa", "out", 1e-5), ("@kn", "a.arpa", 1e-3), ("lm8", "b.arpa", 0.05)
    for model, out, close in forms:
        model = model if model == "@kn" else str(tmp_path / model)
        run("convert", model, str(tmp_path / out), "--boost", str(names))
        found = nplm.load(tmp_path / out)
        np.testing.assert_allclose(
            found.score_samples(texts), expected.score_samples(texts), atol=close
        )
