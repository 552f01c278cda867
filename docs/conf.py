"""How Sphinx builds these pages: ``python -m sphinx -W -b html docs docs/_build/html``.

The tutorials run while the pages are built, on the corpus that needs no
download; a page that fails, or a link that leads nowhere, fails the build.
"""

import builtins
import io
import os
import re
import runpy
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from functools import cache
from inspect import isfunction, signature
from pathlib import Path
from pkgutil import resolve_name
from urllib.request import Request, urlopen

from sphinx.util import logging

# The sources beside these pages are documented, built in place or not: unbuilt
# ones say what to run.
sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]
import _api
import _drawing
import _gallery
import _network

import nplm
from nplm import datasets

logger = logging.getLogger(__name__)

project = "nplm"
author = "the nplm developers"
project_copyright = author
version = release = nplm.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "_charts",
    "_drawing",
    "_links",
    "_mathml",
    "_names",
]
templates_path = ["_templates"]
TIMES = "sg_execution_times.rst"  # of the gallery, which measure this machine
exclude_patterns = ["_build", "tutorials", TIMES, f"**/{TIMES}"]
nitpicky = True  # a name in a reference that leads nowhere fails the build
html_math_renderer = "mathml"
smartquotes = False  # "auto" in a docstring is typed as it is shown
default_role = "py:obj"  # `name` is a parameter, or a link

# -- API pages ----------------------------------------------------------------

autosummary_generate = True
autosummary_context = {  # for the template of a module
    "groups": {module: _api.groups(module) for module in _api.modules()}
}
numpydoc_show_class_members = False  # the class template lists them
autodoc_typehints = "none"  # the docstrings have the types


# What the classes of nplm ask each other for.
INTERNAL = {
    "can_be_saved", "check_continued", "checked", "checked_windows", "choose",
    "columns_of_texts", "estimate", "fit_pairs", "fit_source", "fit_texts",
    "fit_windows", "has_units_of", "hidden_layer", "known", "learned", "lightened",
    "log_prob_of_texts", "member_log_probs", "member_weights", "n_context_of_texts",
    "n_outcomes", "part", "plain_copy", "reads_texts", "settings", "smoothing",
    "state_of_text", "step_members", "step_states", "sums_over_words",
    "takes_fractions", "texts_to_fit", "window_scorer", "word_scorer", "words_mass",
}  # fmt: skip


def skip_member(app, what, name, obj, skip, options):
    """Leave out what is internal, and what scikit-learn adds for metadata routing."""
    is_hidden = name in INTERNAL or re.fullmatch(r"set_\w+_request", name)
    return True if is_hidden else None


def parameters(kind, name, obj):
    """Give the names of parameters that a docstring may speak of.

    Its own; in a class those of the methods, and in a method the class's too.
    """
    if kind == "class":
        ours = [base for base in obj.__mro__ if base.__module__.startswith("nplm")]
        found = [obj.__init__, *(f for base in ours for f in vars(base).values())]
    elif kind in ("method", "property"):
        found = [obj, resolve_name(name.rpartition(".")[0]).__init__]
    else:
        found = [obj]
    # A class method has its function inside.
    found = [getattr(function, "__func__", function) for function in found]
    written = [function for function in found if isfunction(function)]
    return {name for function in written for name in signature(function).parameters}


def mark_names(app, what, name, obj, options, lines):
    """Set apart what `name` in a docstring may be.

    A parameter is no link, and a class of nplm is one from every module. All else has
    to lead somewhere.
    """
    own = parameters(what, name, obj)

    def marked(match):
        if match[1] in own:
            return f"``{match[1]}``"
        return f":py:obj:`~nplm.{match[1]}`" if match[1] in nplm.__all__ else match[0]

    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[i] = re.sub(r"(?<![`:\w])`(\w+)`(?!`)", marked, line)


def head_groups(app, what, name, obj, options, lines):
    """Set the groups that a class has of its parameters before the first of each.

    Its docstring lists them: ``- **Size**: `order`, `n_words```. After numpydoc a
    parameter is ``**order** : int``.
    """
    firsts = {}
    for i, line in enumerate(lines):
        if group := re.match(r"- \*\*(.+)\*\*: ``?(\w+)``?", line):
            firsts[group[2]] = group[1]
        parameter = re.match(r"( +)\*\*(\w+)\*\* : ", line)
        if parameter and (title := firsts.pop(parameter[2], None)):
            indent = parameter[1]
            lines[i : i + 1] = [f"{indent}*{title}*", "", line]


