"""Text FSTs, read as OpenFst reads them and walked word by word."""

import math
from collections import defaultdict

import numpy as np
import pytest

from nplm import KneserNeyLM, TextLM, windows
from nplm.cli import main
from nplm.formats import read_arpa, write_fst


class Grammar:
    """An FST whose back-off arcs are taken by words without an arc."""

    def __init__(self, path, backoff="#0", number=str):
        self.number, self.backoff = number, number(backoff)
        self.arcs, self.final, self.start = defaultdict(dict), {}, None
        for line in path.read_text().splitlines():
            source, *rest = line.split("\t")
            self.start = source if self.start is None else self.start
            if len(rest) == 1:
                self.final[source] = float(rest[0])
                continue
            target, word, output, cost = rest
            assert word not in self.arcs[source]
            assert output == (number("<eps>") if word == self.backoff else word)
            self.arcs[source][word] = target, float(cost)

    def costs(self, words):
        """Return the cost of each word, and of the end."""
        state, costs = self.start, []
        for word in map(self.number, words):
            cost = 0.0
            while word not in self.arcs[state]:
                state, own = self.arcs[state][self.backoff]
                cost += own
            state, own = self.arcs[state][word]
            costs.append(cost + own)
        cost = 0.0
        while state not in self.final:
            state, own = self.arcs[state][self.backoff]
            cost += own
        return [*costs, cost + self.final[state]]


@pytest.fixture(scope="module")
def text():
    rng = np.random.default_rng(0)
    share = np.arange(7, 0, -1) / 28
    sizes = rng.integers(1, 9, size=200)
    return [" ".join(rng.choice(list("abcdefg"), size=n, p=share)) for n in sizes]


@pytest.mark.parametrize(
    ("n_context", "threshold"), [(1, 0), (2, 0), (3, 1e-3), (4, 3e-4)]
)
def test_sentences_cost_what_the_model_says(tmp_path, text, n_context, threshold):
    lm = TextLM(KneserNeyLM(discount_fallback=0.5), n_context=n_context).fit(text)
    model, words = lm.estimator_.prune(threshold), lm.vocabulary_.words_.tolist()
    write_fst(model, tmp_path / "G", words)
    grammar = Grammar(tmp_path / "G")
    for sentence in [*text[:50], "g g f g", "a a a a a a", ""]:
        costs = grammar.costs(sentence.split())
        assert sum(costs) == pytest.approx(-lm.score_samples([sentence])[0], abs=1e-5)


def test_contexts_that_are_no_ngrams_have_states(tmp_path, text):
    """The first words of a stream are a context, but were not predicted."""
    ids = [3, 4, 5, 3, *(ord(c) - ord("a") for s in text for c in s[::2])]
    model = KneserNeyLM(discount_fallback=0.5).fit(*windows(ids, 4))
    trie = model.trie_
    assert trie.index(np.array([[3, 4, 5]], np.int32), np.array([3], np.int32)) < 0
    write_fst(model, tmp_path / "G", list("abcdefg"))
    grammar = Grammar(tmp_path / "G")
    for stream in (ids[:200], [3, 4, 5, 3, 0, 1, 6, 6, 6, 0, 0, 1]):
        *costs, end = grammar.costs("abcdefg"[i] for i in stream)
        assert end == 0
        np.testing.assert_allclose(
            costs[4:], -model.log_prob(*windows(stream, 4)), atol=1e-5
        )


@pytest.mark.parametrize("name", ["mapped", "model.arpa"])
def test_sentences_without_marks_cost_their_words_alone(tmp_path, name):
    (tmp_path / "text").write_text("a b c\na b\nb c a b\nc\n")
    model, fst = str(tmp_path / name), str(tmp_path / "G")
    options = ["--no-marks", "--tokens", "blanks", "--order", "3"]
    discounts = ["--discount-fallback", "0.5,0.5,0.5"]
    for command in (
        ["train", str(tmp_path / "text"), "-o", model, *options, *discounts],
        ["convert", model, fst, "--to", "fst"],
    ):
        main(command, standalone_mode=False)
    # Each of a, b and c has one word before it: 1 of 3, less the discount of 0.5, and
    # half of 1 / 4 words, with <unk>. Only a is before b c, and only b before c a.
    one = 0.5 / 3 + 0.5 / 4
    b_after_a = 0.5 + 0.5 * one
    c_after_a_b = 0.5 + 0.5 * b_after_a
    # After b, only c was seen: others have half of their own probability. The end of
    # a line costs nothing.
    grammar = Grammar(tmp_path / "G")
    for sentence, probabilities in {
        "a b c": [one, b_after_a, c_after_a_b, 1],
        "b b": [one, 0.5 * one, 1],
        "<unk>": [0.5 / 4, 1],
        "": [1],
    }.items():
        expected = -np.log(probabilities)
        np.testing.assert_allclose(grammar.costs(sentence.split()), expected, atol=2e-6)


