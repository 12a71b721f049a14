"""When the collector was up, and what it had released by then."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.fleet.evidence.books import ReleaseRow


@dataclass(frozen=True)
class Life:
    """One process of the collector: from when it listened to when it was killed or told to stop."""

    ready_ms: int
    ended_ms: int
    killed: bool
    released: dict[int, ReleaseRow]
    """What the store held shortly before the end."""


def write_diary(path: Path, lives: Iterable[Life]) -> None:
    path.write_text("".join(json.dumps(asdict(life)) + "\n" for life in lives))


def read_diary(path: Path) -> list[Life]:
    lives = []
    for line in path.read_text().splitlines():
        told = json.loads(line)
        released = {int(t): tuple(row) for t, row in told.pop("released").items()}
        lives.append(Life(**told, released=released))
    return lives
