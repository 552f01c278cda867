"""The directive ``chart``: a table, and the same drawn above it.

The numbers are read from the table, so that a figure stands in one place.
"""

import re

import _drawing
import numpy as np
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

FIRST_NUMBER = r"([\d,.]*\d)"


class Chart(SphinxDirective):
    """Draw the table inside: a bar a row, or with ``line`` a line a column."""

    has_content = True
    option_spec = {  # noqa: RUF012 (docutils has it so)
        "name": directives.unchanged_required,  # of the file
        "label": directives.unchanged_required,  # of the numbers
        "columns": directives.unchanged_required,  # to draw, from 1; by default all
        "number": directives.unchanged_required,  # which number of a cell
        "line": directives.flag,
        "log": directives.flag,
    }

    def run(self):
        """Give the table and the pictures."""
        inside = self.parse_content_to_nodes()
        [table] = [node for node in inside if isinstance(node, nodes.table)]
        head, *rows = [
            [entry.astext() for entry in row.findall(nodes.entry)]
            for row in table.findall(nodes.row)
        ]
        columns = [int(c) for c in self.options.get("columns", "").split()]
        columns = columns or range(1, len(head))
        number = self.options.get("number", FIRST_NUMBER)
        values = np.array([[_number(row[c], number) for c in columns] for row in rows])
        names = [head[c] for c in columns]
        draw = self._lines if "line" in self.options else self._bars
        draw(head[0], [row[0] for row in rows], names, values)
        uris = {
            mode: f"/_pictures/{self.options['name']}-{mode}.svg"
            for mode in _drawing.INK
        }
        image = nodes.image(alt=f"{self.options['label']}, as in the table")
        # What Sphinx does of the images of a page it does after this.
        return [*_drawing.images(image, uris), *inside]

    def _bars(self, _, rows, names, values):
        height = 0.9 + 0.22 * values.size + 0.1 * len(rows)
        name = self.options["name"]
        with _drawing.figure(name, figsize=(7, height)) as (_, ax):
            thick = 0.8 / len(names)
            for i, (column, label) in enumerate(zip(values.T, names)):
                at = np.arange(len(rows)) + (i - (len(names) - 1) / 2) * thick
                bars = ax.barh(at, column, thick, label=label)
                shown = ["" if np.isnan(v) else f"{v:g}" for v in column]
                ax.bar_label(bars, shown, padding=3, size="small")
            ax.set_yticks(range(len(rows)), rows)
            ax.invert_yaxis()
            self._finish(ax, ax.xaxis, names)

    def _lines(self, head, rows, names, values):
        at = [_number(row, FIRST_NUMBER) for row in rows]
        with _drawing.figure(self.options["name"], figsize=(7, 3.2)) as (_, ax):
            for column, label in zip(values.T, names):
                ax.plot(at, column, marker="o", label=label)
            ax.set_xscale("log")
            ax.set_xlabel(head)
            self._finish(ax, ax.yaxis, names)

    def _finish(self, ax, axis, names):
        axis.set_label_text(self.options["label"])
        if "log" in self.options:
            axis.axes.set_xscale("log") if axis is ax.xaxis else ax.set_yscale("log")
        if len(names) > 1:
            ax.legend(
                frameon=False,
                loc="lower center",
                bbox_to_anchor=(0.5, 1),
                ncols=len(names),
            )
        ax.spines[["top", "right"]].set_visible(False)


def _number(cell, pattern):
    found = re.search(pattern, cell)
    return float(found[1].replace(",", "")) if found else np.nan


def setup(app):
    """Register the directive."""
    app.add_directive("chart", Chart)
    return {"parallel_read_safe": True}
