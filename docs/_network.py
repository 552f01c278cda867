"""The network of equation (1), drawn with the symbols of the paper."""

import _drawing
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

WORDS = [("$w_{t-n+1}$", 1.6), (None, 3.6), ("$w_{t-2}$", 5.6), ("$w_{t-1}$", 7.6)]
MIDDLE = 4.6
FEATURES, HIDDEN, OUTPUT = 1.7, 3.9, 6.1  # heights of the layers


def draw():
    """Draw it."""
    with _drawing.figure("network", figsize=(7.2, 5.2)) as (_, ax):
        ink = "black"
        blue, orange, green, _ = _drawing.COLOURS
        ax.set(xlim=(-2.4, 11), ylim=(-1.4, 7.3), aspect="equal")
        ax.axis("off")
        for word, x in WORDS:
            if word is None:
                for height in (0, FEATURES):
                    ax.text(x, height, "$\\cdots$", ha="center", va="center", size=16)
                continue
            _box(ax, x, 0, 1.4, ink)
            ax.text(x, 0, word, ha="center", va="center", size=12)
            _arrow(ax, (x, 0.35), (x, FEATURES - 0.35), ink)
            _units(ax, x, FEATURES, 4, 1.5, blue)
            _arrow(ax, (x, FEATURES + 0.35), (MIDDLE, HIDDEN - 0.4), ink)
        _units(ax, MIDDLE, HIDDEN, 9, 4.2, orange)
        _arrow(ax, (MIDDLE, HIDDEN + 0.4), (MIDDLE, OUTPUT - 0.4), ink)
        _units(ax, MIDDLE, OUTPUT, 17, 8, green)
        direct = FancyArrowPatch(
            (8.6, FEATURES), (8.1, OUTPUT - 0.4), color=ink, arrowstyle="-|>",
            mutation_scale=12, linestyle="--", connectionstyle="arc3,rad=0.35",
        )  # fmt: skip
        ax.add_patch(direct)
        labels = [
            (
                MIDDLE,
                7,
                "$\\hat P(w_t = i \\mid w_{t-1}, \\dots, w_{t-n+1})$",
                "center",
            ),
            (-0.1, OUTPUT, "softmax of $y$:\n$|V|$ units", "right"),
            (MIDDLE + 0.2, (HIDDEN + OUTPUT) / 2, "$U$,  $b$", "left"),
            (-0.1, HIDDEN, "tanh:\n$h$ units", "right"),
            (2.2, (FEATURES + HIDDEN) / 2 + 0.2, "$H$,  $d$", "right"),
            (9.5, HIDDEN, "$W$\n(direct)", "left"),
            (-0.1, FEATURES, "$x$: $m$ features\na word", "right"),
            (1.8, 0.85, "$C$", "left"),
            (MIDDLE, -1.1, "$y = b + Wx + U\\,\\tanh(d + Hx)$", "center"),
        ]
        for x, y, text, side in labels:
            ax.text(x, y, text, ha=side, va="center", size=12)


def _box(ax, x, y, width, colour):
    ax.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - 0.28), width, 0.56, boxstyle="round,pad=0.05",
            fill=False, edgecolor=colour,
        )
    )  # fmt: skip


def _units(ax, x, y, n, width, colour):
    """Draw a row of units in a box."""
    _box(ax, x, y, width, colour)
    step = width / n
    for i in range(n):
        at = x - width / 2 + (i + 0.5) * step
        ax.add_patch(Circle((at, y), 0.14, color=colour, alpha=0.8))


def _arrow(ax, start, end, colour):
    arrow = FancyArrowPatch(
        start,
        end,
        color=colour,
        arrowstyle="-|>",
        mutation_scale=12,
        shrinkA=0,
        shrinkB=0,
    )
    ax.add_patch(arrow)
