"""The directive ``every-name``: all public names by task, each with its first line."""

import _api
from sphinx.util.docutils import SphinxDirective


class EveryName(SphinxDirective):
    """Make a section of each task, with a table of its names."""

    def run(self):
        """Give the sections."""
        lines = []
        for title, module, names in _api.by_task():
            lines += [title, "-" * len(title), "", f".. currentmodule:: {module}", ""]
            lines += [".. autosummary::", "", *(f"   {name}" for name in names), ""]
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def setup(app):
    """Register the directive."""
    app.add_directive("every-name", EveryName)
    return {"parallel_read_safe": True}
