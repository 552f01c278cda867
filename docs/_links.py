"""Internal links: those from sources are mended, and one that leads nowhere is told."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.util import logging

logger = logging.getLogger(__name__)


class Page(HTMLParser):
    """The links of a page, and the names of its places."""

    def __init__(self, path):
        """Read a page."""
        super().__init__()
        self.links, self.places = set(), set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        """Keep the links and the names of an element."""
        found = dict(attrs)
        self.places.add(found.get("id"))
        self.links |= {found[name] for name in ("href", "src") if found.get(name)}


def dead(folder):
    """Yield the page and the address of each internal link that leads nowhere."""
    # What the theme has in _static are no pages.
    paths = [p for p in folder.rglob("*.html") if "_static" not in p.parts]
    pages = {path: Page(path) for path in paths}
    for path, page in pages.items():
        for link in sorted(page.links):
            url = urlsplit(link)
            if url.scheme or url.netloc:
                continue
            to = (path.parent / unquote(url.path)).resolve() if url.path else path
            there = not url.fragment or to not in pages
            if not to.exists() or not (
                there or unquote(url.fragment) in pages[to].places
            ):
                yield path.relative_to(folder), link


def link_to_public_names(app, pagename, templatename, context, doctree):
    """Mend the links from sources to the documentation.

    viewcode has the module of the first name that a file documents for all of its
    names. The page of a name is called by the right one.
    """
    if pagename.startswith("_modules/nplm/"):
        context["body"] = re.sub(
            r"(generated/([\w.]+\.(\w+))\.html#)[\w.]*?\b\3\b", r"\1\2", context["body"]
        )


def check(app, exception):
    """Warn of each dead link, once the pages are written."""
    if exception is None and app.builder.format == "html":
        for page, link in dead(Path(app.outdir).resolve()):
            logger.warning("%s: a link leads nowhere: %s", page, link)


def setup(app):
    """Connect the hooks."""
    app.connect("html-page-context", link_to_public_names)
    app.connect("build-finished", check)
    return {"parallel_read_safe": True}
