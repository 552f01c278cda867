"""Pictures for light and dark pages.

Every chart is drawn once, in the colours of a light page; `both` makes the dark one of
its SVG. The directive ``drawing`` shows the two of an SVG beside a page, as a figure.
"""

import re
from contextlib import contextmanager
from copy import deepcopy
from io import BytesIO
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from docutils import nodes
from docutils.parsers.rst.directives.images import Figure

DOCS = Path(__file__).parent
FOLDER = DOCS / "_pictures"
COLOURS = ["#1b83b8", "#e08214", "#5aae61", "#9970ab"]  # legible on both
INK = {"light": "#323232", "dark": "#ced6dd"}
# Matplotlib's colours that are too dark or too light on a dark page.
IN_DARK = {"#1f77b4": "#5fa8dc", "#2ca02c": "#5cc45c", "#d62728": "#f06a6a",
           "#9467bd": "#b493d6", "#8c564b": "#c08d80", "#7f7f7f": "#a5a5a5",
           "#808080": "#a5a5a5", "#bfbfbf": "#5c6570", "#cccccc": "#5c6570",
           "#b0b0b0": "#4a525b"}  # fmt: skip


def both(svg, path):
    """Write a drawing of matplotlib for both modes; return the paths by mode."""
    svg = re.sub(r"fill: #ffffff(; opacity: [\d.]+)?", "fill: none", svg)
    # The ink of texts is the default colour, which their SVG does not name.
    svg = re.sub(r"<svg ", '<svg fill="#000000" ', svg, count=1)
    paths = {mode: path.with_name(f"{path.stem}-{mode}.svg") for mode in INK}
    path.parent.mkdir(exist_ok=True)
    paths["light"].write_text(svg.replace("#000000", INK["light"]))
    in_dark = IN_DARK | {"#000000": INK["dark"]}
    dark = re.sub("#[0-9a-f]{6}", lambda match: in_dark.get(match[0], match[0]), svg)
    paths["dark"].write_text(dark)
    return paths


def save(figure, path, salt="nplm"):
    """Write a figure for both modes; return the paths by mode."""
    file = BytesIO()
    with mpl.rc_context({"svg.hashsalt": salt}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    return both(file.getvalue().decode(), path)


@contextmanager
def figure(name, **options):
    """Give a figure and axes, and save them for both modes."""
    with mpl.rc_context({"axes.prop_cycle": mpl.cycler(color=COLOURS)}):
        fig, ax = plt.subplots(layout="constrained", **options)
        yield fig, ax
        save(fig, FOLDER / f"{name}.svg", name)
        plt.close(fig)


def images(image, uris):
    """Return an image node for each mode, of which a page shows one."""
    found = []
    for mode, uri in uris.items():
        found.append(deepcopy(image))
        found[-1]["uri"] = uri
        found[-1]["classes"] = [*image["classes"], f"only-{mode}", "chart"]
    return found


class Drawing(Figure):
    """A figure of an SVG of matplotlib, in the folder ``docs``, for both modes."""

    def run(self):
        """Give the figure, with an image for each mode."""
        source = DOCS / self.arguments[0]
        self.state.document.settings.record_dependencies.add(str(source))
        paths = both(source.read_text(), FOLDER / source.name)
        (shown,) = super().run()
        if isinstance(shown, nodes.figure):
            uris = {mode: f"/_pictures/{path.name}" for mode, path in paths.items()}
            shown[:1] = images(shown[0], uris)
        return [shown]


def scrape(block, block_vars, gallery_conf):
    """Save the figures of a tutorial for both modes, and show them."""
    lines = []
    for number, path in zip(plt.get_fignums(), block_vars["image_path_iterator"]):
        light = Path(path).with_suffix(".svg")
        paths = save(plt.figure(number), light)
        # The gallery looks for the name that it gave, and shrinks what it finds there.
        light.write_text(paths["light"].read_text())
        for mode, shown in paths.items():
            lines += [
                f".. image:: /{shown.relative_to(DOCS).as_posix()}",
                f"   :class: only-{mode} chart",
                "   :alt: The figure that the code above draws",
                "",
            ]
    plt.close("all")
    return "\n".join(lines)


def setup(app):
    """Register the directive."""
    app.add_directive("drawing", Drawing)
    return {"parallel_read_safe": True}
