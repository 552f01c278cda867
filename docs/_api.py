"""What the API pages list: every public name, by its home, from ``__all__``."""

from importlib import import_module
from pathlib import Path

import nplm

# The headings of nplm's own page, in their order, and the folder or file that a name
# comes from. Another name is headed by its module.
FAMILIES = {
    "text.lm": "Text in, text out",
    "text.tasks": "Classes and outliers of documents",
    "text": "Words, ids and windows",
    "text.decoding": "Decoders and n-best lists",
    "models.neural": "Neural models",
    "models.neural.options": "Options of the neural models",
    "models.ngrams": "n-gram models",
    "models.classes": "Word classes",
    "models.mixtures": "Mixtures",
    "models.adaptation": "Adaptation to the text that is read",
    "formats": "Saving and loading models",
    "base.estimators": "Searches by perplexity",
    "models.neural.tiers": "Kernels",
    "models.versions": "Bug reports",
    "base.exceptions": "Errors",
}
# The headings of the other modules, in the list of all names.
TASKS = {
    "nplm.datasets": "Corpora",
    "nplm.formats": "Files of other tools, and texts beyond memory",
    "nplm.inspection": "Looking at a model",
    "nplm.kenlm": "The interface of KenLM's module",
    "nplm.mpi": "Training on a cluster",
    "nplm.experiments": "The paper's experiments",
}


def modules():
    """Give the public modules: those that the API's first page names."""
    page = Path(__file__).parent / "api" / "index.rst"
    lines = (line.strip() for line in page.read_text().splitlines())
    return [line for line in lines if line.split(".")[0] == "nplm" and " " not in line]


def groups(module):
    """Give headings and their names, for the page of a module.

    A name that ``from nplm import`` gives has its page there, and no other.
    """
    names = import_module(module).__all__
    if module != "nplm":
        own = [name for name in names if name not in nplm.__all__]
        return [("", own)] if own else []
    found = {family: [] for family in FAMILIES}
    for name in names:
        home = getattr(nplm, name).__module__.removeprefix("nplm.")
        above = [f for f in FAMILIES if f"{home}.".startswith(f"{f}.")]
        family = max(above, key=len, default=home)
        found.setdefault(family, []).append(name)
    return [(FAMILIES.get(f, f), names) for f, names in found.items() if names]


def by_task():
    """Give headings, modules and names of every class and function, each name once."""
    return [
        (
            title or TASKS.get(module, module),
            module,
            [name for name in names if callable(getattr(import_module(module), name))],
        )
        for module in modules()
        for title, names in groups(module)
    ]
