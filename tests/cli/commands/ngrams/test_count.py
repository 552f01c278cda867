"""``nplm count``: the counts of a text, as SRILM writes them."""

from collections import Counter

import pytest

from nplm.formats import read_counts


@pytest.mark.parametrize("order", [1, 2, 4])
def test_counts_are_those_of_the_text(folder, run, order):
    run("count", "@train", "@test", "-o", "@counts.gz", "--order", str(order))
    tables, counts, words = read_counts(folder / "counts.gz")
    expected = Counter()
    for name in ("train", "test"):
        for line in filter(None, (folder / name).read_text().splitlines()):
            tokens = ["<s>", *line.split(), "</s>"]
            for end in range(2, len(tokens) + 1):
                for n in range(1, min(order, end) + 1):
                    expected[tuple(tokens[end - n : end])] += 1
    assert "zebra" in words
    assert sum(len(table) for table in tables) == len(expected)
    totals = [0] * order
    for gram, count in expected.items():
        totals[len(gram) - 1] += count
    assert [int(own.sum()) for own in counts] == totals
    unigrams = dict(zip(tables[0][:, 0].tolist(), counts[0].tolist()))
    assert unigrams[words.index("zebra")] == expected["zebra",] == 2


def test_files_of_counts_are_merged_with_weights(folder, run):
    run("count", "@train", "-o", "@train.counts", "--order", "3")
    run("count", "@test", "-o", "@test.counts", "--order", "3")
    both = ["count", "@train.counts", "@test.counts", "--merge", "--order", "3"]
    run(*both, "-o", "@merged", "--memory", "50M")
    run("count", "@train", "@test", "-o", "@together", "--order", "3")
    assert (folder / "merged").read_bytes() == (folder / "together").read_bytes()
    run(*both, "--weights", "1,4", "-o", "@merged")
    run("count", "@train", *["@test"] * 4, "-o", "@together", "--order", "3")
    assert (folder / "merged").read_bytes() == (folder / "together").read_bytes()


def test_a_model_of_counts_is_that_of_the_text(folder, run):
    run("count", "@train", "-o", "@counts.gz", "--order", "4")
    own = ["--order", "3", "--min-count", "2", "--memory", "50M"]
    run("train", "@counts.gz", "--counts", "-o", "@of_counts", *own)
    run("train", "@train", "--tokens", "blanks", "-o", "@of_text", *own)
    assert (folder / "of_counts").read_bytes() == (folder / "of_text").read_bytes()
