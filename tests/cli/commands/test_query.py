"""``nplm query`` in the columns of KenLM and of SRILM."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nplm
from nplm._kernels.files._token_lines import format_tokens

LINE = re.compile(r"\tp\( (\S+) \| (\S+ )(?:\.\.\.)?\) \t= \[(\S+)\] (\S+) \[ (\S+) \]")


@pytest.fixture(scope="module")
def model(folder, run):
    run("train", "@train", "-o", "@columns.arpa", "--order", "3", "--tokens", "blanks",
        "--memory", "50M")  # fmt: skip
    return nplm.load(folder / "columns.arpa")


def test_columns_of_srilm_have_the_scores_of_each_word(model, run, folder):
    text = "the cat sees it\nthe zebra sees\n"
    result = run("query", "--columns", "srilm", "@columns.arpa", input=text)
    lines = result.stdout.splitlines()
    found = [match.groups() for match in map(LINE.fullmatch, lines) if match]
    scores = model.token_scores(text.splitlines())
    assert [word for word, *_ in found] == [w for own in scores for w in own.words]
    expected = np.concatenate([own.log_prob for own in scores]) / np.log(10)
    np.testing.assert_allclose([float(p) for *_, p in found], expected, rtol=1e-6)
    np.testing.assert_allclose(
        [float(prob) for *_, prob, _ in found], 10**expected, rtol=1e-6
    )
    orders = np.concatenate([own.order for own in scores])
    assert [kind for *_, kind, _, _ in found] == [f"{n}gram" for n in orders]
    before = [context.strip() for _, context, *_ in found]
    assert before == ["<s>", "the", "cat", "sees", "it", "<s>", "the", "<unk>", "sees"]
    assert lines.count("the zebra sees") == 1
    # As of ngram -ppl: <unk> is no OOV where its probability is above 0.
    total, n = expected.sum(), len(expected)
    assert "file -: 2 sentences, 7 words, 0 OOVs" in lines
    assert lines[-1] == (
        f"0 zeroprobs, logprob= {total:.7g} ppl= {10 ** (-total / n):.7g} "
        f"ppl1= {10 ** (-total / (n - 2)):.7g}"
    )


@pytest.fixture(scope="module")
def closed(model, folder):
    """The name of a model without <unk>."""
    arpa = (folder / "columns.arpa").read_text().splitlines(keepends=True)
    closed = [line for line in arpa if "<unk>" not in line]
    n_words = int(arpa[1].split("=")[1])
    closed[1] = f"ngram 1={n_words - 1}\n"
    (folder / "closed.arpa").write_text("".join(closed))
    return "@closed.arpa"


def test_unknown_words_of_a_closed_model_are_left_out(closed, run):
    result = run("query", "--columns", "srilm", closed, input="the zebra\n")
    assert "\tp( <unk> | the ...) \t= [OOV] 0 [ -inf ]" in result.stdout.splitlines()
    assert "file -: 1 sentences, 2 words, 1 OOVs" in result.stdout


def test_perplexity_of_no_words_is_undefined_as_in_srilm(closed, run):
    lines = run(
        "query", "--columns", "srilm", closed, input="zebra\n"
    ).stdout.splitlines()
    assert lines[-1].endswith(" ppl1= undefined") and "ppl= undefined" not in lines[-1]
    empty = run("query", "--columns", "srilm", "@columns.arpa", input="", code=1)
    assert "logprob= 0 ppl= undefined ppl1= undefined" in empty.stdout


def test_lines_without_marks_are_scored_as_by_kenlm(model, folder, run, tmp_path):
    kenlm = pytest.importorskip("kenlm")
    peer = kenlm.Model(str(folder / "columns.arpa"))
    lines = ["the cat sees it", "zebra dog bites", "it"]
    text = "".join(f"{line}\n" for line in lines)
    expected = [peer.score(line, bos=False, eos=False) for line in lines]
    scores = run("score", "--no-marks", "@columns.arpa", input=text).stdout.split()
    np.testing.assert_allclose(np.array(scores, float), expected, atol=1e-5)
    shown = run("query", "-n", "@columns.arpa", input=text).stdout.splitlines()
    totals = [float(line.rsplit("total ", 1)[1]) for line in shown[:3]]
    np.testing.assert_allclose(totals, expected, atol=1e-4)
    assert [line.count("\t") for line in shown[:3]] == [4, 3, 1]
    assert "words: 8" in shown
    lm = nplm.TextLM(nplm.InterpolatedTrigram(), n_context=2).fit(lines)
    nplm.save(lm, tmp_path / "other")
    message = run("query", "-n", str(tmp_path / "other"), input=text, code=2).stderr
    assert "--no-marks: MODEL has a context before the first word" in message


# Any numbers, and those whose fifth decimal is a 5, or almost.
NUMBERS = st.floats() | st.builds(
    lambda n, error: n / 20000 + error,
    st.integers(-(10**9), 10**9),
    st.sampled_from([0.0, 1e-13, -1e-13]),
)
WORD = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
SCORED = st.tuples(WORD, NUMBERS, st.integers(1, 16), st.booleans())
DOCUMENTS = st.lists(st.lists(SCORED, max_size=4), max_size=3)


@given(DOCUMENTS, st.none() | SCORED, st.booleans())
def test_words_are_written_as_python_formats_them(documents, end, has_orders):
    tokens = [[*own, *([] if end is None else [end])] for own in documents]
    totals = [sum(log10 for _, log10, *_ in own) for own in tokens]
    expected = "".join(
        "\t".join([
            *(f"{word} {f'{order} ' * has_orders}{log10:.4f}{' OOV' * unknown}"
              for word, log10, order, unknown in own),
            f"total {total:.4f}\n",
        ])
        for own, total in zip(tokens, totals)
    )  # fmt: skip
    flat = [token for own in tokens for token in own]
    assert expected == format_tokens(
        [[word for word, *_ in own] for own in documents],
        None if end is None else end[0],
        np.array([log10 for _, log10, *_ in flat]),
        np.array([n for *_, n, _ in flat], np.int32) if has_orders else None,
        np.array([unknown for *_, unknown in flat], np.uint8),
        np.array(totals, float),
    )


@given(st.lists(st.text("aé \t\r\n\xa0\u3000")), st.none() | st.just("</s>"))
def test_texts_of_words_between_blanks_are_written_as_their_words(texts, end):
    split = [re.findall(r"[^ \t\r\n]+", text) for text in texts]
    n = sum(map(len, split)) + len(texts) * (end is not None)
    scores = np.arange(n) / 8, np.arange(n, dtype=np.int32), np.arange(n) % 2
    columns = *scores[:2], scores[2].astype(np.uint8), np.ones(len(texts))
    assert format_tokens(texts, end, *columns) == format_tokens(split, end, *columns)


def test_scores_of_fewer_words_are_refused():
    scores = np.zeros(1), np.zeros(1, np.int32), np.zeros(1, np.uint8)
    for documents, n in (([["a", "b"]], 1), (["a b"], 1), ([["a"]], 2)):
        with pytest.raises(ValueError, match=r"1 scores|2 totals"):
            format_tokens(documents, None, *scores, np.zeros(n))
