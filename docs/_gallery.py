"""The order of the tutorials: from a first model to the ends of the paper."""

ORDER = [
    "first_model",
    "story",
    "paper",
    "features",
    "generation",
    "mixtures",
    "grid_search",
    "subwords",
    "filtering",
    "crawl",
    "languages",
    "events",
    "event_logs",
    "rescoring",
    "new_words",
    "parallel",
]


class Place:
    """The key by which sphinx-gallery sorts."""

    def __init__(self, source_dir):
        """Take the folder, which is the same for all."""

    def __call__(self, filename):
        """Give a tutorial's place."""
        return ORDER.index(filename.removeprefix("plot_").removesuffix(".py"))
