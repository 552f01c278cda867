"""``nplm count``: the counts of a text, as SRILM writes them."""


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