def escape_underscores(app, what, name, obj, options, lines):
    """Show ``shape (n_samples, n_words_)`` as it stands: no link to "n_words"."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[i] = re.sub(
                r"(``.*?``|`.*?`|\*\*.*?\*\*)|\b(\w+)_(?=[,)\s]|$)",
                lambda match: match[1] or rf"{match[2]}\_",
                line,
            )


# -- Tutorials ----------------------------------------------------------------

# All that show the embedded corpus have the same one, which takes seconds to read.
datasets.load_python_docs = cache(datasets.load_python_docs)

sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "auto_tutorials",
    "filename_pattern": r"/plot_",
    "subsection_order": _gallery.FOLDERS,
    "within_subsection_order": "_gallery.Place",
    "backreferences_dir": "api/generated/backreferences",
    "doc_module": ("nplm",),
    "reference_url": {"nplm": None},
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": float("inf"),  # pages tell no time that they measured
    "image_scrapers": ("_drawing.scrape",),
    "reset_modules": ("matplotlib",),
    "plot_gallery": "True",
}

# -- Links to other manuals ---------------------------------------------------

SECONDS_TO_ANSWER = 5
MANUALS = {
    "python": "https://docs.python.org/3/",
    "numpy": "https://numpy.org/doc/stable/",
    "scipy": "https://docs.scipy.org/doc/scipy/",
    "sklearn": "https://scikit-learn.org/stable/",
    "joblib": "https://joblib.readthedocs.io/en/stable/",
}


def answers(url):
    """Whether the inventory of a manual can be had now."""
    request = Request(f"{url}objects.inv", headers={"User-Agent": "sphinx"})
    try:
        with urlopen(request, timeout=SECONDS_TO_ANSWER):
            return True
    except OSError:
        return False


with ThreadPoolExecutor() as pool:
    there = dict(zip(MANUALS, pool.map(answers, MANUALS.values()), strict=True))

# Sphinx warns of an inventory that it cannot fetch, and -W would then fail a
# build without a network: such a manual's names stay plain text instead.
intersphinx_mapping = {name: (MANUALS[name], None) for name in MANUALS if there[name]}
intersphinx_timeout = 3 * SECONDS_TO_ANSWER
# Nor does nitpicky then miss them.
packages = {name: [name] for name in MANUALS} | {
    "python": [*dir(builtins), *sys.stdlib_module_names]
}
nitpick_ignore_regex = [
    ("py:.*", rf"{package}(\..*)?")
    for name, found in there.items()
    for package in packages[name]
    if not found
]

# -- Appearance ---------------------------------------------------------------

# The repository whose workflow builds these pages; elsewhere nothing links one.
repository = os.environ.get("GITHUB_REPOSITORY")
if repository:
    repository = f"{os.environ['GITHUB_SERVER_URL']}/{repository}"

html_theme = "pydata_sphinx_theme"
html_title = f"nplm {release}"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["nplm.css"]
html_search_scorer = str(Path(__file__).with_name("_scorer.js"))
html_sidebars = {"index": []}  # it has no section
html_theme_options = {
    "show_prev_next": False,
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    **({"github_url": repository} if repository else {}),
}


def make_pictures(app):
    """Draw the network, and run the lines of the front page."""
    _network.draw()
    script, printed = Path(__file__).with_name("_front.py"), io.StringIO()
    with redirect_stdout(printed):
        runpy.run_path(str(script))
    (_drawing.FOLDER / "front.txt").write_text(printed.getvalue())


def without_dead_sources(app, env):
    """Leave compiled modules, which have no page, out of the index of sources."""
    for name in [n for n, entry in env._viewcode_modules.items() if not entry]:
        del env._viewcode_modules[name]


def setup(app):
    """Connect the hooks, and say which manuals are out of reach."""
    app.connect("builder-inited", make_pictures)
    app.connect("env-updated", without_dead_sources)
    app.connect("autodoc-skip-member", skip_member)
    # After numpydoc (500), which turns the sections into what is escaped here.
    app.connect("autodoc-process-docstring", head_groups, priority=540)
    app.connect("autodoc-process-docstring", mark_names, priority=550)
    app.connect("autodoc-process-docstring", escape_underscores, priority=600)
    absent = [name for name, found in there.items() if not found]
    if absent:
        logger.info("no links to the manuals of %s: no answer", ", ".join(absent))
