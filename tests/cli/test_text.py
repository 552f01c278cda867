"""The commands on text: their figures are KenLM's, their errors are sentences."""

import gzip
import lzma
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner

import nplm
from nplm import TextLM
from nplm.cli import _text, main
from nplm.cli.commands import generate
from nplm.formats import read_arpa, read_vectors, save_binary
from nplm.neural.training.epochs import Epochs

NETWORK = ["--model", "network", "--epochs", "2", "--hidden", "8", "--embedding", "4"]


def sentences(n, seed=0):
    """Lines of a small grammar."""
    random = np.random.default_rng(seed)
    parts = [["the", "a"], ["cat", "dog", "Cat"], ["sees", "bites"], ["them", "it"]]
    return [" ".join(random.choice(part) for part in parts) for _ in range(n)]


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    write(folder / "train", sentences(500))
    write(folder / "test", [*sentences(20, 1), "the zebra sees", "", "zebra"])
    return folder


@pytest.fixture(scope="module")
def run(folder):
    def run(*arguments, code=0, **options):
        arguments = [str(folder / a[1:]) if a[:1] == "@" else a for a in arguments]
        result = CliRunner().invoke(main, arguments, **options)
        assert result.exit_code == code, result.output
        return result

    return run


@pytest.fixture(scope="module")
def made(folder, run):
    """Models in files: the words of the n-gram model begin at two tokens."""
    train = ["@train", "--order", "3", "--min-count", "2"]
    run("train", *train, "-o", "@kn", "--test", "@test")
    run("train", *train, "-o", "@network", *NETWORK, "--precision", "float64")
    run("convert", "@kn", "@kn.arpa.gz")
    run("convert", "--to", "binary", "@kn", "@kn.bin")
    return folder


def figures(result):
    lines = [line.split(": ") for line in result.stdout.splitlines() if ": " in line]
    return {name: float(value) for name, value in lines}


NETWORKS = ["network", "energy", "shortlist", "mixture"]
MODELS = ["kneser-ney", "trigram", "classes", *NETWORKS]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("held_out", [True, False])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_train_any_model(folder, run, tmp_path, model, held_out):
    options = ["--valid", "@test"] if held_out else []
    options += NETWORK[2:] if model in NETWORKS else []
    options += {"classes": ["--classes", "4"], "shortlist": ["--shortlist", "5"]}.get(
        model, []
    )
    result = run(
        "train", "@train", "-o", str(tmp_path / "model"), "--model", model, *options,
        "--order", "3", "--test", "@test",
    )  # fmt: skip
    lm = nplm.load(tmp_path / "model")
    lines = (folder / "test").read_text().splitlines()
    assert f"test: perplexity {lm.perplexity(lines):.2f}" in result.stdout
    without = lm.perplexity(lines, skip="<unk>")
    assert f"without unknown words {without:.2f} (2 of 107 tokens)" in result.stdout
    assert ("validation: " in result.stdout) == held_out
    assert "trained on 500 lines of 2,000 words; vocabulary 11" in result.stderr
    assert not list(tmp_path.glob("*.checkpoint"))
    if model in NETWORKS:
        name = "EnergyLM" if model == "energy" else "NeuralLM"
        assert f"{name}: 100%, perplexity" in result.stderr
        assert not any(
            value for name, value in lm.get_params().items() if "verbose" in name
        )


