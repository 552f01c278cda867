"""What the API pages list: every public name, by its home, from ``__all__``."""

from importlib import import_module
from pathlib import Path

import nplm

# The headings of nplm's own page, in their order: the folder or file that a name
# comes from. Another is headed by the name of its module.
FAMILIES = {
    "models.neural": "The neural models",
    "models.neural.options": "Options of the neural models",
    "models.ngrams": "n-gram models",
    "models.classes": "Word classes",
    "models.mixtures": "Mixtures",
    "models.adaptation": "Adaptation",
    "text": "Text and windows",
    "formats": "Files",
    "base.estimators": "Scoring",
    "base.exceptions": "Errors",
    "models.versions": "The installation",
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
