"""How Sphinx builds the site; `make docs` (tools/docs.py) writes the generated pages first."""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

from ldpstream import __version__

project = "ldpstream"
author = "the authors of ldpstream"
release = version = __version__
html_title = f"ldpstream {__version__}"
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["leaderboard/*.html", "reproduction/*.html"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
# Excerpts that have "..." in them are no whole programs.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_show_sphinx = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

default_role = "literal"  # docstrings write `names` as Markdown does
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False

ROOT = Path(__file__).parents[1]
PAGES = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/README.md": "examples.md",
}
"""Files outside docs/ that are pages of the site, each by a page of docs/ that includes it."""

_OUTWARD = re.compile(r"\[([^\]]+)\]\(\.\./([^)#]+?)/?(#[^)]*)?\)")


def adapt_links(app: Sphinx, name: str, source: list[str]) -> None:
    """Let links that leave docs/ lead to the page of the same text, or name a folder in words.

    Files stay links: the site has a copy of each to download.
    """

    def adapt(link: re.Match[str]) -> str:
        words, target, anchor = link.group(1, 2, 3)
        if target in PAGES:
            return f"[{words}]({PAGES[target]}{anchor or ''})"
        return words if (ROOT / target).is_dir() else link.group()

    source[0] = _OUTWARD.sub(adapt, source[0])


def setup(app: Sphinx) -> None:
    """Connect what this project adds to a build."""
    app.connect("source-read", adapt_links)
