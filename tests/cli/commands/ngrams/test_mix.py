"""``nplm mix``: models of different words made one."""

import numpy as np
import pytest

import nplm
from nplm import static_mixture
from tests.helpers.binary import read_parts, write_parts


@pytest.fixture(scope="module")
def made(folder, run):
    """Two models in files, of different orders and words."""
    lines = (folder / "train").read_text().splitlines()
    others = [line.replace("cat", "horse") for line in lines[:300]]
    (folder / "horses").write_text("\n".join(others))
    (folder / "dev").write_text("\n".join([*lines[-30:], *others[:20]]))
    run("train", "@train", "-o", "@cats", "--order", "3", "--tokens", "blanks")
    run("train", "@horses", "-o", "@horses.arpa", "--order", "2", "--tokens", "blanks",
        "--memory", "50M")  # fmt: skip
    return folder


def test_a_mixture_is_written_with_the_weights_of_the_held_out_text(made, run):
    result = run("mix", "@cats", "@horses.arpa", "--valid", "@dev", "-o", "@both.arpa")
    shown = [line.split("\t") for line in result.stdout.splitlines()[:2]]
    assert [name for _, name in shown] == [
        str(made / "cats"),
        str(made / "horses.arpa"),
    ]
    lines = (made / "dev").read_text().splitlines()
    members = [nplm.load(made / "cats"), nplm.load(made / "horses.arpa")]
    expected = static_mixture(members, X_val=lines)
    weights = [float(weight) for weight, _ in shown]
    np.testing.assert_allclose(weights, expected.weights, atol=1e-6)
    both = nplm.load(made / "both.arpa")
    np.testing.assert_allclose(
        both.score_samples(lines), expected.lm.score_samples(lines), rtol=1e-5
    )
    assert f"validation: perplexity {both.perplexity(lines):.2f}" in result.stdout


def test_a_mixture_has_the_given_weights_and_the_kind_asked_for(made, run):
    run("mix", "@cats", "@horses.arpa", "--weights", "0.25,0.75", "-o", "@both.bin",
        "--to", "binary")  # fmt: skip
    lines = (made / "dev").read_text().splitlines()
    members = [nplm.load(made / "cats"), nplm.load(made / "horses.arpa")]
    expected = static_mixture(members, [0.25, 0.75]).lm
    np.testing.assert_allclose(
        nplm.load(made / "both.bin").score_samples(lines),
        expected.score_samples(lines),
        rtol=1e-6,
    )


def test_a_symbol_that_is_a_word_of_another_file_is_refused(made, run):
    lines = (made / "horses.arpa").read_text()
    (made / "UNK.arpa").write_text(lines.replace("<unk>", "<UNK>"))
    (made / "word.arpa").write_text(lines.replace("horse", "<UNK>"))
    two = ["mix", "@UNK.arpa", "@word.arpa", "--weights", "0.5,0.5", "-o", "@none.arpa"]
    message = run(*two, code=1).stderr
    assert f"'<UNK>' is the symbol for unknown words in {made / 'UNK.arpa'}" in message
    assert f"an ordinary word in {made / 'word.arpa'}: rename it" in message
    assert not (made / "none.arpa").exists()


def test_equal_words_of_a_damaged_file_are_refused(made, run):
    run("convert", "@cats", "@damaged", "--to", "binary")
    header, arrays = read_parts(made / "damaged")
    words = arrays["vocabulary"].tobytes()
    arrays["vocabulary"] = np.frombuffer(words.replace(b"cat", b"dog"), np.uint8)
    write_parts(made / "damaged", header, arrays)
    assert nplm.load(made / "damaged").perplexity(["the dog"]) > 1
    for command in (
        ["mix", "@damaged", "@cats", "--weights", "0.5,0.5", "-o", "@none.arpa"],
        ["convert", "@damaged", "@none.arpa"],
        ["convert", "@damaged", "@none.nplm", "--to", "binary", "--bits", "8"],
        ["prune", "@damaged", "@none.arpa", "--threshold", "1e-7"],
    ):
        message = run(*command, code=1).stderr
        assert "damaged is damaged: its words are invalid" in message
        assert "'dog' twice" in message
    assert not (made / "none.arpa").exists() and not (made / "none.nplm").exists()