def test_a_table_of_symbols_is_written_and_then_read(tmp_path, text):
    lm = TextLM(KneserNeyLM(discount_fallback=0.5), n_context=2).fit(text)
    model, words = lm.estimator_, lm.vocabulary_.words_.tolist()
    table = tmp_path / "words.txt"
    for backoff in ("#0", "<eps>"):
        write_fst(model, tmp_path / "G", words, symbols=table, backoff=backoff)
        numbers = dict(line.split() for line in table.read_text().splitlines())
        assert numbers["<eps>"] == "0"
        assert set(numbers) == {*words, "<eps>", "<s>", "#0"}
        grammar = Grammar(tmp_path / "G", backoff, numbers.get)
        assert sum(grammar.costs(["a", "b", "g", "g"])) == pytest.approx(
            -lm.score_samples(["a b g g"])[0], abs=1e-5
        )
    lines = table.read_text().splitlines()
    for wrong, message in (
        (lines[:2] + lines[3:], "lacks 1 symbols, such as "),
        (["<eps> 99", *lines[1:]], "does not give <eps> the number 0"),
        (["<eps> 0", "a"], "line 2: expected a symbol and its number, got 'a'"),
    ):
        table.write_text("\n".join(wrong) + "\n")
        with pytest.raises(ValueError, match=message):
            write_fst(model, tmp_path / "other", words, symbols=table)
    assert not (tmp_path / "other").exists()


def test_words_of_probability_0_have_no_arcs(tmp_path):
    (tmp_path / "arpa").write_text(
        "\\data\\\nngram 1=3\nngram 2=1\n\n\\1-grams:\n-99 <s> -0.3\n-0.1 </s>\n"
        "-99 a\n\n\\2-grams:\n-0.2 <s> a\n\n\\end\\\n"
    )
    model, words = read_arpa(tmp_path / "arpa")
    write_fst(model, tmp_path / "G", words)
    grammar = Grammar(tmp_path / "G")
    assert grammar.costs(["a"])[0] == pytest.approx(0.2 * math.log(10), abs=1e-6)
    with pytest.raises(KeyError):
        grammar.costs(["a", "a"])


def test_openfst_composes_sentences_with_it(tmp_path, text):
    """Its best path costs the least of all choices of back-off arcs."""
    kaldifst = pytest.importorskip("kaldifst")
    lm = TextLM(KneserNeyLM(discount_fallback=0.5), n_context=3).fit(text)
    words, table = lm.vocabulary_.words_.tolist(), tmp_path / "words.txt"
    path = tmp_path / "G"
    write_fst(lm.estimator_, path, words, symbols=table, backoff="<eps>")
    fst = kaldifst.compile(path.read_text())
    kaldifst.arcsort(fst, sort_type="ilabel")
    ids = dict(line.split() for line in table.read_text().splitlines())
    grammar = Grammar(path, "<eps>", ids.get)
    for sentence in [*text[:30], "g g f g"]:
        own = kaldifst.make_linear_acceptor([int(ids[w]) for w in sentence.split()])
        best = kaldifst.shortest_path(kaldifst.compose(own, fst))
        state, cost = best.start, 0.0
        while arcs := list(kaldifst.ArcIterator(best, state)):
            [arc] = arcs
            state, cost = arc.nextstate, cost + arc.weight.value
        cost += best.final(state).value
        assert cost == pytest.approx(least_cost(grammar, sentence.split()), abs=1e-4)


def least_cost(grammar, words):
    """Return the least cost over all paths of the words."""
    least = {grammar.start: 0.0}
    for word in [None, *map(grammar.number, words)]:
        after = {} if word else least
        for state, cost in least.items():
            if word and (found := grammar.arcs[state].get(word)):
                cost += found[1]
                after[found[0]] = min(cost, after.get(found[0], math.inf))
        least = after
        waiting = list(least)
        for state in waiting:  # it grows
            if found := grammar.arcs[state].get(grammar.backoff):
                cost = least[state] + found[1]
                if cost < least.get(found[0], math.inf):
                    least[found[0]] = cost
                    waiting.append(found[0])
    return min(least[s] + cost for s, cost in grammar.final.items() if s in least)


def test_labels_and_tables_that_no_fst_has_are_refused(tmp_path):
    model = KneserNeyLM(discount_fallback=0.5).fit(*windows([0, 1, 0, 0, 1], 1))
    words, table = ["a", "b\u00a0c"], tmp_path / "words.txt"
    for backoff in ("", "# 0", "#\t0"):
        with pytest.raises(ValueError, match="empty, nor contain a blank"):
            write_fst(model, tmp_path / "G", words, backoff=backoff)
    for labels in (["a", "#0"], ["<eps>", "a"]):
        with pytest.raises(ValueError, match="the label of arcs without a word"):
            write_fst(model, tmp_path / "G", labels)
    with pytest.raises(ValueError, match="is the file of the FST, too"):
        write_fst(model, table, words, symbols=tmp_path / "." / "words.txt")
    assert not list(tmp_path.iterdir())
    write_fst(model, tmp_path / "G", words, symbols=table)
    made = (tmp_path / "G").read_bytes()
    write_fst(model, tmp_path / "G", words, symbols=table)
    assert (tmp_path / "G").read_bytes() == made  # the table is read as it was written
    for line in ("d 1", "a 9", "d", "\xff 9 9"):
        lines = f"{table.read_text()}{line}\n"
        (tmp_path / "wrong").write_bytes(lines.encode("latin-1"))
        with pytest.raises(ValueError, match="wrong, line 5"):
            write_fst(model, tmp_path / "H", words, symbols=tmp_path / "wrong")
    assert not (tmp_path / "H").exists()
