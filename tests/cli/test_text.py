"""Models on text: the figures are KenLM's, the errors are sentences."""

import gzip
import json
import lzma
import re

import numpy as np
import pytest

import nplm
from nplm import TextLM
from nplm.cli import _text
from nplm.cli.commands import predictions
from nplm.formats import read_arpa, read_vectors


@pytest.fixture(scope="module")
def files(made, run):
    """The n-gram model in files of other kinds."""
    run("convert", "@kn", "@kn.arpa.gz")
    run("convert", "--to", "binary", "@kn", "@kn.bin")
    run("convert", "--bits", "8", "@kn", "@kn.8bits")
    run("convert", "@kn.8bits", "@kn.of 8bits")
    return made


def figures(result):
    lines = [line.split(": ") for line in result.stdout.splitlines() if ": " in line]
    return {name: float(value) for name, value in lines}


MARKED = [
    lambda line: f"<s> {line} </s>", lambda line: f"<s>\t{line}",
    lambda line: f" {line} </s> ", lambda line: line,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate:UserWarning")
def test_marks_of_the_ends_of_lines_are_taken_everywhere(files, run, tmp_path):
    """As by SRILM: a line of a text means the same with its marks and without."""
    lines = (files / "train").read_text().splitlines()
    marked = tmp_path / "marked"
    marked.write_text(
        "".join(f"{MARKED[i % 4](line)}\n" for i, line in enumerate(lines))
    )
    train = ["--order", "2", "--valid", str(marked), "-o"]
    ways = {
        "blanks": ["train", "--tokens", "blanks", *train],
        "words": ["train", *train],
        "memory": ["train", "--model", "trigram", "--tokens", "blanks", *train],
        "units": ["train", "--tokens", "characters", *train],
        "counts": ["count", "--order", "2", "-o"],
    }
    for name, command in ways.items():
        plain = run(*command, str(tmp_path / "plain"), "@train").stdout
        assert run(*command, str(tmp_path / name), str(marked)).stdout == plain
        if name != "units":  # whose checkpoints differ
            assert (tmp_path / name).read_bytes() == (tmp_path / "plain").read_bytes()
    for model in (tmp_path / "blanks", tmp_path / "words", "@kn.arpa.gz"):
        for command in (["query"], ["query", "--json"], ["score"]):
            plain = run(*command, str(model), "@train").stdout
            assert run(*command, str(model), str(marked)).stdout == plain
    plain = run("card", "@kn", "--text", "@train").stdout
    own = run("card", "@kn", "--text", str(marked)).stdout
    assert own.replace("marked", "train") == plain
    plain, own = (
        run("mix", "@kn", "@kn", "--valid", text, "-o", str(tmp_path / "mix"))
        for text in ("@train", str(marked))
    )
    assert own.stdout == plain.stdout


def test_marks_inside_of_lines_are_refused_replaced_or_skipped(files, run, tmp_path):
    text = tmp_path / "text"
    text.write_text("the cat\nthe </s> <s> cat\n")
    for command in (["query"], ["score"], ["score", "--errors", "strict"]):
        result = run(*command, "@kn.arpa.gz", str(text), code=1)
        message = f"{text}, line 2: it has '</s>' inside, which stands for the end of"
        assert message in " ".join(result.stderr.split())
    first = run("score", "@kn.arpa.gz", input="the cat\n").stdout
    result = run("score", "--errors", "skip", "@kn.arpa.gz", str(text))
    assert result.stdout == first and "1 of 2 lines were left out" in result.stderr
    unknown = run("score", "@kn.arpa.gz", input="the cat\nthe x x cat\n").stdout
    replaced = run("score", "--errors", "replace", "@kn.arpa.gz", str(text)).stdout
    assert replaced == unknown
    # A tokenizer of words makes punctuation marks of them.
    words = run("score", "@kn", input="the < s > cat\n").stdout
    assert run("score", "@kn", input="the <s> cat\n").stdout == words


def test_query_is_kenlms_query(files, run):
    kenlm = pytest.importorskip("kenlm")
    model = kenlm.Model(str(files / "kn.arpa.gz"))
    lines = (files / "test").read_text().splitlines()
    result = run("query", "@kn.arpa.gz", "@test", "--blank-lines", "sentences")
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
    assert found["perplexity without unknown words"] == pytest.approx(
        10 ** (-known / (n - n_unknown)), rel=1e-4
    )
    # SRILM's ngram -ppl: <unk> counts, since its probability is not 0.
    assert found["SRILM ppl"] == found["perplexity with unknown words"]
    assert found["SRILM ppl1"] == pytest.approx(
        10 ** (-total / (n - len(lines))), rel=1e-4
    )


def test_query_has_scores_that_compare_between_tokens(made, run):
    found = figures(run("query", "--summary", "@kn", "@test"))
    lines = [line for line in (made / "test").read_text().splitlines() if line]
    scores = nplm.load(made / "kn").text_scores(lines)
    shown = {
        "bits per character": scores.bits_per_character,
        "bits per byte": scores.bits_per_byte,
        "perplexity per word of the text": scores.word_perplexity,
    }
    assert scores.n_unknown > 0
    total = (scores.log_prob + scores.spelling_log_prob) / np.log(10)
    shown["log10 probability with unknown words spelled"] = total
    for name, value in shown.items():
        assert found[name] == pytest.approx(value, abs=1e-4)
    run("convert", "@kn", "@spelled.arpa")
    result = run("query", "--summary", "@spelled.arpa", "@test")
    assert not shown.keys() & figures(result).keys()
    assert "the model does not know how unknown words are spelled" in result.stderr
    known = figures(run("query", "--summary", "@spelled.arpa", input="the\n"))
    assert known["bits per character"] > 0
    in_json = run("query", "--summary", "--json", "@spelled.arpa", "@test").stdout
    assert json.loads(in_json)["bits_per_character"] is None


def test_query_skips_blank_lines_as_srilm_does(made, run):
    result = run("query", "@kn", "@test")
    both = run("query", "@kn", "@test", "--blank-lines", "sentences")
    skipped, counted = figures(result), figures(both)
    assert (skipped["sentences"], counted["sentences"]) == (22, 23)
    assert skipped["words"] == counted["words"]
    # No line for the blank one, of which KenLM has the probability of its end.
    of_end = [line for line in both.stdout.split("\n") if line.startswith("</s> ")]
    assert len(of_end) == 1
    assert of_end[0] not in result.stdout
    log10 = float(of_end[0].split()[-1])
    total = skipped["log10 probability"] + log10
    assert counted["log10 probability"] == pytest.approx(total, abs=2e-4)


def test_one_model_in_files_of_all_kinds(files, run):
    wanted = figures(run("query", "-s", "@kn", "@test"))
    names = ("@kn.arpa.gz", "@kn.bin", "@kn.8bits", "@kn.of 8bits")
    for name, rtol in zip(names, (1e-3, 1e-3, 0.02, 0.02)):
        found = figures(run("query", "--summary", name, "@test"))
        # These files do not say how unknown words are spelled.
        assert "bits per character" in wanted
        same = {own: wanted[own] for own in found}
        assert found == pytest.approx(same, rel=rtol)


def test_query_without_orders_or_text(made, run):
    shown = run("query", "@network", "@test").stdout.splitlines()
    assert re.match(r"\S+ -\d+\.\d{4}\t", shown[0])
    assert run("score", "@kn", input="").stdout == ""
    result = run("query", "-s", "@kn", input="zebra zebra zebra\n")
    assert "Warning: 75% of the words are <unk>" in result.stderr


def test_arpa_without_the_unknown_word(made, run, tmp_path):
    path = tmp_path / "model.arpa"
    run("convert", str(made / "kn"), str(path))
    text = re.sub(r"\S+\t<unk>.*\n", "", path.read_text())
    n = int(re.search(r"ngram 1=(\d+)", text)[1])
    path.write_text(text.replace(f"ngram 1={n}", f"ngram 1={n - 1}"))
    # As SRILM's perplexities are: those words are counted, and are no words.
    run("convert", str(path), str(tmp_path / "mapped"), "--to", "binary")
    for model in (str(path), str(tmp_path / "mapped")):
        result = run("query", "--summary", model, str(made / "test"))
        assert "unknown words have no probability by this model" in result.stderr
        assert "There are 2." in result.stderr
        assert "unknown words: 2\n" in result.stdout
        assert "perplexity with unknown words: inf\n" in result.stdout
        found = re.search("perplexity without unknown words: .*\n", result.stdout)
        assert found[0] in run("query", str(made / "kn"), str(made / "test")).stdout
        assert run("score", model, input=b"zebra\n").stdout == "-inf\n"
        assert not run("query", "--summary", model, input=b"the cat\n").stderr
    stream = "\\data\\\nngram 1=2\n\n\\1-grams:\n-1\ta\n-1\t</s>\n\n\\end\\\n"
    path.write_text(stream)
    result = run("query", str(path), input=b"a\n", code=1)
    assert "model.arpa has </s> as an ordinary word" in result.stderr


def test_text_from_anywhere_in_any_number_of_lines(made, run, tmp_path, monkeypatch):
    text = (made / "test").read_bytes()
    (tmp_path / "gz").write_bytes(gzip.compress(text))
    (tmp_path / "xz").write_bytes(lzma.compress(text))
    wanted = run("score", "@kn", "@test").stdout
    assert len(wanted.splitlines()) == 23
    monkeypatch.setattr(_text, "CHUNK_BYTES", 50)
    for name in ("gz", "xz"):
        assert run("score", "@kn", str(tmp_path / name)).stdout == wanted
    assert run("score", "@kn", input=text).stdout == wanted
    assert run("score", "@kn", input=gzip.compress(text)).stdout == wanted
    assert run("score", "@kn", "@test", "-", input=text).stdout == 2 * wanted
    assert run("score", "@kn", input=text.rstrip(b"\n")).stdout == wanted


def test_generate_suggest_and_neighbors(made, run):
    lm = nplm.load(made / "kn")
    options = ["--prompt", "the", "-n", "3", "--seed", "1", "--top-k", "2"]
    shown = run("generate", "@kn", *options).stdout.splitlines()
    drawn = lm.generate("the", 3, top_k=2, random_state=1)
    assert shown == [f"the {text}".strip() for text in drawn]
    with pytest.MonkeyPatch.context() as patch:  # as it draws any number
        patch.setattr(predictions, "TEXTS_A_BLOCK", 3)
        again = run("generate", "@kn", "-n", "7", *options[:2], *options[4:]).stdout
        assert again.splitlines()[:3] == shown
        assert len(again.splitlines()) == 7
    for least in (0, 6):
        flags = ["-n", "50", "--min-words", str(least), "--seed", "0"]
        shown = run("generate", "@kn", *flags).stdout.splitlines()
        assert len(shown) == 50
        assert (min(len(text.split()) for text in shown) >= 6) is (least == 6)
    for flags, unknown in [([], False), (["--unknown"], True)]:
        words, proba = lm.next_words("a cat", 30, unknown=unknown)
        assert ("<unk>" in words) is unknown
        shown = run("suggest", "@kn", "a", "cat", "-k", "30", *flags).stdout
        rows = [f"{word}\t{p:.4f}\n" for word, p in zip(words, proba)]
        assert shown == "".join(rows)
    words, proba = lm.next_words("a cat", 2, exclude=["</s>", "the"])
    shown = run("suggest", "@kn", "a", "cat", "-k", "2", "--exclude", "</s>",
                "--exclude", "the").stdout  # fmt: skip
    assert shown == "".join(f"{word}\t{p:.4f}\n" for word, p in zip(words, proba))
    refused = run("suggest", "@kn", "a", "--exclude", "zebra", code=1)
    assert "'zebra' is not in the vocabulary" in refused.stderr
    near = run("neighbors", "@network", "cat", "the", "-k", "2").stdout.splitlines()
    words, _ = nplm.load(made / "network").nearest("cat", 2)
    assert [row.split("\t")[:2] for row in near][:2] == [["cat", w] for w in words]
    assert [row.split("\t")[0] for row in near] == ["cat", "cat", "the", "the"]


@pytest.mark.parametrize("kind", ["vectors", "vectors-binary"])
def test_vectors(made, run, tmp_path, kind):
    path = str(tmp_path / "words.vec")
    run("convert", "@network", path, *(["--to", kind] if kind != "vectors" else []))
    words, vectors = read_vectors(path, binary=kind != "vectors")
    lm = nplm.load(made / "network")
    assert words == lm.vocabulary_.words_.tolist()
    np.testing.assert_array_equal(vectors, lm.estimator_.C_.astype(np.float32))
    other = {"vectors": "vectors-binary", "vectors-binary": "vectors"}[kind]
    again, back = str(tmp_path / "again"), str(tmp_path / "back")
    run("convert", path, again, "--to", other)
    run("convert", again, back, "--to", kind)
    assert (tmp_path / "back").read_bytes() == (tmp_path / "words.vec").read_bytes()
    assert (tmp_path / "again").read_bytes() != (tmp_path / "back").read_bytes()


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


def test_an_interrupt_leaves_no_model(run, tmp_path, monkeypatch):
    def interrupted(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(TextLM, "fit", interrupted)
    trigram = ["--model", "trigram", "-o", str(tmp_path / "model")]
    result = run("train", "@train", *trigram, code=130)
    assert "Interrupted." in result.stderr
    assert not (tmp_path / "model").exists()
