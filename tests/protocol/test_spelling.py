"""The protocol has one home: nothing else in the package spells it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "ldpstream"
HOME = SOURCE / "protocol"
SPELLED = re.compile(
    r"/v1/|(?<!#)/streams(/\{|\")|ldp-device|ldp-mac|ldpstream/[12{]"
    r"|ldpstream (report|rounds|device key|slot|moment|enrol|number|leave|terms|renew|group|coin)"
    r" [\d{]"
    r"|\bt\}-|partition\(\"-\"|split\(\"[-/]\"\)\[|endswith\(\"/",
    re.I,
)
OTHERS = [path for path in sorted(SOURCE.rglob("*.py")) if HOME not in path.parents]


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: str(path.relative_to(SOURCE)))
def test_paths_headers_topics_and_labels_are_spelled_in_one_place(path: Path) -> None:
    assert [found[0] for found in SPELLED.finditer(path.read_text())] == []


@pytest.mark.parametrize(
    "leak",
    [
        'f"{now.t}-{purpose}"',
        'int(name.partition("-")[0])',
        'name.split("-")[0]',
        'topic.split("/")[-2]',
        'topic.endswith("/notice")',
        'f"ldpstream/{VERSION}/{stream}"',
        'get("/streams")',
        'get("/streams/{stream}/texts")',
        'b"ldpstream group 2\\n"',
        'f"ldpstream terms {VERSION}\\n"',
    ],
)
def test_a_leak_is_found(leak: str) -> None:
    assert SPELLED.search(leak)


def test_the_home_spells_them() -> None:
    text = "".join(path.read_text() for path in HOME.glob("*.py"))
    assert {found.group(0).lower() for found in SPELLED.finditer(text)} >= {
        "ldp-device",
        "ldp-mac",
        "ldpstream device key 1",
        "ldpstream slot 2",
    }
