"""Build the documentation site into site/, and check every link of it that does not leave it.

    .venv/bin/python tools/docs.py [FOLDER]

Nothing is fetched, here or by who reads the site: search, fonts and scripts come with it.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from reference import write_pages
from sphinx.cmd.build import build_main

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
ATTRIBUTES = ("href", "src")


class Page(HTMLParser):
    """The links of a page, and the places that links may lead to."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.places: set[str] = {""}
        self.fetched: set[str] = set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what one element links to, and its own name."""
        for name, value in attrs:
            if name == "id" and value:
                self.places.add(value)
            elif name in ATTRIBUTES and value:
                self.links.add(value)
                if tag != "a":
                    self.fetched.add(value)


def broken_links(site: Path) -> list[str]:
    """Return a line for each link of the site that leads nowhere, or fetches from elsewhere."""
    pages = {file: Page(file) for file in sorted(site.rglob("*.html"))}
    broken = []
    for file, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.fetched and parts.scheme != "data":
                    broken.append(f"{file.relative_to(site)}: fetches {link}")
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if target.is_dir():
                target /= "index.html"
            found = pages.get(target)
            anchor = unquote(parts.fragment)
            if not target.is_file() or (found is not None and anchor not in found.places):
                broken.append(f"{file.relative_to(site)}: {link}")
    return broken


def main(site: Path) -> int:
    """Build, check, and return the exit status."""
    write_pages(DOCS / "generated")
    options = ["--fail-on-warning", "--quiet", "--doctree-dir", str(DOCS / "generated/.doctrees")]
    status = build_main([*options, "-b", "html", str(DOCS), str(site)])
    if status:
        return status
    broken = broken_links(site)
    for line in broken:
        print(f"docs: broken link in {line}")
    if not broken:
        print(f"docs: {sum(1 for _ in site.rglob('*.html'))} pages; open {site}/index.html")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site"))
