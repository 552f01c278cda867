"""Fits that are killed or interrupted, and their checkpoints."""

import json

import pytest

__all__ = [
    "SAMPLED", "SETTINGS", "Killed", "fit_and_interrupt", "fit_and_kill", "n_saves",
    "resume",
]  # fmt: skip

SETTINGS = dict(n_words=20, n_hidden=6, embedding_dim=4, batch_size=4, random_state=0)
# The number of noise samples grows during training.
SAMPLED = dict(loss="importance", n_noise=2, min_effective_samples=10, alpha=0.1)


class Killed(BaseException):
    """Stop a fit at once, without a further save."""


def fit_and_kill(lm, data, folder, at):
    """Fit until `at` examples are done and saved."""

    def progress(done, total, loss):
        if done >= at:
            raise Killed

    with pytest.raises(Killed):
        lm.fit(**data, checkpoint=folder, progress=progress)


def fit_and_interrupt(lm, data, at, **options):
    """Fit until `at` examples are done, where an interrupt ends the fit."""

    def progress(done, total, loss):
        if done > at:
            raise KeyboardInterrupt

    with (
        pytest.warns(RuntimeWarning, match="interrupted in epoch"),
        pytest.raises(KeyboardInterrupt),
    ):
        lm.fit(**data, progress=progress, **options)


def resume(lm, data, folder):
    """Fit from a checkpoint; return the number of examples of the first report."""
    done = []
    lm.fit(**data, checkpoint=folder, progress=lambda *report: done.append(report[0]))
    return done[0]


def n_saves(folder):
    latest = folder / "latest.json"
    return json.loads(latest.read_text())["save"] if latest.exists() else 0
