"""The paper's tables, fit by fit; a folder keeps the fits that are done."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nplm
from nplm.base.exceptions import CheckpointError
from nplm.base.files.atomic_files import replacing
from nplm.base.progress import time_in_words
from nplm.datasets import Corpus
from nplm.datasets.corpus import PARTS
from nplm.experiments.fits import Bench, Fit, ReportStage, Results, perplexities
from nplm.experiments.paper_tables import TABLES, PaperTable
from nplm.models.training.checkpoint import fingerprint
from nplm.models.training.parallel.threads import n_threads
from nplm.models.versions import processor

Record = dict[str, Any]
SHAPE = ("name", "model", "n", "c", "h", "m", "direct", "mix")
# Seconds between two saves of the time that a fit has taken.
SECONDS_A_SAVE = 60.0
TIMES = ("seconds", "CPU seconds")


def reproduce(
    name: str,
    folder: str | os.PathLike[str],
    *,
    rows: Sequence[str] | None = None,
    corpus: Corpus | None = None,
    n_jobs: int | None = None,
    as_printed: bool = False,
    changes: dict[str, object] | None = None,
    progress: ReportStage = lambda stage, done, total, note: None,
) -> Iterator[tuple[str, bool]]:
    """Measure rows of a table of the paper.

    A file of `folder` keeps each fit that is done. After an interrupt or a kill, call
    this again: the fit goes on, and ends with the same bits. Only the validation part
    chooses anything: it stops networks, and sets the weights of the trigram and the
    share of uniform probabilities in class models. The test part is only scored.

    Parameters
    ----------
    name : {"table1", "table2"}
        The table.
    folder : path-like
        Folder for results, unfinished fits, and networks (by `nplm.save`); made if it
        is absent. Each table needs a folder of its own.
    rows : sequence of str, optional
        Names of rows or patterns ("MLP9", "class-based*"), by default all. Rows of one
        fit are measured together: a network alone and mixed, or orders over the same
        classes.
    corpus : Corpus, optional
        Text in place of the table's, such as a small one to try.
    n_jobs : int, optional
        Threads of a network. A fit goes on with the number that it began with.
    as_printed : bool, default=False
        Train networks with the paper's own values, not ours, which takes days.
    changes : dict, optional
        Parameters of `NeuralLM` for all networks that override these values, such as
        ``{"precision": "bfloat16"}``.
    progress : callable, optional
        Called as ``progress(stage, done, total, note)``.

    Yields
    ------
    row : str
        Name of the first row of a fit that is done.
    new : bool
        Whether this call finished it, not an earlier one.

    Raises
    ------
    CheckpointError
        If a file of the folder is damaged, or has another corpus or other settings.
    OSError
        If the folder cannot be written to.
    ValueError
        If there is no such table or row, or a part of the corpus is empty.

    Examples
    --------
    >>> from nplm.experiments import reproduce
    >>> for row, new in reproduce("table1", "brown"):               # doctest: +SKIP
    ...     print(row)
    """
    table = _table(name).trained_otherwise(as_printed, changes or {})
    fits = table.fits_of(rows)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    # Only writing tells: permissions say yes on a read-only file system.
    tempfile.TemporaryFile(dir=folder).close()
    corpus = table.load() if corpus is None else corpus
    bench = Bench(corpus, table.n_context, progress, n_jobs=n_jobs, scored=table.scored)
    # Report faults of a file before hours of training.
    done = {fit.name: _done(fit, corpus, folder) for fit in fits}
    for i, fit in enumerate(fits):
        if not done[fit.name]:
            progress(f"{fit.name}: timing", 0, 0, "")
            seconds = time_in_words(fit.expected_seconds(bench))
            time_of_it = f"{fit.bound} {seconds} to train"
            counts = f"{i} of {len(fits)} fits are done"
            progress(fit.name, 0, 0, f"{time_of_it}; {counts}")
            bench.work_after = sum(f.work for f in fits[i + 1 :] if not done[f.name])
            _measure(fit, bench, folder)
        yield fit.name, not done[fit.name]


def results_of(name: str, folder: str | os.PathLike[str]) -> Results:
    """Return the results of a table in a folder, beside the paper's figures.

    Parameters
    ----------
    name : {"table1", "table2"}
        The table.
    folder : path-like
        Folder of `reproduce`, with any number of rows done.

    Returns
    -------
    results : dict
        Data for JSON: ``rows``, each with its name, shape, the ``paper`` figures and
        ``ours`` (None if the row is not done), and ``fits``, each with its settings,
        wall-clock and processor seconds of training and scoring, notes, and machine.

    Raises
    ------
    CheckpointError
        If a file is damaged.
    ValueError
        If there is no such table.
    """
    table = _table(name)
    records = [_read(_path(Path(folder), fit)) for fit in table.fits]
    ours: dict[str, object] = {}
    for record in filter(None, records):
        ours |= record["rows"]
    rows = [
        {key: getattr(row, key) for key in SHAPE}
        | {"paper": {part: getattr(row, part) for part in PARTS}}
        | {"ours": ours.get(row.name)}
        for row in table.rows
    ]
    return {
        "table": table.name,
        "title": table.title,
        "rows": rows,
        "fits": [record for record in records if record is not None],
    }


def _table(name: str) -> PaperTable:
    if name not in TABLES:
        raise ValueError(
            f"name={name!r} is no table: choose among {', '.join(TABLES)}."
        )
    return TABLES[name]


def _measure(fit: Fit, bench: Bench, folder: Path) -> None:
    """Train, score, and save the figures; then remove the unfinished fit."""
    unfinished = folder / _slug(fit.name)
    unfinished.mkdir(exist_ok=True)
    clock = unfinished / "clock.json"
    with warnings.catch_warnings(record=True) as notes, _clock(clock, bench) as spent:
        warnings.simplefilter("always")
        measured = fit.measure(bench, unfinished)
    record = {
        "fit": fit.name,
        "marks": _marks(fit, bench.corpus),
        "settings": fit.settings,
        "rows": {
            name: perplexities(scores) for name, scores in measured.scores.items()
        },
        **spent,
        "facts": measured.facts,
        "notes": list(dict.fromkeys(str(note.message) for note in notes)),
        "corpus": bench.corpus.name,
        "threads": n_threads(bench.n_jobs),
        "processor": processor(),
        "nplm": nplm.__version__,
    }
    if measured.model is not None:
        nplm.save(measured.model, folder / f"{_slug(fit.name)}.model")
    with replacing(_path(folder, fit)) as file:
        file.write((json.dumps(record, indent=1) + "\n").encode())
    shutil.rmtree(unfinished)


@contextmanager
def _clock(path: Path, bench: Bench) -> Iterator[dict[str, float]]:
    """Count the seconds of a fit over all its runs, and save them while it runs."""
    before = _read(path, TIMES) or dict.fromkeys(TIMES, 0.0)
    wall, cpu = time.perf_counter(), time.process_time()
    spent = dict(before)
    written, progress = wall, bench.progress
    continues = before["seconds"] > 0 and any(path.parent.glob("fit/*"))
    resumed: tuple[str, str] | None = None  # a stage, and its name from then on

    def keep() -> None:
        spent["seconds"] = before["seconds"] + time.perf_counter() - wall
        spent["CPU seconds"] = before["CPU seconds"] + time.process_time() - cpu
        with replacing(path) as file:
            file.write(json.dumps(spent).encode())

    def report(stage: str, done: float, total: float, note: str) -> None:
        nonlocal written, resumed
        if time.perf_counter() - written > SECONDS_A_SAVE:
            keep()
            written = time.perf_counter()
        if continues and total and resumed is None:
            share = f"{done / total:.0%} after {time_in_words(before['seconds'])}"
            resumed = stage, f"{stage} (goes on from {path.parent}, {share})"
        if resumed is not None and stage == resumed[0]:
            stage = resumed[1]
        progress(stage, done, total, note)

    bench.progress = report
    try:
        yield spent
    finally:
        bench.progress = progress
        keep()


def _done(fit: Fit, corpus: Corpus, folder: Path) -> bool:
    """Whether a fit is done; raise CheckpointError if the folder has another one."""
    path = _path(folder, fit)
    record = _read(path)
    if record is None:
        return False
    marks = _marks(fit, corpus)
    for mark in sorted(marks.keys() | record["marks"].keys()):
        was, now = (m.get(mark, "not noted") for m in (record["marks"], marks))
        if was != now:
            raise CheckpointError(
                f"{path} has another corpus or other settings: its {mark} was {was}, "
                f"this one's is {now}. Remove the file to measure the row again, or "
                "give another folder."
            )
    return True


def _marks(fit: Fit, corpus: Corpus) -> dict[str, str]:
    parts = {part: corpus[part] for part in PARTS}
    settings = fit.decides | {"n_words": corpus.n_words, "boundary": corpus.boundary}
    return fingerprint(settings, parts)


def _read(path: Path, keys: Sequence[str] = ("rows", "marks", *TIMES)) -> Record | None:
    """Read a record; return None if there is none."""
    try:
        record: Record = json.loads(path.read_bytes())
        for key in keys:
            record[key]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(
            f"{path} is damaged ({type(error).__name__}: {error}). Remove it to "
            "measure the row again."
        ) from error
    return record


def _path(folder: Path, fit: Fit) -> Path:
    return folder / f"{_slug(fit.name)}.json"


def _slug(name: str) -> str:
    """Return a name for files, such as class-based-back-off-3-c-500."""
    words = "".join(c if c.isalnum() else " " for c in name).split()
    return "-".join(words)
