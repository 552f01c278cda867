"""``nplm filter``: the best lines of a text, of files and pipes."""

import gzip
import json
import re

import numpy as np
import pytest

import nplm
from nplm.cli import _jobs, _text


@pytest.fixture(scope="module")
def lines(made):
    return (made / "test").read_text().splitlines()


@pytest.fixture(scope="module")
def perplexities(made, lines):
    lm = nplm.load(made / "kn")
    return np.array([lm.perplexity([line]) for line in lines])


def best(lines, perplexities, share):
    """The share of the lines with the lowest perplexities, and ties, in their order."""
    limit = np.sort(perplexities)[round(share * len(lines)) - 1]
    is_good = perplexities <= limit * (1 + 1e-9)
    return [line for line, good in zip(lines, is_good) if good], is_good


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 1])
def test_a_share_of_a_file_is_kept_in_order(
    made, run, tmp_path, monkeypatch, lines, perplexities, share, jobs
):
    monkeypatch.setattr(_text, "CHUNK_BYTES", 64)  # several chunks
    monkeypatch.setattr(_jobs, "MIN_BYTES", 64)
    good, is_good = best(lines, perplexities, share)
    options = ["--keep", str(share), "--jobs", jobs]
    result = run(
        "filter", "@kn", "@test", *options, "--rejects", str(tmp_path / "bad.gz")
    )
    assert result.stdout.splitlines() == good
    bad = gzip.decompress((tmp_path / "bad.gz").read_bytes()).decode().splitlines()
    assert bad == [line for line, good in zip(lines, is_good) if not good]
    assert f"kept {len(good)} of {len(lines)} lines" in result.stderr
    # A pipe that is shorter than the sample has the same lines.
    piped = run("filter", "@kn", *options, input="\n".join(lines))
    assert piped.stdout == result.stdout
    assert "Note" not in piped.stderr


@pytest.mark.parametrize("name", ["empty", "empty.gz"])
def test_of_an_empty_file_no_line_is_kept(made, run, name):
    (made / name).write_bytes(gzip.compress(b"") if name.endswith(".gz") else b"")
    result = run("filter", "@kn", f"@{name}", "--keep", "0.5")
    assert (result.stdout, result.stderr) == ("", "there are no lines to keep\n")


def test_first_lines_of_a_pipe_set_the_threshold(
    made, run, monkeypatch, lines, perplexities
):
    monkeypatch.setattr(_text, "CHUNK_BYTES", 64)
    piped = run(
        "filter", "@kn", "--keep", "0.5", "--sample", "5", input="\n".join(lines)
    )
    n = int(piped.stderr.split("its first ")[1].split()[0])
    assert 5 <= n < len(lines)
    limit = np.sort(perplexities[:n])[round(0.5 * n) - 1] * (1 + 1e-9)
    expected = [line for line, p in zip(lines, perplexities) if p <= limit]
    assert piped.stdout.splitlines() == expected


@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.parametrize("limits", ["min", "max", "min max"])
def test_lines_between_perplexities_are_kept(
    made, run, tmp_path, lines, perplexities, limits, piped
):
    low, high = (float(np.quantile(perplexities, q)) + 0.01 for q in (0.3, 0.7))
    is_good = [
        ("min" not in limits or low <= p) and ("max" not in limits or p <= high)
        for p in perplexities
    ]
    values = {"min": low, "max": high}
    options = [f"--{name}-perplexity={values[name]}" for name in limits.split()]
    source = {"input": "\n".join(lines)} if piped else {}
    rejects = ["--rejects", str(tmp_path / "bad")]
    result = run(
        "filter", "@kn", *["@test"] * (not piped), *options, *rejects, **source
    )
    good = result.stdout.splitlines()
    assert good == [line for line, is_in in zip(lines, is_good) if is_in]
    bad = (tmp_path / "bad").read_text().splitlines()
    assert bad == [line for line, is_in in zip(lines, is_good) if not is_in]
    shown = f"kept {len(good)} of {len(lines)} lines, of perplexities "
    shown += f"from {low:.2f}" * ("min" in limits) + " " * (len(limits) > 3)
    assert result.stderr == shown + f"up to {high:.2f}" * ("max" in limits) + "\n"


def test_a_share_is_kept_without_lines_below_a_perplexity(
    made, run, lines, perplexities
):
    _, is_good = best(lines, perplexities, 0.7)
    low = perplexities[is_good].mean()
    result = run(
        "filter", "@kn", "@test", "--keep", "0.7", "--min-perplexity", str(low)
    )
    expected = [
        line for line, good, p in zip(lines, is_good, perplexities) if good and p >= low
    ]
    assert result.stdout.splitlines() == expected
    none = run("filter", "@kn", "@test", "--keep", "0.7", "--min-perplexity", "1e9")
    assert none.stdout == ""


