"""Files of KenLM's ``build_binary``: its numbers, and the n-grams of tries."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose

import nplm
from nplm import kenlm
from nplm.cli import main
from nplm.formats import load_binary, read_arpa
from nplm.formats.open_model import open_model
from nplm.models.ngrams.kenlm_trie import KenlmTrie
from nplm.models.ngrams.trie.work import Work

DATA = Path(__file__).parent / "kenlm_data"
EXACT = ["probing", "probing-v", "trie", "trie-v", "trie-a"]
KINDS = [*EXACT, "trie-q", "trie-q-b-a"]
LINES = (DATA / "model.arpa").read_text().splitlines()
TEXTS = [
    "", "a rose is a rose", "a b d", "zz a rose", "été 東京 a", "a </s> a", "d <unk>",
    *(" ".join(line.split()[1:-1]) for line in LINES[44:] if "s>" not in line),
]  # fmt: skip


@pytest.fixture
def run():
    def run(*arguments, code=0):
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == code, result.output
        return result

    return run


@pytest.mark.parametrize("bos", [True, False])
@pytest.mark.parametrize("name", [*KINDS, "closed"])
def test_scores_are_those_of_kenlm(name, bos):
    theirs = pytest.importorskip("kenlm", reason="needs KenLM's module")
    ours, their = kenlm.Model(DATA / name), theirs.Model(str(DATA / name))
    assert ours.order == their.order == 3
    for text in TEXTS:
        found = list(ours.full_scores(text, bos=bos))
        expected = list(their.full_scores(text, bos, True))
        assert_allclose(found, expected, rtol=1e-12)
    words = " ".join(TEXTS).split() * 9
    assert all((word in ours) == (word in their) for word in [*words, "<s>"])
    states = [[m.State(), m.State()] for m in (kenlm, theirs)]
    totals = np.zeros(2)
    for word in words[:1000]:
        for i, model in enumerate((ours, their)):
            totals[i] += model.BaseScore(states[i][0], word, states[i][1])
            states[i].reverse()
    assert abs(totals[0] - totals[1]) < 1e-9


@pytest.mark.parametrize("name", EXACT)
def test_scores_are_those_of_the_arpa_file(name):
    """Without KenLM's module: its n-grams have the numbers of the ARPA file."""
    expected = kenlm.Model(DATA / "model.arpa")
    found = kenlm.Model(DATA / name)
    for text in TEXTS:
        for bos in (True, False):
            assert_allclose(
                list(found.full_scores(text, bos=bos)),
                list(expected.full_scores(text, bos=bos)),
                rtol=1e-6,
            )
    again = pickle.loads(pickle.dumps(nplm.load(DATA / name).scorer()))
    assert_allclose(again.score(TEXTS[1]) / np.log(10), found.score(TEXTS[1]))


def ids_in(lm, model):
    """Return the ids of one model's words in another."""
    return np.array([lm.vocabulary_.ids_[word] for word in model.vocabulary_.words_])


@pytest.mark.parametrize("name", ["probing", "trie", "trie-a"])
def test_windows_have_the_probabilities_of_the_arpa_file(name):
    arpa, lm = nplm.load(DATA / "model.arpa"), nplm.load(DATA / name)
    ids = ids_in(lm, arpa)
    assert sorted(ids) == list(range(lm.n_words_))
    rng = np.random.default_rng(0)
    X = rng.integers(0, len(ids), (500, 2)).astype(np.int32)
    # Real contexts, and nothing before a boundary.
    X[:200] = arpa.estimator_.trie_.ngrams(2)[rng.integers(0, 74, 200), :2]
    boundary = arpa.boundary_
    X[X[:, 1] == boundary, 0] = boundary
    y = rng.integers(0, len(ids), 500).astype(np.int32)
    y[:200] = arpa.estimator_.trie_.ngrams(2)[rng.integers(0, 74, 200), 2]
    expected = arpa.estimator_.log_prob(X, y)
    found = lm.estimator_.log_prob(ids[X].astype(np.int32), ids[y].astype(np.int32))
    assert_allclose(found, expected, rtol=1e-5)
    rows = lm.estimator_.predict_proba(ids[X[:9]])[:, ids]
    assert_allclose(rows, arpa.estimator_.predict_proba(X[:9]), rtol=1e-5)


