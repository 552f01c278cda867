"""Tables of counts from other programs make the model of the counted text."""

import io
import os
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from nplm import KneserNeyLM, Vocabulary, windows
from nplm.formats import CountTables, estimate_arpa, estimate_binary
from nplm.formats.counts import count_tables
from tests.helpers import code_of
from tests.helpers.binary import assert_same_ngrams
from tests.helpers.ngrams import lines_of, many_lines, words_of

pytestmark = pytest.mark.filterwarnings("ignore:Kneser-Ney cannot estimate")

WORDS = ["</s>", "<unk>", *(f"w{i}" for i in range(30))]


LINES = lines_of(2000, WORDS)


def counted(order, lines=LINES, words=WORDS):
    """Return the n-grams of lines and their counts, as `CountTables` expects them."""
    ids = {word: i for i, word in enumerate(words)}
    stream = [0] + [ids[word] for line in lines for word in [*line.split(), "</s>"]]
    X, y = windows(stream, max(order - 1, 1), boundary=0)
    ngrams = np.column_stack([X, y])[1:, -order:]
    return np.unique(ngrams, axis=0, return_counts=True)


def estimated(source, path, order, estimate=estimate_binary, **options):
    return estimate(KneserNeyLM(order), source, path, **options)


def of_text(path, order, lines=LINES, words=WORDS, **options):
    own = Vocabulary(words=words[2:]) if words is WORDS else None
    own = own or Vocabulary(words=words, unknown=None)
    data = io.BytesIO("\n".join(lines).encode())
    return estimated([data], path, order, vocabulary=own, **options)


