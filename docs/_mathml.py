"""Formulas as MathML, which browsers draw by themselves: no script, no network.

docutils translates them from LaTeX. What it does not know fails the build.
"""

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)


BAR = '<mo stretchy="false">|</mo>'


def _translated(node, *, block):
    source = re.sub(r"\\dots\b", r"\\ldots", node.astext())
    try:
        # As in |V|, not as a relation, around which browsers leave room.
        return tex2mathml(source, as_block=block).replace(
            BAR, BAR.replace(">", ' lspace="0em" rspace="0em">', 1)
        )
    except MathError as error:
        logger.warning("no MathML for %r: %s", node.astext(), error, location=node)
        return node.astext()


def inline(writer, node):
    """Draw a formula within a line."""
    writer.body.append(_translated(node, block=False))
    raise nodes.SkipNode


def block(writer, node):
    """Draw a formula of its own."""
    writer.body.append(f'<div class="math">{_translated(node, block=True)}</div>')
    raise nodes.SkipNode


def setup(app):
    """Register the renderer that conf.py chooses."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True}