@pytest.mark.parametrize("name", ["trie", "trie-a", "trie-q", "trie-q-b-a", "closed"])
def test_ngrams_of_tries_are_listed(name, tmp_path):
    lm = nplm.load(DATA / name)
    with open_model(DATA / name) as file:
        ngrams = file.text_ngrams(Work())
    listed = nplm.BackoffLM.from_trie(ngrams.trie, boundary=ngrams.boundary)
    nplm.formats.write_arpa(listed, tmp_path / "arpa", lm.vocabulary_.words_.tolist())
    again = kenlm.Model(tmp_path / "arpa")
    own = kenlm.Model(DATA / name)
    for text in TEXTS:
        found, expected = (
            [score[0] for score in m.full_scores(text)] for m in (again, own)
        )
        if name == "closed":  # where KenLM adds weights to -100
            found, expected = np.maximum(found, -90), np.maximum(expected, -90)
        assert_allclose(found, expected, atol=2e-6)
    if "q" in name:
        return
    # Those of the ARPA file, and the suffixes that KenLM inserted.
    model, words = read_arpa(DATA / "model.arpa", add_unknown=True)
    for level in range(3):
        ours, theirs = (
            {tuple(w[i] for i in ngram) for ngram in of.trie_.ngrams(level)}
            for of, w in (
                (model, words), (listed, lm.vocabulary_.words_.tolist())
            )
        )  # fmt: skip
        assert ours <= theirs
        assert len(theirs) == [len(words), 168, 74][level]


@pytest.mark.parametrize("name", ["probing", "probing-v", "trie-v"])
def test_hashes_are_not_listed(name, run, tmp_path):
    why = "hash table of KenLM" if "probing" in name else "hashes in place of words"
    for command in ("convert", "prune"):
        options = ["--threshold", "0.1"] if command == "prune" else []
        result = run(
            command, str(DATA / name), str(tmp_path / "out.arpa"), *options, code=1
        )
        assert why in result.stderr and "damaged" not in result.stderr
    if name != "probing":
        lm = nplm.load(DATA / name)
        with pytest.raises(ValueError, match="its words cannot be listed"):
            lm.next_words("a")
        assert lm.perplexity(["a rose"]) == nplm.load(DATA / "probing").perplexity(
            ["a rose"]
        )


def test_commands_take_them(run, tmp_path):
    """Pruned, mixed, quantized and scored as the ARPA file."""
    arpa, trie = str(DATA / "model.arpa"), str(DATA / "trie")
    (tmp_path / "text").write_text("a rose is\na b d\nnone\n")
    text, found = str(tmp_path / "text"), {}
    for name, model in (("arpa", arpa), ("trie", trie)):
        out = [str(tmp_path / f"{name}.{i}") for i in range(4)]
        run("prune", model, out[0], "--threshold", "0.5", "--to", "binary")
        run("mix", model, arpa, "--weights", "0.3,0.7", "-o", out[1])
        run("convert", model, out[2], "--bits", "8")
        run("prune", model, out[3], "--threshold", "0.5")
        found[name] = [
            float(line)
            for m in (model, *out)
            for line in run("score", m, text).stdout.split()
        ]
    assert_allclose(found["trie"], found["arpa"], atol=0.02)
    assert_allclose(found["trie"][:3], found["arpa"][:3], atol=1e-5)