@pytest.mark.parametrize("order", [1, 2, 4])
@pytest.mark.parametrize("estimate", [estimate_binary, estimate_arpa])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_tables_make_the_model_of_the_text(
    tmp_path, monkeypatch, order, estimate, n_jobs
):
    monkeypatch.setattr(count_tables, "BATCH_ROWS", 100)
    ngrams, counts = counted(order)
    # In any order, in several tables, with repeated rows and rows of count 0.
    rows = np.random.default_rng(1).permutation(len(ngrams))
    first, rest = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    none = np.zeros((1, order), dtype=int), [0]
    half = counts // 2
    tables = [
        (ngrams[first], half[first]), (ngrams[rest], counts[rest]), none,
        (ngrams[first].tolist(), (counts - half)[first].tolist()),
    ]  # fmt: skip
    options = dict(memory="3K", n_jobs=n_jobs, folder=tmp_path, estimate=estimate)
    source = CountTables(tables, WORDS)
    found = estimated(source, tmp_path / "found", order, **options)
    expected = of_text(tmp_path / "expected", order, estimate=estimate)
    assert_same_ngrams(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["expected", "found"]
    assert_array_equal(found.discounts, expected.discounts)
    numbers = ("n_lines", "n_tokens", "n_unknown", "n_words")
    assert all(getattr(found, n) == getattr(expected, n) for n in numbers)


def test_older_words_and_words_before_a_boundary_are_ignored(tmp_path):
    ngrams, counts = counted(5)
    nearest = np.maximum.accumulate((ngrams[:, -2::-1] == 0), axis=1)[:, ::-1]
    before = nearest & np.roll(nearest, -1, axis=1)
    before[:, -1] = False
    ngrams[:, :-1][before] = 7
    assert (ngrams == 7).sum() > (counted(5)[0] == 7).sum()
    estimated(CountTables([(ngrams, counts)], WORDS), tmp_path / "found", 3)
    of_text(tmp_path / "expected", 3)
    assert_same_ngrams(tmp_path)


def test_tables_of_other_libraries_are_read(tmp_path):
    pa = pytest.importorskip("pyarrow")
    duckdb = pytest.importorskip("duckdb")
    parquet = pytest.importorskip("pyarrow.parquet")
    polars = pytest.importorskip("polars")
    ngrams, counts = counted(3)
    columns = {f"w{k}": ngrams[:, k] for k in range(3)} | {"n": counts}
    whole = pa.table(columns)
    parts = [whole.slice(i, 100) for i in range(0, len(whole), 100)]
    folder = tmp_path / "counts"
    folder.mkdir()
    # A folder as Spark and Dask write it.
    for i, part in enumerate(parts[2:4]):
        parquet.write_table(part, folder / f"part-{i}.parquet")
    (folder / "_SUCCESS").touch()
    parquet.write_table(parts[4], tmp_path / "one")
    rest = pa.concat_tables(parts[6:])
    tables = [
        parts[0].to_reader(), *parts[1].to_batches(), folder, str(tmp_path / "one"),
        rest.slice(0, 99), polars.from_arrow(rest.slice(99)),
        duckdb.from_arrow(parts[5]),
    ]  # fmt: skip
    estimated(CountTables(tables, WORDS), tmp_path / "found", 3)
    of_text(tmp_path / "expected", 3)
    assert_same_ngrams(tmp_path)


# Dask uses what pandas deprecates.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_dask_tables_make_the_model_of_the_text(tmp_path, monkeypatch):
    dask = pytest.importorskip("dask")
    pytest.importorskip("dask.dataframe")
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    own = many_lines(100_000)
    for i in range(4):
        parquet.write_table(pa.table({"text": own[i::4]}), tmp_path / f"{i}.parquet")
    monkeypatch.chdir(tmp_path)
    names = {}
    with dask.config.set(scheduler="synchronous"):
        exec(code_of("ngrams.rst", "counted-by-dask"), names)
    assert len(list(tmp_path.glob("counts/*.parquet"))) == 4
    words = names["words"]
    assert words == words_of(own)
    estimated(CountTables(["counts"], words), tmp_path / "found", 4)
    of_text(tmp_path / "expected", 4, own, words)
    assert_same_ngrams(tmp_path)


REFUSED = {
    "an n-gram less": (
        [[part[1:] for part in counted(3)]], "complete lines: .* times before"
    ),
    # Every word occurs as often before a word as it ends an n-gram.
    "other contexts": (
        [([[0, 0, 2], [0, 2, 3], [4, 3, 0]], [1] * 3)],
        "not hold complete lines: some contexts do not follow",
    ),
    # A cyclic stream.
    "no end": ([([[2, 3, 2], [3, 2, 3]], [5, 5])], "'</s>' never occurs"),
    "unigrams": ([([[2], [3]], [5, 5])], "'</s>' never occurs, so no line ends"),
    "no rows": ([], "the tables have no n-gram"),
    "gone through": (iter([]), "no n-gram: .* an iterator, .* only once: create it"),
    "ids": ([([[0, 0, 99]], [1])], "ngrams .*99.*n_words=32"),
    "counts": ([([[0, 0, 2]], [-1])], "counts has -1 at 0, which is negative"),
    "too many": ([([[0, 0, 2]], [2**52])] * 2, "add up to 9.01e.15, more than"),
    "lengths": ([([[0, 0, 2]], [1, 1])], "counts must have one entry per n-gram"),
    "short": ([([[0, 2]], [1])], "has n-grams of 2 words, but order is 3"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_tables_are_refused(tmp_path, name):
    tables, message = REFUSED[name]
    model = KneserNeyLM(1 if name == "unigrams" else 3)
    with pytest.raises(ValueError, match=message):
        estimate_binary(
            model, CountTables(tables, WORDS), tmp_path / "x", folder=tmp_path
        )
    assert os.listdir(tmp_path) == []


def test_invalid_arguments_are_refused(tmp_path):
    for given, error, message in [
        (("counts.parquet", WORDS), TypeError, "tables is a single str: pass a list"),
        (([], ["a", "a"]), ValueError, "'a' twice"),
        (([], ["a"]), ValueError, "boundary='</s>' is not in words"),
    ]:
        with pytest.raises(error, match=message):
            CountTables(*given)
    tables = CountTables([([[0, 2]], [1])], WORDS)
    with pytest.raises(ValueError, match="tables of counts have their own words"):
        estimate_binary(KneserNeyLM(2), tables, tmp_path / "x", vocabulary=Vocabulary())
    with pytest.raises(TypeError, match="the int is not a table"):
        estimate_binary(KneserNeyLM(2), CountTables([3], WORDS), tmp_path / "x")
    with pytest.raises(ValueError, match=r"has no file that ends in .parquet"):
        estimate_binary(KneserNeyLM(2), CountTables([tmp_path], WORDS), tmp_path / "x")


def test_invalid_columns_are_refused(tmp_path):
    pa = pytest.importorskip("pyarrow")
    for columns, message in [
        ({"w": [1]}, "the Table has 1 columns"),
        ({"w": [1, None], "n": [1, 2]}, "has 1 missing values in 'w'"),
        ({"w": ["a"], "n": [1]}, "has string in 'w', but columns must hold whole"),
    ]:
        tables = CountTables([pa.table(columns)], WORDS)
        with pytest.raises(ValueError, match=message):
            estimate_binary(KneserNeyLM(1), tables, tmp_path / "x")


def test_error_names_an_unreadable_parquet_file(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "counts.parquet"
    parquet.write_table(pa.table({"w": [0, 2] * 999, "n": range(1998)}), path)
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(20):
        damaged = np.frombuffer(data, np.uint8).copy()
        positions = rng.integers(0, len(damaged), 3)
        damaged[positions] = rng.integers(0, 256, 3)
        path.write_bytes(
            damaged.tobytes()[: int(rng.choice([len(data), positions[0]]))]
        )
        try:
            estimated(CountTables([path], WORDS), tmp_path / "x", 1)
        except ValueError as error:
            refused += f"{path} cannot be read as a Parquet file: " in str(error)
    assert refused > 5
    for content in (b"", b"PAR1", b"a,b\n1,2\n"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"{path} cannot be read as a Parquet"):
            estimated(CountTables([path], WORDS), tmp_path / "x", 1)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(OSError, match=f"{path} is a pipe or a device"):
        estimated(CountTables([path], WORDS), tmp_path / "x", 1)


def test_missing_pyarrow_is_an_import_error(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    tables = CountTables([tmp_path / "counts.parquet"], WORDS)
    with pytest.raises(ImportError, match="requires pyarrow: python -m pip"):
        estimate_binary(KneserNeyLM(2), tables, tmp_path / "x")