@pytest.mark.parametrize("model", ["network", "mixture"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_interrupted_fit_goes_on(run, tmp_path, monkeypatch, model):
    def train(name, *options, **expected):
        command = ["train", "@train", *NETWORK[2:], "--model", model, *options]
        return run(*command, "-o", str(tmp_path / name), **expected)

    train("whole")

    def interrupt(epochs, done):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Epochs, "figure", interrupt)
        result = train("cut", code=130)
    kept = tmp_path / "cut.checkpoint"
    assert f"is in {kept}: the same command goes on from there" in result.stderr
    assert not (tmp_path / "cut").exists()
    result = train("cut", "--seed", "5", code=1)
    assert f"To begin anew, remove the folder {kept}" in result.stderr
    (kept / "mine").write_text("not the fit's")
    result = train("cut")
    assert f"Going on from {kept}." in result.stderr
    assert [path.name for path in kept.iterdir()] == ["mine"]
    whole, cut = (nplm.load(tmp_path / name) for name in ("whole", "cut"))
    text = ["the cat sees them", "a dog bites it"]
    np.testing.assert_array_equal(whole.score_samples(text), cut.score_samples(text))


def test_what_train_refuses(run, tmp_path):
    output = ["-o", str(tmp_path / "model")]
    (tmp_path / "empty").write_text("\n\n")
    empty = str(tmp_path / "empty")
    for options, code, message in [
        (["--order", "300000"], 2, "300000 is not in the range 2<=x<=32"),
        (["--jobs", "0"], 2, "0 threads do nothing: give 1 or more"),
        (["--model", "energy", "--direct"], 2, "energy has no --direct, which is of"),
        (["--hidden", "50"], 2, "has no --hidden, which is of network, energy, sho"),
        (["--shortlist", "9", *NETWORK], 2, "no --shortlist, which is of shortlist:"),
        (["--model", "trigram", "--classes", "9"], 2, "--classes, which is of classes"),
        (["--folder", str(tmp_path)], 2, "--folder is for --memory: give that too."),
        (["--test", empty], 1, f"there is no text to test on in {empty}."),
        (["--valid", empty], 1, f"there is no text to validate on in {empty}."),
    ]:
        result = run("train", "@train", *output, *options, code=code)
        assert message in " ".join(result.stderr.split())
    result = run("train", "@train", "-o", str(tmp_path / "model.arpa.gz"), code=2)
    assert "nplm convert makes ARPA of a" in " ".join(result.stderr.split())
    (tmp_path / "link").symlink_to(tmp_path / "absent" / "model")
    result = run("train", "@train", "-o", str(tmp_path / "link"), code=2)
    assert "absent cannot be written to: No" in " ".join(result.stderr.split())


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_train_in_bounded_memory(folder, run, tmp_path):
    # The same model as in memory, from packed text or standard input.
    options = ["--tokens", "blanks", "--order", "3", "--min-count", "2"]
    options += ["--test", "@test"]
    expected = run("train", "@train", "-o", str(tmp_path / "memory"), *options)
    packed = tmp_path / "train.xz"
    packed.write_bytes(lzma.compress((folder / "train").read_bytes()))
    disk = ["--memory", "20K", "--folder", str(tmp_path), "--jobs", "2"]
    for text, input in (("@train", None), (str(packed), None), (None, packed)):
        given = [] if text is None else [text]
        found = run(
            "train", *given, "-o", str(tmp_path / "disk"), *options, *disk,
            input=None if input is None else input.read_bytes(),
        )  # fmt: skip
        assert found.stdout == expected.stdout
        words = re.search("trained on .*", expected.stderr)[0]
        assert words in found.stderr
        assert "estimating" in found.stderr
        asked = [
            run("query", str(tmp_path / model), "@test").stdout
            for model in ("memory", "disk")
        ]
        assert asked[0] == asked[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "disk", "memory", "train.xz",
    ]  # fmt: skip
    arpa, given = str(tmp_path / "x.arpa.xz"), options[:-2]
    run("train", "@train", "-o", arpa, *given, *disk)
    disks = run("query", str(tmp_path / "disk"), "@test").stdout.split()
    # An ARPA file has seven decimals.
    for ours, one in zip(
        run("query", arpa, "@test").stdout.split(), disks, strict=True
    ):
        assert ours == one or float(ours) == pytest.approx(float(one), abs=1e-4)
    result = run("train", "@train", "-o", arpa, *options, *disk, code=2)
    assert "leave --valid and --test out" in result.stderr
    packed.write_bytes(packed.read_bytes()[:-20])
    result = run(
        "train", str(packed), "-o", str(tmp_path / "x"), *options, *disk, code=1
    )
    assert "cannot be unpacked" in result.stderr
    for wrong in (["--tokens", "words"], ["--tokens", "blanks", "--model", "trigram"]):
        result = run(
            "train", "@train", "-o", str(tmp_path / "x"), *wrong, *disk, code=2
        )
        assert "--memory estimates Kneser-Ney models of words" in result.stderr


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_words_to_know(folder, run, tmp_path):
    write(tmp_path / "words", ["the", "cat", "dog"])
    model = str(tmp_path / "model")
    options = ["-o", model, "--tokens", "blanks"]
    result = run("train", *options, "--vocabulary", str(tmp_path / "words"), "@train")
    assert nplm.load(model).vocabulary_.words_.tolist() == [
        "</s>", "<unk>", "the", "cat", "dog"
    ]  # fmt: skip
    assert "Warning: 7" in result.stderr  # of a hundred words
    assert "<unk>, which is easy to predict" in result.stderr
    run("train", *options, "--max-words", "4", input="a b b c.\n" * 9)
    assert nplm.load(model).vocabulary_.words_.tolist() == ["</s>", "<unk>", "b", "a"]
    result = run(
        "train", *options, "--vocabulary", "@train", "--min-count", "2", code=2
    )
    assert "leave one of both out" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_training_on_disk_that_is_ended_cleans_up(tmp_path, number):
    options = ["-o", str(tmp_path / "x"), "--tokens", "blanks", "--memory", "1M"]
    with subprocess.Popen(
        [sys.executable, "-m", "nplm", "train", *options, "--folder", str(tmp_path)],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        # It waits for more of its input: its folder is there.
        while not list(tmp_path.iterdir()):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        # Not communicate(), which would end its input.
        assert process.wait(60) == 130
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mark", ["<s>", "</s>"])
@pytest.mark.parametrize("on_disk", [False, True])
def test_marks_of_lines_in_a_text_are_refused(run, tmp_path, mark, on_disk):
    options = ["-o", str(tmp_path / "x"), "--tokens", "blanks", "--order", "2"]
    options += ["--memory", "20K"] if on_disk else []
    result = run("train", *options, input=f"a b\na {mark} b\n", code=1)
    assert "line 2" in result.stderr and f"has {mark!r}, which" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_query_is_kenlms_query(made, run):
    kenlm = pytest.importorskip("kenlm")
    model = kenlm.Model(str(made / "kn.arpa.gz"))
    lines = (made / "test").read_text().splitlines()
    result = run("query", "@kn.arpa.gz", "@test")
    total = known = n_unknown = n = 0
    for line, shown in zip(lines, result.stdout.splitlines()):
        words = [*line.split(), "</s>"]
        tokens = shown.split("\t")
        assert len(tokens) == len(words) + 1
        for word, token, (log10, order, is_new) in zip(
            words, tokens, model.full_scores(line)
        ):
            assert token == f"{word} {order} {log10:.4f}{' OOV' * is_new}"
            total, n, n_unknown = total + log10, n + 1, n_unknown + is_new
            known += 0 if is_new else log10
        assert float(tokens[-1].split()[1]) == pytest.approx(
            model.score(line), abs=1e-3
        )
    found = figures(result)
    assert (found["sentences"], found["words"]) == (len(lines), n - len(lines))
    assert found["unknown words"] == n_unknown == 2
    # KenLM's query: 10 to the minus of the mean, of all and without OOVs.
    assert found["log10 probability"] == pytest.approx(total, abs=2e-3)
    assert found["perplexity with unknown words"] == pytest.approx(
        10 ** (-total / n), rel=1e-4
    )
    # SRILM's ppl and ppl1: words - OOVs, with and without the sentences.
    n_words = n - len(lines) - n_unknown
    assert found["perplexity without unknown words"] == pytest.approx(
        10 ** (-known / (n_words + len(lines))), rel=1e-4
    )
    assert found["perplexity without unknown words and sentence ends"] == pytest.approx(
        10 ** (-known / n_words), rel=1e-4
    )


def test_one_model_in_files_of_all_kinds(made, run):
    wanted = figures(run("query", "-s", "@kn", "@test"))
    for name in ("@kn.arpa.gz", "@kn.bin"):
        found = figures(run("query", "--summary", name, "@test"))
        assert found == pytest.approx(wanted, rel=1e-3)


def test_query_without_orders_or_text(made, run):
    shown = run("query", "@network", "@test").stdout.splitlines()
    assert re.match(r"\S+ -\d+\.\d{4}\t", shown[0])
    result = run("query", "@kn", input="", code=1)
    assert "there is no line of text to query" in result.stderr
    assert run("score", "@kn", input="").stdout == ""
    result = run("query", "-s", "@kn", input="zebra zebra zebra\n")
    assert "Warning: 75% of the words are <unk>" in result.stderr


@pytest.mark.parametrize("packed", ["gz", "xz"])
def test_packed_arpa_is_a_model_everywhere(made, run, tmp_path, packed):
    path, plain = str(tmp_path / f"kn.arpa.{packed}"), str(tmp_path / "kn.arpa")
    run("convert", "@kn", path)
    start = (tmp_path / f"kn.arpa.{packed}").read_bytes()[:2]
    assert start == {"gz": b"\x1f\x8b", "xz": b"\xfd7"}[packed]
    run("convert", path, plain)
    for command in (["query"], ["score"], ["generate", "--seed", "1"], ["suggest"]):
        texts = ["@test"] if command[0] in ("query", "score") else []
        name, *options = command
        wanted = run(name, plain, *texts, *options).stdout
        assert run(name, path, *texts, *options).stdout == wanted
    run("prune", path, str(tmp_path / "pruned"), "--threshold", "0")
    cut = tmp_path / f"cut.{packed}"
    cut.write_bytes((tmp_path / f"kn.arpa.{packed}").read_bytes()[:-30])
    result = run("query", str(cut), "@test", code=1)
    assert "cannot be unpacked" in result.stderr


def test_a_tokenizer_that_a_file_cannot_hold_is_told_of(run, tmp_path):
    (tmp_path / "text").write_text("The end.\n" * 9)
    for tokens, told in ("words", True), ("blanks", False):
        model = str(tmp_path / tokens)
        run("train", str(tmp_path / "text"), "-o", model, "--tokens", tokens)
        result = run("convert", model, f"{model}.arpa")
        assert ("has no tokenizer" in result.stderr) is told
        assert not run("convert", f"{model}.arpa", f"{model}.again.arpa").stderr


def test_text_from_anywhere_in_any_number_of_lines(made, run, tmp_path, monkeypatch):
    text = (made / "test").read_bytes()
    (tmp_path / "gz").write_bytes(gzip.compress(text))
    (tmp_path / "xz").write_bytes(lzma.compress(text))
    wanted = run("score", "@kn", "@test").stdout
    assert len(wanted.splitlines()) == 23
    monkeypatch.setattr(_text, "LINES_A_BLOCK", 7)
    for name in ("gz", "xz"):
        assert run("score", "@kn", str(tmp_path / name)).stdout == wanted
    assert run("score", "@kn", input=text).stdout == wanted
    assert run("score", "@kn", input=gzip.compress(text)).stdout == wanted
    assert run("score", "@kn", "@test", "-", input=text).stdout == 2 * wanted
    assert run("score", "@kn", input=text.rstrip(b"\n")).stdout == wanted


def test_no_more_lines_are_read_than_are_scored(monkeypatch):
    monkeypatch.setattr(_text, "LINES_A_BLOCK", 5)
    read = []
    monkeypatch.setattr(
        _text, "lines_of", lambda _: (read.append(i) or str(i) for i in range(100))
    )
    blocks = _text.blocks_of_lines([])
    assert next(blocks) == ["0", "1", "2", "3", "4"]
    assert len(read) == 5


def test_score(made, run):
    lm = nplm.load(made / "kn")
    lines = (made / "test").read_text().splitlines()
    log10 = lm.score_samples(lines) / np.log(10)
    found = np.array(run("score", "@kn", "@test").stdout.split(), float)
    np.testing.assert_allclose(found, log10, atol=1e-6)
    shown = run("score", "@kn", "@test", "--per-token", "--with-text").stdout
    for line, number, row in zip(lines, log10, shown.splitlines()):
        score, text = row.split("\t")
        assert text == line
        assert float(score) == pytest.approx(number / (len(line.split()) + 1), abs=1e-6)


def test_generate_suggest_and_neighbors(made, run):
    lm = nplm.load(made / "kn")
    options = ["--prompt", "the", "-n", "3", "--seed", "1", "--top-k", "2"]
    shown = run("generate", "@kn", *options).stdout.splitlines()
    drawn = lm.generate("the", 3, top_k=2, random_state=1, exclude=["<unk>"])
    assert shown == [f"the {text}".strip() for text in drawn]
    with pytest.MonkeyPatch.context() as patch:  # as it draws any number
        patch.setattr(generate, "TEXTS_A_BLOCK", 3)
        again = run("generate", "@kn", "-n", "7", *options[:2], *options[4:]).stdout
        assert again.splitlines()[:3] == shown
        assert len(again.splitlines()) == 7
    words, proba = lm.next_words("a cat", 3, exclude=["<unk>"])
    assert run("suggest", "@kn", "a", "cat", "-k", "3").stdout == "".join(
        f"{word}\t{p:.4f}\n" for word, p in zip(words, proba)
    )
    near = run("neighbors", "@network", "cat", "the", "-k", "2").stdout.splitlines()
    words, _ = nplm.load(made / "network").nearest("cat", 2)
    assert [row.split("\t")[:2] for row in near][:2] == [["cat", w] for w in words]
    assert [row.split("\t")[0] for row in near] == ["cat", "cat", "the", "the"]
    result = run("neighbors", "@kn", "cat", code=1)
    assert "KneserNeyLM has no features of words" in result.stderr
    result = run("neighbors", "@network", "zebra", code=1)
    assert "'zebra' is not in the vocabulary of 11 words" in result.stderr


@pytest.mark.parametrize("kind", ["vectors", "vectors-binary"])
def test_vectors(made, run, tmp_path, kind):
    path = str(tmp_path / "words.vec")
    run("convert", "@network", path, *(["--to", kind] if kind != "vectors" else []))
    words, vectors = read_vectors(path, binary=kind != "vectors")
    lm = nplm.load(made / "network")
    assert words == lm.vocabulary_.words_.tolist()
    np.testing.assert_array_equal(vectors, lm.estimator_.C_.astype(np.float32))
    keyed = pytest.importorskip("gensim.models").KeyedVectors
    read = keyed.load_word2vec_format(path, binary=kind != "vectors")
    assert read.index_to_key == words
    np.testing.assert_array_equal(read.vectors, vectors)
    other = {"vectors": "vectors-binary", "vectors-binary": "vectors"}[kind]
    again, back = str(tmp_path / "again"), str(tmp_path / "back")
    run("convert", path, again, "--to", other)
    run("convert", again, back, "--to", kind)
    assert (tmp_path / "back").read_bytes() == (tmp_path / "words.vec").read_bytes()
    assert (tmp_path / "again").read_bytes() != (tmp_path / "back").read_bytes()
    result = run("query", path, "@test", code=1)
    assert "has word vectors, which are no model" in result.stderr
    result = run("convert", path, again, "--to", "arpa", code=1)
    assert "has word vectors: they cannot be written as arpa" in result.stderr
    result = run("convert", "--to", kind, "@kn", path, code=1)
    assert "KneserNeyLM has no features of words" in result.stderr


def test_packed_ngrams(made, run, tmp_path):
    lm = nplm.load(made / "kn")
    path = tmp_path / "packed"
    words = lm.vocabulary_.words_.tolist()
    save_binary(lm.estimator_, path, words, bits=8)
    found = figures(run("query", "-s", str(path), "@test"))
    assert found == pytest.approx(figures(run("query", "-s", "@kn", "@test")), rel=0.02)
    result = run("convert", str(path), str(tmp_path / "model"), code=1)
    assert "nplm.save knows no PackedLM, which is frozen here" in result.stderr


def test_prune(made, run, tmp_path):
    path = str(tmp_path / "small.arpa")
    result = run("prune", "--threshold", "0.01", "@kn", path)
    lm, _ = read_arpa(path)
    whole = int(nplm.load(made / "kn").estimator_.n_ngrams_.sum())
    kept = int(lm.n_ngrams_.sum())
    assert f"of {whole} n-grams kept" in result.stderr
    assert kept < whole
    run("prune", "--threshold", "0", "@kn", str(tmp_path / "same"))
    same = nplm.load(tmp_path / "same")
    assert int(same.estimator_.n_ngrams_.sum()) == whole
    run("prune", "--threshold", "9", "@kn", path)  # no n-gram begins with <s> any more
    assert "perplexity with unknown" in run("query", "-s", path, "@test").stdout
    result = run("prune", "@network", path, code=1)
    assert "is a NeuralLM, which has no n-grams to drop" in result.stderr
    result = run("convert", "@network", path, code=1)
    assert "NeuralLM is not made of n-grams" in result.stderr


def test_errors_are_sentences(made, run, tmp_path, monkeypatch):
    (tmp_path / "latin").write_bytes(b"good\ncaf\xe9\n")
    (tmp_path / "wide").write_bytes("some\ntext\n".encode("utf-16"))
    (tmp_path / "cut").write_bytes(gzip.compress(b"some text\n" * 999)[:-30])
    nplm.save(nplm.load(made / "kn").vocabulary_, tmp_path / "words")
    for arguments, message in [
        (["score", "@kn", "latin"], "latin, line 2: not UTF-8"),
        (["score", "@kn", "cut"], "cut, after line .*: cannot be unpacked"),
        (["score", str(made / "train")], "train, after line 500: no line .*no ARPA"),
        (["score", "words"], "words has a Vocabulary, and text needs"),
        (["train", "-o", "model", "latin"], "latin, line 2: not UTF-8"),
        (["train", "-o", "model", "wide"], "wide, line 1: it has a NUL, .*utf-16"),
        (["train", "-o", "model"], "there is no text to train on"),
    ]:
        names = ["latin", "wide", "cut", "words", "model"]
        own = [str(tmp_path / a) if a in names else a for a in arguments]
        result = run(*own, code=1, input="\n")
        assert "Traceback" not in result.output
        assert re.search(message, result.stderr), result.stderr
    for arguments in (["score", "absent"], ["train"], ["query"], ["nonsense"],
                      ["train", "-o", str(tmp_path), "@train"],
                      ["train", "-o", "/dev/null", "@train"]):  # fmt: skip
        run(*arguments, code=2)
    assert not (tmp_path / "model").exists()

    def interrupted(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(TextLM, "fit", interrupted)
    result = run("train", "@train", "-o", str(tmp_path / "model"), code=130)
    assert "Interrupted." in result.stderr
    assert not (tmp_path / "model").exists()


def test_a_model_without_words_or_boundary(made, run, tmp_path):
    lm = nplm.load(made / "kn")
    ids = TextLM.from_model(lm.estimator_)
    nplm.save(ids, tmp_path / "ids")
    result = run("query", str(tmp_path / "ids"), "@test", code=1)
    assert "has a model of ids or of lists of tokens, and no text" in result.stderr
    words = lm.vocabulary_.words_.tolist()
    stream = nplm.KneserNeyLM(2, n_words=len(words))
    with pytest.warns(UserWarning, match="Kneser-Ney"):
        stream.fit_stream(np.arange(400) % len(words))
    save_binary(stream, tmp_path / "stream", words)
    result = run("query", str(tmp_path / "stream"), "@test", code=1)
    assert "has no boundary" in result.stderr


def test_help_of_every_command(run):
    for name in main.commands:
        result = run(name, "--help")
        assert "Usage: " in result.stdout
    commands = run("--help").stdout.split("Commands:")[1]
    assert "..." not in commands  # where a sentence is cut


def test_files_that_cannot_be_read_are_told_in_sentences(made, run, monkeypatch):
    result = run("score", "@kn", "@nowhere", code=2)
    assert "nowhere' does not exist." in result.stderr
    result = run("score", "@kn", str(made), code=2)
    assert "is a directory." in result.stderr

    def refused(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(nplm, "load", refused)
    result = run("score", "@kn", code=1)
    assert result.stderr == f"Error: {made / 'kn'}: Permission denied.\n"
