"""The page of the JavaScript API, from the declarations of the npm package."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from reference.markdown import block

PACKAGE = Path(__file__).parents[2] / "src/ldpstream/collector/page/sdk"
DECLARATIONS = (PACKAGE / "index.d.ts", PACKAGE / "node.d.ts")
INTRODUCTION = """# JavaScript API

The npm package `ldpstream`: a device for pages, workers, extensions and Node.
[The device](../device.md#javascript) says how it is used; this page is made of its declarations, by
which TypeScript checks programs that use it.

"""
_DECLARATION = re.compile(
    r"(?:^/\*\*(?P<about>(?:(?!\*/).)*)\*/\n)?"
    r"^(?P<code>(?:export )?"
    r"(?:type (?P<alias>\w+)[^;]*;|(?:interface|class) (?P<name>\w+)[^{]*\{(?:\}|.*?^\})))",
    re.DOTALL | re.MULTILINE,
)
_EXAMPLE = re.compile(r"@example\n(?P<code>.*)\Z", re.DOTALL)


def page() -> str:
    """Return the page."""
    text = "".join(file.read_text() for file in DECLARATIONS)
    return INTRODUCTION + "\n".join(_sections(text))


def _sections(text: str) -> Iterator[str]:
    for one in _DECLARATION.finditer(text):
        about = re.sub(r"^ ?\* ?", "", one["about"] or "", flags=re.MULTILINE)
        example = _EXAMPLE.search(about)
        prose = " ".join(_EXAMPLE.sub("", about).split())
        name = one["name"] or one["alias"]
        yield f"## `{name}`\n\n{prose}\n\n" + block("typescript", one["code"])
        if example:
            yield block("javascript", example["code"])
