"""``nplm prune``: fewer n-grams, or fewer words."""

import pytest

import nplm
from nplm import limit_vocabulary


def write(path, lines):
    path.write_text("\n".join(lines))
    return str(path)


def test_a_model_is_limited_to_the_words_of_a_file(folder, run):
    run("train", "@train", "-o", "@limited.kn", "--order", "3")
    words = write(folder / "words", ["the", " cat\t", "sees", "zebra", ""])
    result = run("prune", "--limit-vocab", words, "@limited.kn", "@limited.arpa")
    assert "5 of 11 words kept; 1 words of" in result.stderr
    expected = limit_vocabulary(
        nplm.load(folder / "limited.kn"), ["the", "cat", "sees"]
    )
    found = nplm.load(folder / "limited.arpa")
    lines = ["the cat sees the dog", "zebra"]
    assert found.score(lines) == pytest.approx(expected.score(lines))
    # All n-grams of the words are kept, unless some are to be pruned.
    n_ngrams = int(expected.estimator_.n_ngrams_.sum())
    assert f"{n_ngrams:,} of " in result.stderr
    result = run("prune", "--limit-vocab", words, "--threshold", "0.5", "@limited.kn",
                 "@limited.arpa")  # fmt: skip
    assert f"{n_ngrams:,} of " not in result.stderr
