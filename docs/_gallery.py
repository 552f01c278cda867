"""The order of the tutorials: the guide's groups, and the first to read first."""

from pathlib import Path

ORDER = {
    "start": "first_model story generation subwords",
    "tasks": "filtering crawl languages events event_logs rescoring",
    "models": "paper features mixtures new_words",
    "training": "grid_search parallel",
}
FOLDERS = [f"tutorials/{folder}" for folder in ORDER]


class Place:
    """The key by which sphinx-gallery sorts the files of a folder."""

    def __init__(self, source_dir):
        """Take the folder."""
        self.names = ORDER.get(Path(source_dir).name, "").split()

    def __call__(self, filename):
        """Give a tutorial's place."""
        return self.names.index(filename.removeprefix("plot_").removesuffix(".py"))
