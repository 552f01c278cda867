"""The paper's tables, a fit after the other, each kept in a folder when it is done."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import nplm
from nplm.base.exceptions import CheckpointError
from nplm.base.files.atomic_files import replacing
from nplm.datasets import Corpus
from nplm.experiments.fits import Bench, Fit
from nplm.experiments.paper_tables import TABLES, PaperTable
from nplm.experiments.scoring import ReportStage, perplexity
from nplm.models.versions import processor
from nplm.training.checkpoint import fingerprint
from nplm.training.parallel.threads import n_threads

__all__ = ["reproduce", "results_of"]

Record = dict[str, Any]
# Between two times that the clock of a fit is written down.
SECONDS_A_SAVE = 60.0


def reproduce(
    name: str,
    folder: str | os.PathLike[str],
    *,
    rows: Sequence[str] | None = None,
    corpus: Corpus | None = None,
    n_jobs: int | None = None,
    as_printed: bool = False,
    changes: dict[str, Any] | None = None,
    progress: ReportStage = lambda stage, done, total, note: None,
) -> Iterator[tuple[str, bool]]:
    """Measure rows of a table of the paper.

    A fit that is done is kept in a file of `folder`, and one that was interrupted (or
    killed) goes on where it was, with the same bits: call it again. Validation alone
    chooses: it stops networks, weighs the parts of the trigram, and sets the share of
    uniform probabilities in class models; the test part is scored and no more.

    Parameters
    ----------
    name : {"table1", "table2"}
        The table.
    folder : path-like
        Where results and unfinished fits are kept, and networks by `nplm.save`; made
        if need be. A table has one of its own.
    rows : sequence of str, optional
        Names of rows or patterns ("MLP9", "class-based*"), by default all. Rows of one
        fit come together: a network alone and mixed, orders over the same classes.
    corpus : Corpus, optional
        Another text than the table's: a small one, for a try.
    n_jobs : int, optional
        Threads of a network. A fit goes on with as many as it was begun.
    as_printed : bool, default=False
        Train networks with the paper's own values, which takes days, not with ours.
    changes : dict, optional
        Parameters of `NeuralLM` for all networks, which go before these, such as
        ``{"precision": "bfloat16"}``.
    progress : callable, optional
        Called as ``progress(stage, done, total, note)``.

    Yields
    ------
    row : str
        Name of the first row of a fit, when it is done.
    new : bool
        Whether it was done now, not before.

    Raises
    ------
    CheckpointError
        If a file of the folder is damaged, or of another corpus or other settings.
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
    kept = Path(folder)
    kept.mkdir(parents=True, exist_ok=True)
    # Only writing tells: permissions say yes on a read-only file system.
    tempfile.TemporaryFile(dir=kept).close()
    corpus = table.load() if corpus is None else corpus
    bench = Bench(corpus, table.n_context, table.scored, n_jobs, progress)
    # What is wrong with a file is told before hours of training.
    done = {_name(fit): _done(fit, corpus, kept) for fit in fits}
    for i, fit in enumerate(fits):
        if not done[_name(fit)]:
            bench.work_after = sum(f.work for f in fits[i + 1 :] if not done[_name(f)])
            _measure(fit, bench, kept)
        yield _name(fit), not done[_name(fit)]


