"""``nplm expand``: a model of classes made one of words."""

import numpy as np
import pytest

import nplm
from nplm import expand_classes
from nplm.formats import read_class_definitions


@pytest.fixture(scope="module")
def made(folder, run):
    """A model of words and classes in a file, and definitions of the classes."""
    lines = (folder / "train").read_text()
    (folder / "of classes").write_text(lines.replace("cat", "ANIMAL"))
    (folder / "definitions").write_text("ANIMAL 0.5 cat\nANIMAL 0.5 lion\nDAY May\n")
    run("train", "@of classes", "-o", "@classes.arpa", "--order", "3", "--tokens",
        "blanks")  # fmt: skip
    return folder


@pytest.mark.parametrize("options", [[], ["--to", "nplm"], ["--bits", "8"]])
def test_a_model_of_words_is_written(made, run, options):
    given = ["--classes", "@definitions", "--order", "2", *options]
    result = run("expand", "@classes.arpa", "@words.arpa", *given)
    lm = nplm.load(made / "classes.arpa")
    classes = read_class_definitions(made / "definitions")
    expected = expand_classes(lm, classes, order=2)
    before, after = (int(m.estimator_.n_ngrams_.sum()) for m in (lm, expected))
    assert f"1 of 2 classes are in the model; {before} n-grams became {after}" in (
        result.stderr
    )
    lines = [*(made / "test").read_text().splitlines(), "the lion sees a cat"]
    np.testing.assert_allclose(
        nplm.load(made / "words.arpa").score_samples(lines),
        expected.score_samples(lines),
        rtol=1e-2 if "--bits" in options else 1e-5,
    )


def test_mistakes_are_sentences(made, run):
    def told(*options, code=1, model="@classes.arpa", classes="@definitions"):
        given = ["--classes", classes, *options]
        return run("expand", model, "@none.arpa", *given, code=code).stderr

    (made / "phrases").write_text("ANIMAL polar bear\n")
    (made / "half").write_text("ANIMAL 0.5 cat\n")
    assert "phrases, line 1: expected a class" in told(classes="@phrases")
    assert "class 'ANIMAL' sum to 0.5: they must sum to 1" in told(classes="@half")
    run("train", "@train", "-o", "@plain.arpa", "--order", "2", "--tokens", "blanks")
    assert "none of the 2 classes, such as 'ANIMAL'" in told(model="@plain.arpa")
    assert "--order 4 must be from 1 to 3" in told("--order", "4")
    message = told("--max-ngrams", "20")
    assert "n-grams of words, more than --max-ngrams 20: lower --order" in message
    assert "or raise --max-ngrams." in message
    run("train", "@train", "-o", "@six", "--bits", "6", "--tokens", "blanks")
    assert "which is not quantized (--bits)" in told(model="@six")
    own = ["expand", "@classes.arpa", "@definitions", "--classes", "@definitions"]
    assert "is read" in run(*own, code=2).stderr
    assert not (made / "none.arpa").exists()