def changed(name, at, value, tmp_path):
    data = bytearray((DATA / name).read_bytes())
    data[at : at + len(value)] = value
    path = tmp_path / "changed"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("name", "at", "value", "message"),
    [
        ("probing-r", 0, b"", "has rest costs .build_binary -r"),
        ("stream", 0, b"", "has no <s> or no </s>"),
        ("trie", 49, b"4", "has format version 4"),
        ("trie", 34, b"incomplete", "build did not finish"),
        ("trie", 56, b"\1", "other sizes or another byte order"),
        ("trie", 88, b"\1", "order 1, and orders from 2"),
        ("trie", 96, b"\x09", "has type 9"),
        ("trie", 104, b"\2", "version 2 of KenLM's trie"),
        ("trie", 109, b"\1", "has 33 words, but 289"),
        ("probing", 92, b"\0\0\0\0", "0.0 places"),
        ("trie-q", 408, b"\3", "codes have version 3"),
        ("trie-a", 968, b"\1", "arrays have version 1"),
    ],
)
def test_other_files_are_refused(name, at, value, message, tmp_path):
    path = changed(name, at, value, tmp_path)
    with pytest.raises(ValueError, match=message) as error:
        nplm.load(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("name", ["probing", "trie-q-b-a"])
def test_files_that_are_read_into_memory_have_the_scores_of_mapped_ones(name):
    read = [nplm.load(DATA / name, mmap=False) for _ in range(4)]
    assert {lm.estimator_.trie_.memory.ctypes.data % 64 for lm in read} == {0}
    scores = nplm.load(DATA / name).score_samples(TEXTS)
    assert read[0].score_samples(TEXTS).tolist() == scores.tolist()


@pytest.mark.parametrize("name", ["probing", "trie-q-b-a"])
def test_truncated_files_are_refused(name, tmp_path):
    data = (DATA / name).read_bytes()
    for n in range(60, len(data), 61):
        (tmp_path / "cut").write_bytes(data[:n])
        with pytest.raises(ValueError, match="cut is a binary file of KenLM"):
            nplm.load(tmp_path / "cut")


def test_words_and_numbers_are_verified(tmp_path):
    data = (DATA / "trie").read_bytes()
    at = data.index(b"rose\0")
    path = changed("trie", at, b"nose", tmp_path)
    nplm.load(path)
    with pytest.raises(ValueError, match="words do not have its hashes"):
        nplm.load(path, verify=True)
    path = changed("trie", 424, b"\xff" * 8, tmp_path)
    with pytest.raises(ValueError, match="is damaged"):
        nplm.load(path, verify=True)


@pytest.mark.parametrize("name", ["trie", "trie-q-b-a"])
def test_words_that_are_not_sorted_are_refused(name, monkeypatch):
    nplm.load(DATA / name, verify=True)
    nodes = KenlmTrie.nodes

    def reversed_words(self, i, begin, end):
        words, *numbers = nodes(self, i, begin, end)
        return words[::-1], *numbers

    monkeypatch.setattr(KenlmTrie, "nodes", reversed_words)
    with pytest.raises(ValueError, match="in its 2-grams, words are not sorted"):
        nplm.load(DATA / name, verify=True)


@pytest.mark.parametrize("name", ["probing", "trie-a"])
def test_decoders_take_them(name):
    """The candidates of decoders score as with the ARPA file."""
    found, expected = (nplm.load(DATA / n) for n in (name, "model.arpa"))
    scorers = found.scorer(), expected.scorer()
    states = [scorer.begin() for scorer in scorers]
    for word in ("a", "rose", "zz", "d"):
        steps = [scorer.step(state, word) for scorer, state in zip(scorers, states)]
        states = [state for _, state in steps]
        assert steps[0][0] == pytest.approx(steps[1][0], rel=1e-6)
        candidates = [s.candidates(own, ["a", "b"]) for s, own in zip(scorers, states)]
        assert_allclose(*candidates, rtol=1e-6)


def test_reader_of_other_binary_files_names_theirs():
    with pytest.raises(ValueError, match="files of KenLM"):
        load_binary(Path(__file__).parent / "kenlm_data" / "probing")