def results_of(name: str, folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Gather what a folder has of a table, beside the paper's figures.

    Parameters
    ----------
    name : {"table1", "table2"}
        The table.
    folder : path-like
        As `reproduce` left it, whatever is done.

    Returns
    -------
    results : dict
        For JSON: ``rows``, each with its name, shape, the ``paper`` figures and
        ``ours`` (None if it is not done), and ``fits``, each with its settings, wall
        and processor seconds of training and scoring, notes, and where it ran.

    Raises
    ------
    CheckpointError
        If a file is damaged.
    ValueError
        If there is no such table.
    """
    table, kept = _table(name), Path(folder)
    records = [_read(_path(kept, fit)) for fit in table.fits]
    ours: dict[str, Any] = {}
    for record in filter(None, records):
        ours |= record["rows"]
    rows = [asdict(row) | {"ours": ours.get(row.name)} for row in table.rows]
    for row in rows:
        row["paper"] = dict(zip(("train", "valid", "test"), row["paper"]))
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
    """Train, score, and keep the figures; what is unfinished goes after that."""
    unfinished = folder / _slug(_name(fit))
    unfinished.mkdir(exist_ok=True)
    clock = unfinished / "clock.json"
    with warnings.catch_warnings(record=True) as notes, _clock(clock, bench) as spent:
        warnings.simplefilter("always")
        measured = fit.measure(bench, unfinished)
    record = {
        "fit": _name(fit),
        "marks": _marks(fit, bench.corpus),
        "settings": fit.settings,
        "rows": {
            name: {part: perplexity(scores[part]) for part in scores}
            for name, scores in measured.scores.items()
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
        nplm.save(measured.model, folder / f"{_slug(_name(fit))}.model")
    with replacing(_path(folder, fit)) as file:
        file.write((json.dumps(record, indent=1) + "\n").encode())
    shutil.rmtree(unfinished)


@contextmanager
def _clock(path: Path, bench: Bench) -> Iterator[dict[str, float]]:
    """Count seconds of a fit over all its runs; written down while it runs."""
    before = _read(path, ("seconds", "CPU seconds")) or {
        "seconds": 0.0,
        "CPU seconds": 0.0,
    }
    wall, cpu = time.perf_counter(), time.process_time()
    spent = dict(before)
    written, tell = wall, bench.progress

    def keep() -> None:
        spent["seconds"] = before["seconds"] + time.perf_counter() - wall
        spent["CPU seconds"] = before["CPU seconds"] + time.process_time() - cpu
        with replacing(path) as file:
            file.write(json.dumps(spent).encode())

    def report(stage: str, done: float, total: float, note: str) -> None:
        nonlocal written
        if time.perf_counter() - written > SECONDS_A_SAVE:
            keep()
            written = time.perf_counter()
        tell(stage, done, total, note)

    bench.progress = report
    try:
        yield spent
    finally:
        bench.progress = tell
        keep()


def _done(fit: Fit, corpus: Corpus, folder: Path) -> bool:
    """Whether a fit is done; raise if that of the folder is another."""
    path = _path(folder, fit)
    record = _read(path)
    if record is None:
        return False
    marks = _marks(fit, corpus)
    for mark in sorted(marks.keys() | record["marks"].keys()):
        was, now = (noted.get(mark, "not noted") for noted in (record["marks"], marks))
        if was != now:
            raise CheckpointError(
                f"{path} is of another corpus or other settings: its {mark} was {was}, "
                f"this one's is {now}. Remove the file to measure it again, or give "
                "another folder."
            )
    return True


def _marks(fit: Fit, corpus: Corpus) -> dict[str, str]:
    parts = {part: corpus[part] for part in ("train", "valid", "test")}
    settings = fit.decides | {"n_words": corpus.n_words, "boundary": corpus.boundary}
    return fingerprint(settings, parts)


def _read(
    path: Path, keys: Sequence[str] = ("rows", "marks", "seconds", "CPU seconds")
) -> Record | None:
    """Read what was kept; None if there is nothing."""
    try:
        record = json.loads(path.read_bytes())
        for key in keys:
            record[key]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(
            f"{path} is damaged ({type(error).__name__}: {error}). Remove it, and what "
            "it had is measured again."
        ) from error
    found: Record = record
    return found


def _name(fit: Fit) -> str:
    return fit.rows[0].name


def _path(folder: Path, fit: Fit) -> Path:
    return folder / f"{_slug(_name(fit))}.json"


def _slug(name: str) -> str:
    """Give the name as one of a file: class-based-back-off-3-c-500."""
    words = "".join(c if c.isalnum() else " " for c in name).split()
    return "-".join(words)
