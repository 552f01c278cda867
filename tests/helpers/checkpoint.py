"""Killed fits and their checkpoints."""

import json

import pytest

__all__ = ["SAMPLED", "SETTINGS", "Killed", "fit_and_kill", "n_saves"]

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


def n_saves(folder):
    latest = folder / "latest.json"
    return json.loads(latest.read_text())["save"] if latest.exists() else 0
