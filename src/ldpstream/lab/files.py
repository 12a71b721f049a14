"""Atomic writes: a file is either complete or absent."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from ldpstream import whole_files

FOR_EVERYONE = 0o644


def write_whole(path: Path, content: str | bytes) -> Path:
    """Write a file that everyone may read, atomically, and make its folder if there is none.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_whole(folder / "new" / "a.csv", "x").read_text()
    'x'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    whole_files.write_whole(path, data, FOR_EVERYONE)
    return path


def write_section(path: Path, name: str, text: str) -> Path:
    r"""Put `text` between the markers of one section of a page; the rest stays as it is.

    >>> import tempfile
    >>> page = Path(tempfile.mkdtemp()) / "page.md"
    >>> _ = page.write_text("a <!-- x: begin -->old<!-- x: end --> b")
    >>> write_section(page, "x", "new").read_text()
    'a <!-- x: begin -->\nnew\n<!-- x: end --> b'
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    page = path.read_text()
    before, opening, rest = page.partition(begin)
    _, closing, after = rest.partition(end)
    if not opening or not closing:
        raise ValueError(f"{path} has no section between {begin} and {end}")
    return write_whole(path, f"{before}{begin}\n{text}\n{end}{after}")


def csv_text(columns: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    r"""Return a CSV whose numbers read back exactly.

    >>> csv_text(("x", "y"), [(0.1, None)])
    'x,y\n0.1,\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()
