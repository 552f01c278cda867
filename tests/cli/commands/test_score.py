"""Scores of a crawl: bad bytes, processes, JSON, and a program that waits for each."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import nplm
from nplm.cli import _bars, _text
from nplm.cli._jobs import in_order


@pytest.fixture(scope="module", autouse=True)
def bad(made):
    (made / "bad").write_bytes(
        b"\xef\xbb\xbfthe cat\nthe d\xe9g sees\n\na\0dog\nthe dog bites it\n"
    )


def rows(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_bad_bytes_are_an_error_or_replaced_or_skipped(made, run):
    result = run("score", "@kn", "@bad", code=1)
    assert "bad, line 2: not UTF-8" in result.stderr
    assert "Or give --errors replace, or skip." in result.stderr
    replaced = run("score", "@kn", "@bad", "--errors", "replace", "--with-text")
    texts = [row.split("\t")[1] for row in replaced.stdout.splitlines()]
    assert texts == ["the cat", "the d\ufffdg sees", "", "a\ufffddog",
                     "the dog bites it"]  # fmt: skip
    lm = nplm.load(made / "kn")
    numbers = [float(row.split("\t")[0]) for row in replaced.stdout.splitlines()]
    np.testing.assert_allclose(numbers, lm.score_samples(texts) / np.log(10), atol=1e-6)
    skipped = run("score", "@kn", "@bad", "--errors", "skip", "--with-text")
    kept = [replaced.stdout.splitlines()[i] for i in (0, 2, 4)]
    assert skipped.stdout.splitlines() == kept
    assert "2 of 5 lines were left out" in skipped.stderr
    assert [row["line"] for row in rows(run("score", "@kn", "@bad", "--errors", "skip",
                                            "--json"))] == [1, 3, 5]  # fmt: skip


def test_errors_of_bytes_are_named_by_other_commands_without_the_option(made, run):
    result = run("query", "@kn", "@bad", code=1)
    assert "bad, line 2: not UTF-8" in result.stderr
    assert "--errors" not in result.stderr


def test_json_has_the_figures_of_each_line(made, run):
    path = str(made / "test")
    plain = run("score", "@kn", path).stdout.split()
    found = rows(run("score", "@kn", path, "--json", "--with-text"))
    lines = (made / "test").read_text().splitlines()
    assert [row["text"] for row in found] == lines
    assert [row["line"] for row in found] == list(range(1, len(lines) + 1))
    assert {row["file"] for row in found} == {path}
    assert [f"{row['log10_prob']:.6f}" for row in found] == plain
    assert [row["tokens"] for row in found] == [len(s.split()) + 1 for s in lines]
    assert [row["unknown"] for row in found] == [s.count("zebra") for s in lines]
    shown = run("score", "@kn", path, "--per-token", "--with-text").stdout.splitlines()
    for row, line, of_line in zip(found, lines, shown, strict=True):
        per_token, text = of_line.split("\t")
        assert text == line
        assert float(per_token) == pytest.approx(
            row["log10_prob"] / row["tokens"], 1e-5
        )
        assert row["perplexity"] == pytest.approx(10 ** -float(per_token), rel=1e-4)


def test_json_of_probability_0_is_null(made, run, tmp_path):
    arpa = (
        "\\data\\\nngram 1=3\nngram 2=1\n\n\\1-grams:\n-99\t<s>\t0\n-1\ta\t0\n"
        "-1\t</s>\n\n\\2-grams:\n-0.5\t<s> a\n\n\\end\\\n"
    )
    (tmp_path / "a.arpa").write_text(arpa)
    model = str(tmp_path / "a.arpa")
    [known, new] = rows(run("score", "--json", model, input="a\nb\n"))
    assert known["log10_prob"] == pytest.approx(-1.5, abs=1e-3)
    assert new["log10_prob"] is new["perplexity"] is None
    [*_, summary] = rows(run("query", "--json", model, input="a\nb\n"))
    assert summary["log10_probability"] is None


def test_query_in_json_has_the_figures_of_query(made, run):
    texts = ["@kn", "@test", "@train"]
    *lines, whole = rows(run("query", "--json", *texts))
    shown = run("query", *texts).stdout.splitlines()
    for own, line in zip(lines, shown):
        tokens = [
            f"{w['word']} {w['order']} {w['log10_prob']:.4f}{' OOV' * w['unknown']}"
            for w in own["words"]
        ]
        assert [*tokens, f"total {own['log10_prob']:.4f}"] == line.split("\t")
        assert own["tokens"] == len(tokens)
        assert own["unknown"] == sum(token.endswith(" OOV") for token in tokens)
        perplexity = 10 ** (-own["log10_prob"] / len(tokens))
        assert own["perplexity"] == pytest.approx(perplexity, rel=1e-4)
    figures = [line.split(": ") for line in shown[len(lines) :]]
    assert len(figures) == len(whole)
    for name, value in figures:
        assert f"{whole[name.replace(' ', '_').lower()]:.4f}" == f"{float(value):.4f}"
    *alone, last = rows(run("query", "--json", "--each", "line", *texts))
    assert last == whole
    for own, line in zip(lines, alone):
        assert line == {name: own[name] for name in own if name != "words"}
    files = rows(run("query", "--json", "--each", "file", *texts))
    assert [own.get("file") for own in files] == [
        str(made / "test"), str(made / "train"), None,
    ]  # fmt: skip
    assert sum(own["log10_prob"] for own in files[:2]) == pytest.approx(
        whole["log10_probability"]
    )
    assert rows(run("query", "--json", "--summary", *texts)) == [whole]
    for each, expected in (("line", alone), ("file", files[:2])):
        plain = run("query", "--each", each, *texts).stdout.splitlines()
        for own, line in zip(expected, plain):
            *numbers, name = [*line.split("\t"), None][:5]
            assert name == own.get("file")
            wanted = [own[n] for n in ("log10_prob", "perplexity", "tokens", "unknown")]
            np.testing.assert_allclose(np.array(numbers, float), wanted, atol=1e-4)
        assert plain[len(expected) :] == shown[len(lines) :]
    summary = run("query", "--each", "line", "--summary", *texts).stdout
    assert summary.splitlines() == shown[len(lines) :]


def test_blank_line_without_ends_has_probability_1(made, run, tmp_path):
    lm = nplm.load(made / "kn")
    without = nplm.TextLM.from_model(
        lm.estimator_, lm.vocabulary_, predict_boundary=False
    )
    nplm.save(without, tmp_path / "without")
    assert run("score", str(tmp_path / "without"), input="\n").stdout == "0.000000\n"
    of_end = float(run("score", "@kn", input="\n").stdout)
    assert of_end == pytest.approx(lm.score_samples([""])[0] / np.log(10), abs=1e-6)


def nplm_process(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "nplm", *map(str, arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, **options,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_program_may_wait_for_the_score_of_each_line(made, run, n_jobs):
    wanted = run("score", "@kn", input="the cat\nthe dog\n").stdout.splitlines()
    with nplm_process("score", made / "kn", "--jobs", n_jobs) as process:
        for text, number in zip(["the cat", "the dog"], wanted):
            process.stdin.write(f"{text}\n")
            process.stdin.flush()
            assert process.stdout.readline().strip() == number
        process.stdin.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == 0


def test_lines_above_a_perplexity_are_shown(made, run):
    lines = rows(run("score", "@kn", "@test", "@train", "--json"))
    values = np.unique([row["perplexity"] for row in lines])
    limit = values[len(values) // 2 - 1 :][:2].mean()  # they are rounded
    odd = run("score", "@kn", "@test", "@train", "--json", "--above", str(limit))
    assert rows(odd) == [row for row in lines if row["perplexity"] > limit]
    assert f"{len(rows(odd))} of {len(lines)} lines are above" in odd.stderr
    assert 0 < len(rows(odd)) < len(lines)


def test_a_line_has_the_score_of_its_least_probable_token(made, run):
    texts = (made / "test").read_text().splitlines()
    [scores, *_] = by_text = nplm.load(made / "kn").token_scores(texts)
    assert 0 < scores.log_prob.argmin() < len(scores.words) - 1
    least = [scores.log_prob.min() / np.log(10) for scores in by_text]
    found = rows(run("score", "@kn", "@test", "--least-token", "--json"))
    np.testing.assert_allclose([r["least_log10_prob"] for r in found], least, atol=1e-6)
    np.testing.assert_allclose([-np.log10(r["perplexity"]) for r in found], least, 1e-5)
    plain = rows(run("score", "@kn", "@test", "--json"))
    assert [r["log10_prob"] for r in found] == [r["log10_prob"] for r in plain]
    shown = run("score", "@kn", "@test", "--least-token", "--with-text").stdout
    odd = [line.split("\t") for line in shown.splitlines()]
    split = nplm.load(made / "kn").tokenizer_.transform(texts)
    for (number, token, text), scores, words in zip(odd, by_text, split):
        assert token == [*words, "</s>"][scores.log_prob.argmin()]
        assert text in texts
        assert float(number) == pytest.approx(scores.log_prob.min() / np.log(10), 1e-5)


@pytest.mark.parametrize("aggregate", ["mean", "min"])
def test_the_lines_that_a_saved_detector_finds_are_above_its_limit(
    made, run, aggregate
):
    lines = (made / "train").read_text().splitlines()
    trigram, options = nplm.InterpolatedTrigram(), {"aggregate": aggregate}
    detector = nplm.LMDetector(trigram, contamination=0.4, **options)
    detector.fit(lines[::2], X_val=lines[1::2])
    nplm.save(detector, made / "detector")
    odd = [line for line, sign in zip(lines, detector.predict(lines)) if sign == -1]
    options = ["--least-token"] if aggregate == "min" else []
    limit = np.exp(-detector.offset_) * (1 + 1e-9)  # the score of a line
    shown = run("score", "@detector", "@train", "--with-text", "--above", str(limit),
                *options).stdout  # fmt: skip
    assert [row.split("\t")[-1] for row in shown.splitlines()] == odd
    assert 0 < len(odd) < len(lines)


def test_a_line_without_tokens_has_no_odd_one(made, run, tmp_path):
    (tmp_path / "blank").write_text("\n")
    path = str(tmp_path / "blank")
    assert run("score", "@kn", path, "--least-token", "-n").stdout.split("\t") == [
        "0.000000", "</s>\n"]  # fmt: skip


def test_a_file_that_grows_and_is_replaced_is_followed(made, run, tmp_path):
    """Half a line waits for its end; then another file, and one cut to no length."""
    texts = ["the cat", "a dog bites", "the zebra", "a cat", "the dog"]
    first, second, third, fourth, fifth = rows(
        run("score", "@kn", "--json", "--with-text", input="\n".join(texts))
    )
    log = tmp_path / "log"
    log.write_text("the cat\na dog")
    options = "score", made / "kn", log, "--follow", "--json", "--with-text"
    with nplm_process(*options) as process:

        def shown():
            row = json.loads(process.stdout.readline())
            return row["text"], row["line"], row["log10_prob"]

        try:
            assert shown() == ("the cat", 1, first["log10_prob"])
            with log.open("a") as file:
                file.write(" bites\nthe zebra\n")
            assert shown() == ("a dog bites", 2, second["log10_prob"])
            assert shown() == ("the zebra", 3, third["log10_prob"])
            log.rename(tmp_path / "log.1")
            log.write_text("a cat\n")
            assert shown() == ("a cat", 1, fourth["log10_prob"])
            log.write_text("")
            time.sleep(0.5)
            log.write_text("the dog\n")
            assert shown() == ("the dog", 1, fifth["log10_prob"])
            process.send_signal(signal.SIGINT)
            assert process.wait(30) != 0
        finally:
            process.kill()


@pytest.mark.slow
def test_jobs_score_the_same_lines_in_order(made, run):
    text = (made / "test").read_bytes() * 400
    (made / "long").write_bytes(text)
    wanted = run("score", "@kn", "@long").stdout
    with nplm_process("score", made / "kn", made / "long", "--jobs", 2) as process:
        out, errors = process.communicate(timeout=120)
    assert (out, errors) == (wanted, "")


@pytest.mark.parametrize(("n_bytes", "n_processes"), [(1000, 0), (0, 2), (1 << 20, 2)])
def test_small_text_needs_no_more_processes(n_bytes, n_processes):
    chunks = [_text.Chunk("text", i, [], 0, False) for i in range(100)]
    pids = set(in_order(_pid, chunks, 2, n_bytes))
    assert len(pids - {os.getpid()}) <= n_processes
    assert (os.getpid() in pids) == (n_processes == 0)


def _pid(chunk):
    return os.getpid()


def test_a_network_scores_small_text_in_processes(made, run, monkeypatch):
    run("train", "@train", "--model", "network", "--epochs", "1", "-o", "@network")
    sizes = []

    def in_one(work, chunks, n_jobs, n_bytes):
        sizes.append(n_bytes)
        return map(work, chunks)

    for command in ("score", "filter"):
        monkeypatch.setattr(f"nplm.cli.commands.{command}.in_order", in_one)
        options = ["--max-perplexity", "1000"] if command == "filter" else []
        for model in ("@kn", "@network"):
            run(command, model, "@test", "--jobs", "2", *options)
    assert sizes == [(made / "test").stat().st_size, 0] * 2


@pytest.mark.slow
def test_jobs_end_at_a_bad_byte_with_a_sentence(made):
    text = (made / "bad").read_bytes() + (made / "test").read_bytes() * 400
    (made / "long").write_bytes(text)
    with nplm_process("score", made / "kn", made / "long", "--jobs", 2) as process:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 1
    assert errors.startswith("Error: ")
    assert "long, line 2: not UTF-8" in errors
    assert "Traceback" not in errors


@pytest.mark.slow
def test_interrupt_of_jobs_is_one_sentence(made):
    (made / "endless").write_bytes((made / "test").read_bytes() * 20_000)
    command = ["score", made / "kn", made / "endless", "--jobs", 2]
    with nplm_process(*command, start_new_session=True) as process:
        process.stdout.readline()
        os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C, to all processes
        _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (130, "Interrupted.\n")


def test_progress_counts_the_bytes_of_the_files(made, run, monkeypatch):
    shown = []
    monkeypatch.setattr(_text, "CHUNK_BYTES", 64)
    monkeypatch.setattr(_bars.Stages, "show", lambda _, *given: shown.append(given))
    sizes = [(made / name).stat().st_size for name in ("test", "train")]
    run("score", "@kn", "@test", "@train", "--progress")
    stages, done, totals, notes = zip(*shown)
    assert set(stages) == {"scoring"}
    assert set(totals) == {sum(sizes)}
    assert list(done) == sorted(done)
    assert sizes[0] in done
    assert done[-1] == sum(sizes)
    assert notes[-1] == "523 lines"
    assert run("score", "@kn", "@test").stderr == ""  # no terminal
    shown.clear()
    run("query", "@kn", "@test", "@train")
    assert [s[:3] for s in shown if s[1] == s[2]] == [
        (f"scoring {made / name}", n, n) for name, n in zip(("test", "train"), sizes)
    ]
    run("score", "@kn", "--progress", input="the cat\n")
    assert shown[-1] == ("scoring", 1, 0, "1 lines")
