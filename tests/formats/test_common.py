"""Errors that all writers of n-gram files have in common."""

import os

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from nplm import (
    ClassLM,
    InterpolatedTrigram,
    KneserNeyLM,
    MixtureLM,
    NeuralLM,
    UniformLM,
)
from nplm.base.files.atomic_files import check_writable
from nplm.formats import save_binary, write_arpa, write_classes, write_counts
from nplm.models.ngrams.backoff_model import BackoffLM
from tests.helpers.ngrams import trie_of_tables

WRITERS = [write_arpa, save_binary, write_counts]


@pytest.mark.parametrize("write", WRITERS)
def test_what_has_no_ngrams_is_refused(tmp_path, write):
    models = ClassLM(), InterpolatedTrigram(), MixtureLM([]), NeuralLM(), UniformLM()
    for model in (*models, 3):
        message = f"{type(model).__name__} .* pass a KneserNeyLM"
        with pytest.raises(TypeError, match=message):
            write(model, tmp_path / "model", ["a", "b"])
    unfitted = [KneserNeyLM(), *[BackoffLM()] * (write is not write_counts)]
    for model in unfitted:
        message = f"{type(model).__name__} instance is not fitted"
        with pytest.raises(NotFittedError, match=message):
            write(model, tmp_path / "model", ["a", "b"])
    assert not any(tmp_path.iterdir())


def test_counts_of_a_model_from_a_file_are_refused(tmp_path):
    one = np.zeros((1, 1), dtype=np.int32)
    read = BackoffLM.from_trie(trie_of_tables([one], [np.zeros(1)], []))
    with pytest.raises(TypeError, match="BackoffLM keeps no n-gram counts"):
        write_counts(read, tmp_path / "counts", ["a"])


def test_devices_and_pipes_are_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="pipe: it is a device or a pipe"):
        check_writable(tmp_path / "pipe")
    with pytest.raises(OSError, match=r"/dev/null: it is a device"):
        check_writable("/dev/null")


def test_target_of_a_link_is_checked(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "absent" / "model")
    with pytest.raises(FileNotFoundError, match=r"link: there is no folder .*absent;"):
        check_writable(link)
    with pytest.raises(FileNotFoundError, match=r"link: there is no folder"):
        write_classes(link, ["a"], [0])
    (tmp_path / "absent").mkdir()
    assert check_writable(link) == link
