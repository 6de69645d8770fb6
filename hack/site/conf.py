"""The site of `make docs`: the pages as they are in the tree, whose root is Sphinx's source directory.

A file that a page links to is part of the site. The site opens without a server and asks nobody for anything.
"""

import re

from docutils import nodes
from sphinx.transforms import SphinxTransform

project = "oooi"
html_title = "oooi"
extensions = ["myst_parser", "sphinx_external_toc"]
external_toc_path = "hack/site/toc.yml"
include_patterns = ["README.md", "CONTRIBUTING.md", "docs/**.md", "test/lab/README.md"]
html_theme = "furo"
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False
highlight_language = "text"
myst_heading_anchors = 4  # as GitHub makes them
suppress_warnings = ["misc.highlighting_failure"]  # of Corefiles, which Pygments does not know


class RowsHaveAnchors(SphinxTransform):
    """Lets links lead to `<a id="name"></a>`, which a heading's row of a table has on GitHub too."""

    default_priority = 870  # before myst_parser.mdit_to_docutils.transforms.ResolveAnchorIds

    def apply(self, **kwargs):
        slugs = dict(getattr(self.document, "myst_slugs", {}))
        for raw in self.document.findall(nodes.raw):
            for name in re.findall(r'<a id="([\w-]+)">', raw.astext()):
                slugs[name] = (raw.line, name, name)
        self.document.myst_slugs = slugs
        self.env.metadata[self.env.docname]["myst_slugs"] = slugs


def setup(app):
    app.add_transform(RowsHaveAnchors)