@pytest.mark.parametrize("piped", [False, True])
def test_parts_between_perplexities_are_named(made, run, lines, perplexities, piped):
    cuts = np.quantile(perplexities, [0.2, 0.6]) + 0.01
    source = {"input": "\n".join(lines)} if piped else {}
    options = ["--by-perplexities", *map(str, cuts)]
    result = run("filter", "@kn", *["@test"] * (not piped), *options, **source)
    names = np.array(["head", "middle", "tail"])[np.searchsorted(cuts, perplexities)]
    assert result.stdout.splitlines() == [
        f"{name}\t{line}" for name, line in zip(names, lines)
    ]
    assert f"head {sum(names == 'head')} of {len(lines)} lines" in result.stderr
    assert "Note" not in result.stderr


def test_thirds_are_named(made, run, lines, perplexities):
    found = run("filter", "@kn", "@test", "--by-quantiles").stdout.splitlines()
    labels = [line.split("\t")[0] for line in found]
    assert [line.split("\t")[1] for line in found] == lines
    is_head, up_to_middle = (best(lines, perplexities, n / 3)[1] for n in (1, 2))
    assert labels == [
        "head" if head else "middle" if middle else "tail"
        for head, middle in zip(is_head, up_to_middle)
    ]


def test_documents_are_in_a_field_of_json(made, run):
    documents = [
        "the cat sees it\n\nthe dog bites them",
        "zebra zebra",
        "a Cat sees it",
    ]
    rows = [{"id": i, "text": text} for i, text in enumerate(documents)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    lm = nplm.load(made / "kn")
    parts = [[line for line in text.split("\n") if line] for text in documents]
    expected = [lm.perplexity(part) for part in parts]
    result = run("filter", "@kn", "--by-quantiles", "--field", "text", input=text)
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [{k: row[k] for k in ("id", "text")} for row in found] == rows
    np.testing.assert_allclose([row["perplexity"] for row in found], expected, 1e-4)
    order = np.argsort(expected)
    assert [found[i]["bucket"] for i in order] == ["head", "middle", "tail"]
    scored = run("score", "@kn", "--json", "--with-text", "--field", "text", input=text)
    lines = [json.loads(line) for line in scored.stdout.splitlines()]
    np.testing.assert_allclose([line["perplexity"] for line in lines], expected, 1e-4)
    assert [line["text"] for line in lines] == [" ".join(part) for part in parts]
    least = run("score", "@kn", "--least-token", "--field", "text", input=text).stdout
    expected = [min(s.log_prob.min() for s in lm.token_scores(part)) for part in parts]
    found = [float(line.split("\t")[0]) for line in least.splitlines()]
    np.testing.assert_allclose(np.array(found) * np.log(10), expected, 1e-5)
    kept = run("filter", "@kn", "--keep", "0.4", "--field", "text", input=text).stdout
    assert kept == json.dumps(rows[order[0]]) + "\n"  # as it was


def test_json_without_a_field_gets_a_hint(run):
    line = '{"text": "the cat sees it"}\n'
    assert "--field" in run("filter", "@kn", "--keep", "1", input=line).stderr
    for options in ([], ["--field", "text"]):
        text = line if options else "the cat { sees it\n" + line
        result = run("filter", "@kn", "--keep", "1", *options, input=text)
        assert (result.stdout, "Hint" in result.stderr) == (text, False)


@pytest.mark.parametrize("line", ["[1]", "{}", '{"text": 1}', "no JSON", '"text"'])
def test_lines_without_the_field_are_an_error_or_left_out(made, run, line):
    text = f'{{"text": "the cat sees it"}}\n{line}\n'
    options = ["filter", "@kn", "--keep", "1", "--field", "text"]
    message = run(*options, input=text, code=1).stderr
    assert re.search("standard input, line 2: .*Give another --field, or", message)
    result = run(*options, "--errors", "skip", input=text)
    assert result.stdout.splitlines() == text.splitlines()[:1]
    assert "1 of 2 lines were left out" in result.stderr
    assert "or have no text in 'text'" in result.stderr


def test_lines_are_written_as_they_are(made, run):
    text = b"<s> the cat \r\n\tthe d\xe9g sees\nthe cat sees it"
    result = run("filter", "@kn", "--keep", "1", "--errors", "replace", input=text)
    assert result.stdout_bytes == text + b"\n"
    empty = run("filter", "@kn", "--keep", "1", input=b"")
    assert (empty.stdout, empty.stderr) == ("", "there are no lines to keep\n")


def test_empty_lines_come_last_if_ends_do_not_count(made, run, tmp_path):
    lm = nplm.load(made / "kn")
    lm.predict_boundary = False
    nplm.save(lm, tmp_path / "no ends")
    text = "\nthe cat sees it\n"
    kept = run(
        "filter", str(tmp_path / "no ends"), "--max-perplexity", "1e9", input=text
    )
    assert kept.stdout == "the cat sees it\n"
