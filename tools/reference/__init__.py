"""The pages of the site that are generated from the code: a module for each, and no other source.

Each module has a function `page`, which returns Markdown. They are written into docs/generated,
which is not committed, by `make docs` (tools/docs.py).
"""

from __future__ import annotations

from pathlib import Path

from reference import (
    command_line,
    configuration,
    error_catalogue,
    http_api,
    javascript_api,
    metrics,
    python_api,
    vectors,
)

PAGES = {
    "configuration": configuration.page,
    "command-line": command_line.page,
    "http-api": http_api.page,
    "python": python_api.page,
    "javascript": javascript_api.page,
    "vectors": vectors.page,
    "errors": error_catalogue.page,
    "metrics": metrics.page,
}


def write_pages(folder: Path) -> None:
    """Write all pages; those that are as they were are left alone, so that a build is quick."""
    folder.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        file, text = folder / f"{name}.md", page()
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
