"""Fits that are killed, and what they saved."""

import json

import pytest

__all__ = ["SAMPLED", "SETTINGS", "Killed", "fit_and_kill", "n_saves"]

SETTINGS = dict(n_words=20, n_hidden=6, embedding_dim=4, batch_size=4, random_state=0)
# Draws that grow while it trains.
SAMPLED = dict(loss="importance", n_samples=2, min_effective_samples=10, alpha=0.1)


class Killed(BaseException):
    """Stops a fit on the spot: nothing after it is saved."""


def fit_and_kill(lm, data, folder, at):
    """Fit until `at` examples were done and saved."""

    def progress(done, total, loss):
        if done >= at:
            raise Killed

    with pytest.raises(Killed):
        lm.fit(**data, checkpoint=folder, progress=progress)


def n_saves(folder):
    latest = folder / "latest.json"
    return json.loads(latest.read_text())["save"] if latest.exists() else 0
