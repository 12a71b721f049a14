"""The protocol has one home: nothing else in the package spells it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "ldpstream"
HOME = SOURCE / "protocol"
SPELLED = re.compile(
    r"/v1/|ldp-device|ldp-mac|ldpstream/[12]/"
    r"|ldpstream (report|rounds|device key|slot|moment|enrol|number|leave) \d",
    re.I,
)
OTHERS = [path for path in sorted(SOURCE.rglob("*.py")) if HOME not in path.parents]


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: str(path.relative_to(SOURCE)))
def test_paths_headers_topics_and_labels_are_spelled_in_one_place(path: Path) -> None:
    assert SPELLED.findall(path.read_text()) == []


def test_the_home_spells_them() -> None:
    text = "".join(path.read_text() for path in HOME.glob("*.py"))
    assert {found.group(0).lower() for found in SPELLED.finditer(text)} >= {
        "ldp-device",
        "ldp-mac",
        "ldpstream device key 1",
        "ldpstream slot 2",
    }
