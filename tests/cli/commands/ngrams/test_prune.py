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


def test_mistakes_of_words_are_sentences(folder, run):
    run("train", "@train", "-o", "@limited.kn", "--order", "2")
    none = write(folder / "none", ["", " "])
    others = write(folder / "others", ["lion"])
    command = ["prune", "@limited.kn", "@limited.arpa", "--limit-vocab"]
    assert "none has no words" in run(*command, none, code=1).stderr
    lexicon = write(folder / "lexicon", ["the\tDH AH", "cat\tK AE T"])
    for own in (command, ["train", "@train", "-o", "@known.arpa", "--vocabulary"]):
        message = run(*own, lexicon, code=1).stderr
        assert f"{own[-1]}: {lexicon}, line 1: 'the\\tDH AH' is more than" in message
    message = run(*command, others, code=1).stderr
    assert "others: the model has none of the words" in message
    own = ["prune", "@limited.kn", "@others", "--limit-vocab", others]
    assert "others is read" in run(*own, code=2).stderr
