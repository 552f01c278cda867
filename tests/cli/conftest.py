"""A small text, and the command on it."""

import numpy as np
import pytest
from click.testing import CliRunner

from nplm.cli import main


def sentences(n, seed=0):
    """Lines of a small grammar."""
    random = np.random.default_rng(seed)
    parts = [["the", "a"], ["cat", "dog", "Cat"], ["sees", "bites"], ["them", "it"]]
    return [" ".join(random.choice(part) for part in parts) for _ in range(n)]


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    write(folder / "train", sentences(500))
    write(folder / "test", [*sentences(20, 1), "the zebra sees", "", "zebra"])
    return folder


@pytest.fixture(scope="module")
def run(folder):
    def run(*arguments, code=0, **options):
        arguments = [str(folder / a[1:]) if a[:1] == "@" else a for a in arguments]
        result = CliRunner().invoke(main, arguments, **options)
        assert result.exit_code == code, result.output
        return result

    return run


@pytest.fixture(scope="module")
def made(folder, run):
    """Models in files: the words of the n-gram model begin at two tokens."""
    run("train", "@train", "--order", "3", "--min-count", "2", "-o", "@kn")
    network = ["--model", "network", "--epochs", "2", "--hidden", "8"]
    network += ["--embedding", "4", "--order", "3", "--precision", "float64"]
    run("train", "@train", "--min-count", "2", *network, "-o", "@network")
    return folder
