"""Progress bars in a notebook, on a terminal and in a log."""

import io
import re
import sys
import threading
from itertools import groupby
from types import SimpleNamespace

import numpy as np
import pytest

from nplm import (
    ClassLM,
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
    Subwords,
    TextLM,
    WordClasses,
    windows,
)
from nplm.base.progress import Notebook, bar, stages
from nplm.formats import load_binary, save_binary
from nplm.models.auto.describing import shown
from nplm.models.auto.fitting import Budget
from nplm.models.mixtures import mixed_scores
from nplm.models.neural.fitting import scoring
from nplm.models.neural.network import network_scorer
from nplm.models.neural.network.network import Network
from nplm.models.training import checkpoint, pace
from nplm.text.document_streams import blocks_of

X, Y = windows(np.tile([0, 1, 2, 3], 100), 2)


def progress(n, name="a <fit>"):
    with bar(2, name, lambda figure: f"figure {figure:.0f}") as report:
        for done in range(n + 1):
            report(done, n, 100 - done)


@pytest.fixture
def notebook(monkeypatch):
    """Record what a notebook shows, with a stand-in for IPython."""
    shown = []

    class Handle:
        def update(self, element):
            shown[-1] = element

    def display(element, display_id):
        assert display_id
        shown.append(element)
        return Handle()

    shell = SimpleNamespace(config={"IPKernelApp": {}})
    modules = {
        "IPython": SimpleNamespace(get_ipython=lambda: shell),
        "IPython.display": SimpleNamespace(HTML=str, display=display),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return shown


@pytest.fixture
def seen(notebook, monkeypatch):
    """Record each share and text that a notebook shows."""
    seen, update = [], Notebook.show
    monkeypatch.setattr(
        Notebook, "show", lambda *call: (seen.append(call[1:]), update(*call))
    )
    return seen


def test_log_has_a_line_per_tenth(capsys):
    progress(100)
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert len(lines) == 10
    assert lines[4].startswith("a <fit>: 50%, figure 50, ")
    assert lines[4].endswith(" seconds left")


@pytest.mark.parametrize("verbose", [1, 2])
def test_a_slow_fit_has_a_line_a_minute(capsys, monkeypatch, verbose):
    clock = iter(range(0, 10_000, 10))  # seconds: one a look
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    with bar(verbose, "fit", str) as report:
        for done in range(40):
            report(done, 10_000, 1)
    lines = capsys.readouterr().err.splitlines()
    assert 4 <= len(lines) <= 20
    assert all(line.startswith("fit: 0%, 1, ") for line in lines)


def test_stages_before_a_fit_are_shown(capsys):
    def lines_of(verbose, tokenizer):
        network = NeuralLM(n_hidden=4, max_iter=1, verbose=verbose, random_state=0)
        TextLM(network, n_context=2, tokenizer=tokenizer).fit(["a rose is a rose"] * 9)
        return [line for line in capsys.readouterr().err.splitlines() if "doc" in line]

    learned = ["documents: fitting the tokenizer", "documents: splitting into tokens"]
    for verbose in (1, 2):
        assert lines_of(verbose, Subwords("characters")) == learned
        assert lines_of(verbose, "auto") == learned[1:]
    assert lines_of(0, Subwords("characters")) == []


@pytest.mark.parametrize("is_known", [True, False])
def test_documents_that_are_split_are_counted(seen, monkeypatch, is_known):
    monkeypatch.setattr("time.perf_counter", lambda: 0.0)
    texts = ["a rose"] * 3000
    with stages(2, "texts") as begin:
        begin("splitting")
        for _ in blocks_of(texts if is_known else iter(texts)):
            pass
    assert seen[0] == (0, "texts: splitting")
    documents = [f"{i},000 documents, 0 s" for i in (1, 2, 3)]
    left = [", 0 seconds left", ", 0 seconds left", ""]
    expected = [(None, "texts: splitting")]
    expected += [(None, f"texts: splitting: {text[:-5]}") for text in documents]
    if is_known:
        expected = [
            (i / 3, f"texts: splitting: {i / 3:.0%}, {text}{rest}")
            for i, (text, rest) in enumerate(zip(documents, left), 1)
        ]
    assert seen[1:] == expected


@pytest.mark.parametrize("is_known", [True, False])
def test_documents_that_units_are_learned_from_are_counted(seen, is_known):
    texts = ["a rose", "is a rose"] * 1000
    with stages(2, "units") as begin:
        begin("learning")
        Subwords("bpe", n_words=260).fit(texts if is_known else iter(texts))
    *counts, (share, last) = seen[1:]
    assert (share, last) == (None, "units: learning, learning units")
    assert [re.search(r"[\d,]+ documents", text)[0] for _, text in counts[-2:]] == [
        "1,000 documents", "2,000 documents",
    ]  # fmt: skip
    assert ("left" in counts[-2][1]) == is_known
    assert ("a second" in counts[-2][1]) != is_known


@pytest.mark.parametrize("bits", [None, 8])
def test_verification_of_a_file_shows_its_time_left(seen, tmp_path, bits):
    discounts = (0.5, 1.0, 1.5)
    model = KneserNeyLM(2, n_words=4, discount_fallback=discounts).fit(X, Y)
    save_binary(model, tmp_path / "model", "abcd", bits=bits)
    with stages(2, "") as begin:
        begin("")
        load_binary(tmp_path / "model", verify=True)
    steps = ["unpacking", "reading values", "hashing"] if bits is None else ["checking"]
    for step in ["comparing checksums", *steps]:
        shares = [share for share, text in seen if text.startswith(f"{step}: ")]
        assert shares and shares == sorted(shares)
        # The header of a small file, which is not compared, is large.
        assert 0.9 * (step in steps) < shares[-1] <= 1


def test_perplexities_of_progress_are_named(seen):
    lm = NeuralLM(n_hidden=4, max_iter=2, verbose=2, random_state=0)
    lm.fit(X, Y, X_val=X, y_val=Y)
    first = f"(held-out {np.exp(lm.history_['val_loss'][0]):.1f})"
    assert all("training perplexity " in text for _, text in seen)
    epochs = [int(re.search(r" (\d+)%", text)[1]) > 50 for _, text in seen]
    assert {(epoch, first in text) for epoch, (_, text) in zip(epochs, seen)} == {
        (False, False), (True, True),
    }  # fmt: skip


class Terminal(io.StringIO):
    """A terminal, and the lines that were drawn on it, without colours."""

    def isatty(self):
        return True

    def lines(self):
        drawn = re.sub(r"\x1b\[[\d;?]*[hlm]", "", self.getvalue())
        lines = re.split(r"\r\x1b\[(?:1A\x1b\[)?2K|\r?\n", drawn)
        return [line.strip() for line in lines if line]


def terminal_for(monkeypatch, columns=120):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    return terminal


def test_terminal_line_is_cleared(monkeypatch):
    terminal = terminal_for(monkeypatch)
    progress(4)
    lines = terminal.lines()
    assert re.fullmatch("━.* a <fit>: 25%, figure 99, 0 s, 0 seconds left", lines[1])
    assert re.fullmatch("━{30} a <fit>: 100%, figure 96, 0 s", lines[-1])
    assert terminal.getvalue().endswith("\r\x1b[1A\x1b[2K")  # up, and cleared


@pytest.mark.parametrize("columns", [80, 40])
def test_a_line_is_no_wider_than_the_terminal(monkeypatch, columns):
    terminal = terminal_for(monkeypatch, columns)
    progress(4, name="a mixture, the first of its networks")
    lines = terminal.lines()
    assert max(map(len, lines)) <= columns
    # The bar is shortened, then the start of the text.
    assert all(("…" in line) == (columns == 40) for line in lines)
    assert all(line.endswith(" seconds left") != ("100%" in line) for line in lines)
    assert "100%" in lines[-1]


def test_a_bar_of_a_fit_starts_no_thread(monkeypatch):
    terminal = terminal_for(monkeypatch)
    before = set(threading.enumerate())
    with bar(2, "fit", str) as report:
        for done in range(3):
            report(done, 4, 1)
            assert set(threading.enumerate()) == before
    assert "fit: 50%" in terminal.lines()[-1]


def test_notebook_element_is_updated(notebook, capsys):
    with bar(2, "a <fit>", "figure {:.0f}".format) as report:
        report(0, 4, 9)
        report(3, 4, 5)
        assert notebook[0].startswith(
            '<progress value="0.750"></progress> a &lt;fit&gt;'
        )
        assert "75%, figure 5" in notebook[0]
        report(4, 4, 3)
    [element] = notebook
    assert element.startswith("a &lt;fit&gt;: 100%, figure 3")
    assert capsys.readouterr() == ("", "")


def test_resumed_fit_estimates_time_left(notebook, monkeypatch):
    clock = iter([0.0, 10.0])
    clock_of = "nplm.base.progress.time.perf_counter"
    monkeypatch.setattr(clock_of, lambda: next(clock))
    with bar(2, "fit", str) as report:
        report(50, 100, 1)
        report(60, 100, 1)
        assert "10 s, 40 seconds left" in notebook[0]


def fit_network(**settings):
    network = NeuralLM(n_hidden=4, early_stopping=False, random_state=0, **settings)
    return network.fit(X, Y)


def test_models_show_a_bar(notebook, capsys):
    network = fit_network(max_iter=3, verbose=2)
    [element] = notebook
    assert element.startswith("NeuralLM: 100%, training perplexity ")
    WordClasses(2, verbose=2, random_state=0).fit(Y)
    assert notebook[1].startswith("WordClasses: ")
    assert "mutual information" in notebook[1]
    TextLM(network, n_context=2).fit(["a rose is a rose"] * 9)
    assert notebook[2].startswith("documents: ")
    assert len(notebook) == 4
    first, second = capsys.readouterr().out.splitlines()
    speed = f"{network.words_per_second_:,.0f}"
    assert first == f"[NeuralLM] trained on {speed} words a second"
    assert second.startswith("[NeuralLM] trained on ")


def mixture(verbose):
    network = NeuralLM(n_hidden=4, max_iter=2, random_state=0)
    members = [("network", network), ("classes", ClassLM(2, n_classes=2))]
    inner = MixtureLM(members, "learned")
    both = [("ngrams", KneserNeyLM(2)), ("inner", inner)]
    return MixtureLM(both, "learned", verbose=verbose)


@pytest.mark.filterwarnings("ignore:Kneser-Ney")
def test_a_mixture_has_one_bar(notebook, seen, monkeypatch, capsys):
    mixture(2).fit(X, Y, X_val=X, y_val=Y)
    [element] = notebook
    assert element.startswith("MixtureLM: ")
    assert element.endswith(" s")
    parts = [text.removeprefix("MixtureLM: ") for _, text in seen]
    assert parts[0] == "ngrams (1 of 2)"
    inside = [text for text in parts if text.startswith("inner (2 of 2), MixtureLM: ")]
    found = [text.split(": ")[1].split(",")[0] for text in inside]
    assert list(dict.fromkeys(found)) == [
        "network (1 of 2)", "classes (2 of 2)",
        "scores (1 of 2)", "scores (2 of 2)", "weights",
    ]  # fmt: skip
    assert any(
        "network (1 of 2), NeuralLM: 100%, training perplexity" in t for t in inside
    )
    assert "ngrams (1 of 2), estimating: 100%, 0 s" in parts
    assert any("classes (2 of 2), WordClasses: 100%, mutual" in text for text in inside)
    assert parts[-1] == "weights"
    mixture(0).fit(X, Y, X_val=X, y_val=Y)
    assert len(notebook) == 1
    monkeypatch.setitem(sys.modules, "IPython", None)
    del sys.modules["IPython"]
    mixture(2).fit(X, Y, X_val=X, y_val=Y)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "MixtureLM: ngrams (1 of 2)"
    assert lines[-1] == "MixtureLM: weights"


@pytest.mark.filterwarnings("ignore:Kneser-Ney")
def test_scores_inside_a_mixture_tell_how_far_they_are(seen, monkeypatch):
    quiet = mixture(0).fit(X, Y, X_val=X, y_val=Y)
    monkeypatch.setattr(mixed_scores, "BLOCK_WINDOWS", len(Y) // 4)
    shown = mixture(2).fit(X, Y, X_val=X, y_val=Y)
    texts = [text for _, text in seen]
    assert any("scores (1 of 2), KneserNeyLM: 50%," in text for text in texts)
    assert any(re.search(r"scores \(1 of 2\), NeuralLM: .* left", t) for t in texts)
    np.testing.assert_array_equal(shown.weights_, quiet.weights_)


@pytest.mark.filterwarnings("ignore:Kneser-Ney")
def test_a_network_that_reads_texts_tells_how_far_its_scores_are(seen, monkeypatch):
    def fit(verbose):
        members = {
            "n-grams": KneserNeyLM(2, n_words=4),
            "cells": NeuralLM(4, n_words=4, n_memory=8, max_iter=1, random_state=0),
        }
        ids = np.tile([0, 1, 2, 3], 100)
        return MixtureLM(list(members.items()), verbose=verbose).fit_stream(ids, ids)

    monkeypatch.setattr(network_scorer, "STEPS_SHOWN", 1)
    monkeypatch.setattr(network_scorer, "READ_AT_ONCE", 64)
    shown = fit(2)
    assert any(re.search(r"scores \(2 of 2\), network: .* left", t) for _, t in seen)
    np.testing.assert_array_equal(shown.weights_, fit(0).weights_)


@pytest.mark.filterwarnings("ignore:Kneser-Ney")
def test_the_clock_of_a_budget_goes_on_while_a_model_is_fitted(seen, capsys):
    budget = Budget(60)
    with shown(2, budget) as report:
        fit_network(max_iter=1)  # which measures its speed
        report("classes of words", "")
        budget.begun -= 30
        ClassLM(2, n_classes=2).fit(X, Y)
    for (share, text), expected, left in (
        (seen[0], 0, r"1:00|0:5\d"), (seen[-1], 0.5, r"0:30|0:2\d"),
    ):  # fmt: skip
        assert share == pytest.approx(expected, abs=0.15)  # a machine may be busy
        assert re.fullmatch(f"AutoLM: classes of words, ({left}) left", text)
    assert capsys.readouterr().out == ""


def test_progress_replaces_the_bar(notebook):
    calls = []
    network = NeuralLM(n_hidden=4, max_iter=1, verbose=2, random_state=0)
    network.fit(X, Y, progress=lambda *call: calls.append(call))
    assert calls
    assert notebook == []


def test_bar_counts_and_names_scored_windows(monkeypatch):
    terminal = terminal_for(monkeypatch)
    monkeypatch.setattr(pace, "SECONDS_A_CALL", 0)  # many calls
    monkeypatch.setattr(scoring, "MAX_SCORED_WINDOWS", 100)
    monkeypatch.setattr(scoring, "WINDOWS_A_CALL", 20)
    lm = NeuralLM(
        n_words=4, n_hidden=2, embedding_dim=2, max_iter=2, verbose=2, random_state=0,
        early_stopping=False,
    )  # fmt: skip
    lm.fit(X[200:], Y[200:], X_val=X[:200], y_val=Y[:200])
    lines = terminal.lines()
    labels = [line.partition("perplexity")[2].split(", ")[3:] for line in lines]
    found = [label[0] if label else "" for label in labels]
    sample, whole = "scoring held-out windows", "scoring all held-out windows"
    assert [label for label, _ in groupby(found)] == [
        sample, "", sample, whole, "",
    ]  # fmt: skip
    shares = [re.search(r" (\d+)%", line)[1] for line in lines if "%" in line]
    # 198 windows an epoch, and 100 scored, each at 0.4; at last 200.
    total = 2 * (198 + 40) + 80
    assert round(100 * 238 / total) in map(int, shares)
    assert len({share for share, label in zip(shares, found) if label}) > 9
    assert shares[-1] == "100"


@pytest.mark.parametrize("verbose", [0, 1, 2])
@pytest.mark.parametrize("within", [False, True])
def test_resumed_fit_prints_its_position(
    monkeypatch, tmp_path, capsys, verbose, within
):
    monkeypatch.setattr(checkpoint, "SECONDS_A_SAVE", 0)
    options = dict(n_words=4, n_hidden=2, embedding_dim=2, early_stopping=False)
    lm = NeuralLM(**options, max_iter=3, verbose=verbose, random_state=0)
    train = Network.train

    def stops(own, *args):
        if within and own.n_seen > 0:
            raise KeyboardInterrupt
        train(own, *args)
        if not within and own.n_seen >= len(Y):
            monkeypatch.setattr(Network, "train", interrupted)

    def interrupted(own, *args):
        raise KeyboardInterrupt

    monkeypatch.setattr(Network, "train", stops)
    with pytest.raises(KeyboardInterrupt), pytest.warns(RuntimeWarning):
        lm.fit(X, Y, checkpoint=tmp_path)
    monkeypatch.setattr(Network, "train", train)
    capsys.readouterr()
    lm.fit(X, Y, checkpoint=tmp_path)
    out = capsys.readouterr().out
    line = f"[NeuralLM] resumes from {tmp_path}: "
    assert (line in out) == (verbose > 0)
    if verbose and within:
        assert f"{line}in epoch 1 of at most 3, " in out
    elif verbose:
        assert f"{line}after epoch 1 of at most 3" in out
