"""Pictures that are made while the pages are built, in the colours of either mode."""

from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

FOLDER = Path(__file__).parent / "_pictures"
INK = {"light": "#323232", "dark": "#ced6dd"}
COLOURS = ["#1b83b8", "#e08214", "#5aae61", "#9970ab"]  # legible on both


@contextmanager
def figure(name, mode, **options):
    """Give a figure and axes, and save them for one mode."""
    ink = dict.fromkeys(
        [
            "text.color",
            "axes.edgecolor",
            "axes.labelcolor",
            "xtick.color",
            "ytick.color",
        ],
        INK[mode],
    )
    settings = {"svg.hashsalt": name, "axes.prop_cycle": mpl.cycler(color=COLOURS)}
    with mpl.rc_context(ink | settings):
        fig, ax = plt.subplots(layout="constrained", **options)
        yield fig, ax
        FOLDER.mkdir(exist_ok=True)
        path = FOLDER / f"{name}-{mode}.svg"
        fig.savefig(path, transparent=True, metadata={"Date": None})
        plt.close(fig)
