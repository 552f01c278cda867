"""``nplm train``: any model, in memory or on disk, to the end or interrupted."""

import fcntl
import lzma
import platform
import re
import signal
import subprocess
import sys
from errno import ENOSPC
from itertools import groupby
from unittest.mock import Mock

import click
import numpy as np
import pytest
from click.testing import CliRunner

import nplm
from nplm import (
    SGD,
    Adam,
    EnergyLM,
    Importance,
    KneserNeyLM,
    NeuralLM,
    Softmax,
    TextLM,
    Tokenizer,
    Vocabulary,
)
from nplm.base.exceptions import ParameterMessage
from nplm.cli._messages import in_options
from nplm.cli._options import MODELS, models_of
from nplm.cli.commands.train import train_command
from nplm.formats import write_arpa
from nplm.models.neural.fitting.epochs import Epochs
from nplm.models.training.em import MixtureFit
from nplm.text.words.splitting import BETWEEN_BLANKS

SMALL = ["--epochs", "2", "--hidden", "8", "--embedding", "4"]
NETWORKS = ["network", "energy", "shortlist", "mixture"]


@pytest.mark.parametrize("tokens", ["words", "blanks"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_hint_tells_that_words_split_unk(run, tmp_path, tokens):
    text = tmp_path / "prepared.txt"
    text.write_text("the <unk> sat\n" * 20, encoding="utf-8")
    options = "--order", "2", "--tokens", tokens, "-o", str(tmp_path / "model")
    result = run("train", str(text), *options)
    assert result.exit_code == 0
    assert ("has <unk>, which --tokens words splits" in result.stderr) == (
        tokens == "words"
    )
    # A model to continue says how text is split.
    options = "--minutes", "1", "--continue", str(text), "-o", str(tmp_path / "other")
    result = run("train", str(text), *options, code=1)
    assert "Hint" not in result.stderr and "Error" in result.stderr


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("held_out", [True, False])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_train_any_model(folder, run, tmp_path, model, held_out):
    options = ["--valid", "@test"] if held_out else []
    options += SMALL if model in NETWORKS else []
    options += {"classes": ["--classes", "4"], "shortlist": ["--shortlist", "5"]}.get(
        model, []
    )
    result = run(
        "train", "@train", "-o", str(tmp_path / "model"), "--model", model, *options,
        "--order", "3", "--test", "@test",
    )  # fmt: skip
    lm = nplm.load(tmp_path / "model")
    lines = (folder / "test").read_text().split("\n")
    lines = [line for line in lines if line]
    assert f"test: perplexity {lm.perplexity(lines):.2f}" in result.stdout
    without = lm.perplexity(lines, skip="<unk>")
    assert f"without unknown words {without:.2f} (2 of 106 tokens)" in result.stdout
    assert ("validation: " in result.stdout) == held_out
    assert "trained on 500 lines of 2,000 words; vocabulary 11" in result.stderr
    assert not list(tmp_path.glob("*.checkpoint"))
    assert "documents: splitting into tokens" in result.stderr or model == "kneser-ney"
    assert ("WordClasses: 100%" in result.stderr) == (model == "classes")
    assert f"scoring {folder / 'test'}: 100%, " in result.stderr
    if model in NETWORKS:
        name = "EnergyLM" if model == "energy" else "NeuralLM"
        first, *lines = result.stderr.splitlines()
        assert first == "reading the text to train on"
        assert any(f"{name}: 100%, training perplexity" in line for line in lines)
        speeds = [line for line in lines if line.endswith(" words a second")]
        assert [f"[{name}] trained on " in line for line in speeds] == [True]
        assert not any(
            value for name, value in lm.get_params().items() if "verbose" in name
        )


@pytest.mark.parametrize("tokens", ["bpe", "unigram", "bytes", "characters"])
def test_train_on_units_below_words(folder, run, tmp_path, tokens):
    if tokens in ("bpe", "unigram"):
        pytest.importorskip("tokenizers", reason="needs the extra subwords")
    path = str(tmp_path / "model")
    more = ["--max-words", "300"] if tokens in ("bpe", "unigram") else []
    more += ["--discount-fallback", "0.5,1,1.5"]
    run("train", "@train", "-o", path, "--tokens", tokens, "--order", "9", *more)
    lm = nplm.load(path)
    assert lm.tokenizer_.model == tokens
    assert lm.n_words_ <= 300
    options = ["--prompt", "the", "--top-k", "1", "--max-words", "99"]
    text = run("generate", path, *options).stdout
    assert re.fullmatch(r"the (cat|dog|Cat) (sees|bites) (them|it)\n", text)
    lines = (folder / "train").read_text().splitlines()
    shown = run("query", "-s", path, "@train").stdout
    scores = lm.text_scores(lines)
    assert f"bits per character: {scores.bits_per_character:.4f}" in shown


@pytest.mark.parametrize("more", [[], ["--model", "trigram"]])
def test_words_of_logs_are_masked(run, tmp_path, more):
    """On disk and in memory: lines that differ in numbers and identifiers are one."""
    text, model = tmp_path / "log", tmp_path / "model"
    text.write_text("read blk_1 of 67 from 10.0.0.1:80\nread of 3\n" * 20)
    run("train", str(text), "-o", str(model), "--tokens", "logs", "--order", "3", *more)
    lines = "read blk_92 of 5 from 1.2.3.4:8\nread <id> of <num> from <id>\n"
    first, second = run("score", str(model), input=lines).stdout.split()
    [score] = nplm.load(model).score_samples(["read blk_1 of 67 from 10.0.0.1:80"])
    assert float(first) == pytest.approx(score / np.log(10), abs=1e-6)
    # Marks of punctuation are words of their own.
    assert first != second


@pytest.mark.parametrize("more", [[], ["--memory", "1M"], ["--model", "classes"]])
def test_discount_fallback_replaces_the_note_on_discounts(run, tmp_path, more):
    options = ["train", "@train", "--order", "3", "--tokens", "blanks", *more]
    if "classes" in more:
        options += ["--classes", "4"]
    note = "Note: Kneser-Ney cannot estimate the discounts of "
    remedy = "--discount-fallback 0.5,1,1.5"
    result = run(*options, "-o", str(tmp_path / "a"))
    assert note in result.stderr
    assert f"without a warning, set {remedy}." in result.stderr
    result = run(*options, "-o", str(tmp_path / "b"), *remedy.split())
    assert note not in result.stderr
    first, second = (
        run("score", str(tmp_path / name), "@test").stdout for name in "ab"
    )
    assert first == second
    run(*options, "-o", str(tmp_path / "c"), "--discount-fallback", "0.25")
    assert run("score", str(tmp_path / "c"), "@test").stdout != first
    for value in ("2", "0.5,1", "a", "0.5,1,4"):
        refused = ["--discount-fallback", value]
        result = run(*options, "-o", str(tmp_path / "d"), *refused, code=2)
        assert f"'{value}' must be one number above 0 and at most 1" in result.stderr


@pytest.mark.parametrize("model", ["network", "mixture", "shortlist", "energy"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_interrupted_fit_goes_on(run, tmp_path, monkeypatch, model):
    def train(name, *options, **expected):
        command = ["train", "@train", *SMALL, "--model", model, *options]
        return run(*command, "-o", str(tmp_path / name), **expected)

    train("whole")

    def interrupt(epochs, done):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Epochs, "figure", interrupt)
        result = train("cut", code=130)
    kept = tmp_path / "cut.checkpoint"
    assert f"is in {kept}: the same command goes on from there" in result.stderr
    assert f"{tmp_path / 'cut'} has the model as far as it was trained." in (
        result.stderr
    )
    text = ["the cat sees them", "a dog bites it"]
    assert np.isfinite(nplm.load(tmp_path / "cut").score_samples(text)).all()
    result = train("cut", "--seed", "5", code=1)
    assert f"To begin anew, remove the folder {kept}" in result.stderr
    with open(kept / "lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = train("cut", code=1)
    assert f"on {platform.node()}) is using {kept}" in result.stderr
    assert "To begin anew" not in result.stderr
    with monkeypatch.context() as patch:
        patch.setattr(
            nplm, "save", Mock(side_effect=OSError(ENOSPC, "the disk is full"))
        )
        result = train("cut", code=1)
    assert "the disk is full" in result.stderr
    assert f"is in {kept}: the same command goes on from there" in result.stderr
    (kept / "mine").write_text("not the fit's")
    result = train("cut")
    assert f"Going on from {kept}." in result.stderr
    assert [path.name for path in kept.iterdir()] == ["mine"]
    whole, cut = (nplm.load(tmp_path / name) for name in ("whole", "cut"))
    np.testing.assert_array_equal(whole.score_samples(text), cut.score_samples(text))


def test_options_of_a_model_are_those_that_it_has():
    for option in train_command.params:
        name = str(option.name).partition("__")[0]
        models = set(models_of(option))
        if {"network"} <= models < set(MODELS) and name in NeuralLM().get_params():
            in_energy = name in EnergyLM().get_params(deep=False)
            assert ("energy" in models) == in_energy, name
    shown = CliRunner().invoke(train_command, ["--help"]).output
    first, *sections = shown.split("\nOptions of ")
    found = {"any": re.findall(r"^  (?:-o, )?(--[a-z-]+)", first, re.M)}
    for section in sections:
        title, _, lines = section.partition(":\n")
        models = title.removeprefix("--model ").replace(" and ", ", ")
        found[models] = re.findall(r"^  (--[a-z-]+)", lines, re.M)
    assert found.pop("any")[:3] == ["--output", "--model", "--vocabulary"]
    assert found == {
        ", ".join(models): [o.opts[0] for o in options]
        for models, options in groupby(train_command.params, models_of)
        if not set(models) >= set(MODELS)
    }


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            ParameterMessage(
                "{n_hidden}: set {output__direct}", n_hidden=0, output__direct=True
            ),
            "--hidden 0: set --direct",
        ),
        (
            ParameterMessage(
                "{output__direct}, {n_hidden}", n_hidden=(8, 9), output__direct=False
            ),
            "--no-direct, --hidden 8,9",
        ),
        (
            ParameterMessage("{alpha}, {loss}, {0}", "alpha=1", alpha=1.0, loss="nce"),
            "--alpha 1, --loss nce, alpha=1",
        ),
        (ParameterMessage("{n_noise:The 'n_noise'} {0:.1f}", 2), "--samples 2.0"),
        (
            ParameterMessage("pass {X_val:X_val and y_val}", advice=" In Python."),
            "pass --valid",
        ),
        # Parameters that are no options of the model.
        (ParameterMessage("{n_classes}, {m}", n_classes=3, m=4), "n_classes=3, m=4"),
        ("n_hidden=0", "n_hidden=0"),
    ],
)
def test_messages_name_options(message, said):
    with click.Context(train_command) as context:
        context.params = {"model": "network"}
        assert in_options(ValueError(message)) == said
    assert in_options(ValueError(message)) == str(message)  # outside of a command


def test_iterations_of_a_mixture_are_not_epochs(recwarn):
    fit = MixtureFit(np.ones((1, 2)), [-2.0, -1.0], gap=0.1)
    fit.warn_unless_converged("MixtureLM", 1, 1e-9)
    with click.Context(train_command):
        said = in_options(recwarn[0].message)
    assert said.startswith("MixtureLM: after 1 iterations the best")
    assert said.endswith("nats per token.")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_hidden_units_of_residual_blocks(run, tmp_path):
    output = ["-o", str(tmp_path / "model"), "--model", "network"]
    run("train", "@train", *output, *SMALL, "--hidden", "8,9,7")
    (block, other) = nplm.load(tmp_path / "model").estimator_.blocks_
    assert (block.U.shape, other.U.shape) == ((8, 9), (8, 7))


@pytest.mark.parametrize("model", ["network", "energy"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_options_reach_the_network(run, tmp_path, model):
    options = "--samples 9 --solver sgd --schedule linear --decay 0.5 --epochs 1"
    path = str(tmp_path / "model")
    run("train", "@train", "-o", path, "--model", model, *options.split(), *SMALL)
    network = nplm.load(path).estimator_
    expected = type(network)(
        order=5, n_words=11, n_hidden=8, embedding_dim=4, max_iter=2, n_jobs=1,
        random_state=0, loss=Importance(9),
        solver=SGD("linear", learning_rate_decay=0.5),
    )  # fmt: skip
    assert str(network) == str(expected)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_train_in_bounded_memory(folder, run, tmp_path):
    # The same model as in memory, from packed text or standard input.
    options = ["--tokens", "blanks", "--order", "3", "--min-count", "2"]
    options += ["--test", "@test"]
    expected = run("train", "@train", "-o", str(tmp_path / "memory"), *options)
    assert "estimating within" in expected.stderr
    lines, test = (
        (folder / name).read_text().split("\n") for name in ("train", "test")
    )
    lm = TextLM(
        KneserNeyLM(3), 2, tokenizer=Tokenizer(BETWEEN_BLANKS), vocabulary=Vocabulary(2)
    ).fit([line for line in lines if line])
    perplexity = lm.perplexity([line for line in test if line])
    assert f"test: perplexity {perplexity:.2f}, without" in expected.stdout
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
    disks = run("query", str(tmp_path / "disk"), "@test").stdout
    # An ARPA file does not say how unknown words are spelled, and has seven decimals.
    disks = disks.partition("log10 probability with unknown words spelled")[0].split()
    for ours, one in zip(
        run("query", arpa, "@test").stdout.split(), disks, strict=True
    ):
        assert ours == one or float(ours) == pytest.approx(float(one), abs=1e-4)
    packed.write_bytes(packed.read_bytes()[:-20])
    result = run(
        "train", str(packed), "-o", str(tmp_path / "x"), *options, *disk, code=1
    )
    assert "cannot be decompressed" in result.stderr


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_model_of_words_keeps_its_tokenizer(run, tmp_path):
    text, path = "Don't pay $3.50, sir.\nPay; it isn't much.\n" * 9, tmp_path / "words"
    lines = text.split("\n")[:-1]
    options = ["--order", "3", "--memory", "1M", "--folder", str(tmp_path)]
    result = run("train", "-o", str(path), *options, input=text)
    lm = TextLM(KneserNeyLM(3), 2, tokenizer=Tokenizer()).fit(lines)
    loaded = nplm.load(path)
    np.testing.assert_array_equal(loaded.score_samples(lines), lm.score_samples(lines))
    assert "trained on 18 lines of 117 words" in result.stderr
    # Converted, too.
    for more in (["--to", "binary"], ["--bits", "12"], ["--to", "nplm"]):
        again = str(tmp_path / "again")
        assert not run("convert", str(path), again, *more).stderr
        np.testing.assert_allclose(
            nplm.load(again).score_samples(lines), lm.score_samples(lines), rtol=1e-2
        )
    for command in (["train", "-o"], ["convert", str(path)]):
        more = options if command[0] == "train" else []
        result = run(*command, str(tmp_path / "x.arpa"), *more, input=text)
        assert "x.arpa has no tokenizer, and its text will be split" in result.stderr


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("order", "longest"), [(2, 6), (4, 6), (2, 1)])
@pytest.mark.parametrize(
    "cut", [[], ["--min-counts", "1,2", "--min-counts-of", "text"]]
)
def test_ngrams_without_marks_are_those_of_lines_in_memory(
    run, tmp_path, order, longest, cut
):
    rng = np.random.default_rng(0)
    lines = [rng.integers(1, 9, rng.integers(longest) + 1) for _ in range(400)]
    text, memory, disk = (
        tmp_path / name for name in ("text", "memory.arpa", "disk.arpa")
    )
    text.write_text("".join(" ".join(map(str, line)) + "\n" for line in lines))
    known = Vocabulary(boundary=None).fit([list(map(str, line)) for line in lines])
    ids = known.transform([list(map(str, line)) for line in lines])
    rules = {"min_counts": (1, 2), "min_counts_of": "text"} if cut else {}
    model = KneserNeyLM(order, n_words=known.n_words_, **rules).fit_stream(ids)
    write_arpa(model, memory, known.words_.tolist())
    run("train", str(text), "-o", str(disk), "--no-marks", "--tokens", "blanks",
        "--order", str(order), "--jobs", "2", *cut)  # fmt: skip
    of_disk, of_memory = (
        [line for line in path.read_text().split("\n") if "s>" not in line]
        for path in (disk, memory)
    )
    assert of_disk == of_memory
    samples = ["1 2 3", "9", ""]
    np.testing.assert_array_equal(
        nplm.load(disk).score_samples(samples), nplm.load(memory).score_samples(samples)
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("rule", ["modified", "text"])
def test_cut_offs_and_bits(folder, run, tmp_path, rule):
    model = str(tmp_path / "model")
    options = ["--tokens", "blanks", "--order", "3", "--min-counts", "1,2,60"]
    run("train", "@train", "-o", model, *options, "--min-counts-of", rule)
    lines = [line for line in (folder / "train").read_text().split("\n") if line]
    lm = TextLM(
        KneserNeyLM(3, min_counts=(1, 2, 60), min_counts_of=rule),
        2,
        tokenizer=Tokenizer(BETWEEN_BLANKS),
    ).fit(lines)
    loaded = nplm.load(model)
    found, expected = loaded.score_samples(lines), lm.score_samples(lines)
    np.testing.assert_array_equal(found, expected)
    assert lm.estimator_.n_ngrams_[2] < 60
    bits = ["--min-counts-of", rule, "--bits", "12"]
    run("train", "@train", "-o", str(tmp_path / "small"), *options, *bits)
    small = nplm.load(tmp_path / "small")
    assert isinstance(small.estimator_, nplm.QuantizedLM)
    np.testing.assert_allclose(small.score_samples(lines), expected, rtol=1e-2)
    run("convert", model, str(tmp_path / "converted"), "--bits", "12")
    converted = (tmp_path / "converted").read_bytes()
    assert converted == (tmp_path / "small").read_bytes()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_words_to_know(folder, run, tmp_path):
    (tmp_path / "words").write_text("the \n\ncat\r\n\tdog\n")  # blanks are of no word
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


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["m.arpa", "m"])
def test_marks_in_a_list_of_words_are_no_words(run, tmp_path, name):
    """SRILM's lists of words have them."""
    words, texts = tmp_path / "words", ["-o", str(tmp_path / name), "@train"]
    words.write_text("<s>\n</s>\n<unk>\nthe\ncat\n")
    run("train", "--tokens", "blanks", "--vocabulary", str(words), *texts)
    lm = nplm.load(tmp_path / name)
    assert lm.vocabulary_.words_.tolist() == ["</s>", "<unk>", "the", "cat"]
    words.write_text("<s>\n")
    result = run("train", "--vocabulary", str(words), *texts, code=1)
    assert "words has no words" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_training_on_disk_that_is_ended_cleans_up(tmp_path, number):
    options = ["-o", str(tmp_path / "x"), "--tokens", "blanks", "--memory", "1M"]
    with subprocess.Popen(
        [sys.executable, "-m", "nplm", "train", *options, "--folder", str(tmp_path)],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        # It has its files, which have no names, and waits for more of its input.
        assert b"reading\n" in iter(process.stderr.readline, b"")
        process.send_signal(number)
        # Not communicate(), which would end its input.
        assert process.wait(60) == 130
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate:UserWarning")
@pytest.mark.parametrize("blank_lines", ["skip", "sentences"])
def test_blank_lines_are_skipped_or_sentences(run, tmp_path, blank_lines):
    # The white space of the n-gram toolkits is that of ASCII: the others are words.
    lines = ["a b", "", "b\u00a0c a", " \t", "\u3000", "a", "", ""]
    text = str(tmp_path / "text")
    (tmp_path / "text").write_bytes("\n".join(lines).encode())
    words = ["</s>", "<unk>", "a", "b", "b\u00a0c", "\u3000"]
    ids = [[2, 3], [], [4, 2], [], [5], [2], []]
    if blank_lines == "skip":
        ids = [own for own in ids if own]
    model = nplm.KneserNeyLM(3, n_words=6, boundary=0).fit_stream(ids)
    found = {}
    for name, more in ("memory", []), ("disk", ["--memory", "1M"]):
        path = str(tmp_path / name)
        options = ["--order", "3", "--tokens", "blanks", "--blank-lines", blank_lines]
        result = run("train", text, "-o", path, *options, *more)
        assert f"trained on {len(ids)} lines of 6 words" in result.stderr
        lm = nplm.load(path)
        assert sorted(lm.vocabulary_.words_) == sorted(words)
        new = [lm.vocabulary_.ids_[word] for word in words]
        X = np.array(list(np.ndindex(6, 6)))
        X = X[(X[:, 0] == 0) | (X[:, 1] != 0)]
        for x in X:
            p = lm.estimator_.predict_proba([[new[x[0]], new[x[1]]]])[0, new]
            np.testing.assert_allclose(p, model.predict_proba([x])[0], rtol=1e-6)
        shown = run("query", path, text, "-s", "--blank-lines", blank_lines).stdout
        assert f"sentences: {len(ids)}\nwords: 6\nunknown words: 0" in shown
        found[name] = shown
    assert found["memory"] == found["disk"]


def test_defaults_are_those_of_the_network():
    network = NeuralLM(loss=Importance(), solver=Adam(), output=Softmax())
    defaults = network.get_params() | NeuralLM().get_params()
    of_networks = {
        str(option.name): option.default
        for option in train_command.params
        if {"network", "mixture"} <= set(models_of(option)) < set(MODELS)
    }
    del of_networks["keep_optimizer"]
    assert {name: defaults[name] for name in of_networks} == of_networks
