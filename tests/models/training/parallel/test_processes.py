"""Parts of data, one for each process, and the operations of one process."""

from pathlib import Path

import numpy as np
import pytest

from nplm.models.training.parallel.processes import ALONE, part_of


@pytest.mark.parametrize("n_processes", [1, 2, 3, 7])
@pytest.mark.parametrize("n", [7, 10, 21])
def test_parts_are_all_of_the_data_in_order(n, n_processes):
    parts = [part_of(list(range(n)), i, n_processes) for i in range(n_processes)]
    assert [item for part in parts for item in part] == list(range(n))
    lengths = [len(part) for part in parts]
    assert max(lengths) - min(lengths) <= 1


def test_part_of_a_mapped_array_is_a_view(tmp_path):
    np.save(tmp_path / "ids.npy", np.arange(10, dtype=np.int32))
    ids = np.load(tmp_path / "ids.npy", mmap_mode="r")
    part = part_of(ids, 1, 3)
    assert part.tolist() == [3, 4, 5]
    assert np.shares_memory(part, ids)


def test_too_few_items_are_refused():
    with pytest.raises(
        ValueError, match="has 2 items, which is too few for parts of 3"
    ):
        part_of(["a.npy", "b.npy"], 0, 3)


@pytest.mark.parametrize("name", ["ids.npy", b"ids.npy", Path("ids.npy")])
def test_name_of_one_file_is_refused(name):
    with pytest.raises(TypeError, match=r"is one name: pass a list"):
        part_of(name, 0, 2)


def test_operations_of_a_single_process_have_its_own_values():
    mine = np.arange(6, dtype=np.uint8)
    for reduce in (ALONE.sum, ALONE.maximum, ALONE.minimum, ALONE.gather):
        array = mine.copy()
        reduce(array)
        np.testing.assert_array_equal(array, mine)
    joined, rows = np.zeros(6, np.uint8), np.zeros((2, 3), np.uint8)
    ALONE.join_bytes(mine, joined, np.zeros(1, np.intp))
    ALONE.join(mine.reshape(2, 3), [0], rows, everywhere=False)
    assert joined.tolist() == rows.ravel().tolist() == mine.tolist()
    assert ALONE.everyones("a") == ["a"] and ALONE.agree("a") == "a"
