"""The page of the test vectors of the protocol, from the file that both SDKs are tested with."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from reference.markdown import block

FILE = Path(__file__).parents[2] / "tests/page/vectors/vectors.json"
LONGEST = 1500
INTRODUCTION = """# Test vectors

To write a device in another language.
[vectors.json](../../tests/page/vectors/vectors.json) is made by the Python device (`python -m
tests.page.vectors.make`), and the JavaScript one is tested with all of it. This page shows the
first of each kind; [the protocol](../protocol.md) says what the members mean.

Random choices are scripted: the n-th question (from 0) is answered from u = SHA-256("*seed*
*n*"), read as a number, most significant byte first. `below(bound)` is u mod bound; `coin(favour,
total)` is whether u mod total < favour.

"""


def page() -> str:
    """Return the page."""
    kinds: dict[str, Any] = json.loads(FILE.read_text())
    return INTRODUCTION + "\n".join(_section(name, kind) for name, kind in kinds.items())


def _section(name: str, kind: Any) -> str:
    first = kind[0] if isinstance(kind, list) else dict([next(iter(kind.items()))])
    text = json.dumps(first, indent=1, ensure_ascii=False)
    text = re.sub("[\ud800-\udfff]", lambda lone: f"\\u{ord(lone[0]):04x}", text)  # no UTF-8
    if len(text) > LONGEST:
        text = text[:LONGEST].rpartition("\n")[0] + "\n..."
    return f"## `{name}`\n\n{len(kind)} of them.\n\n" + block("text", text)
