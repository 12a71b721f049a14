"""Drives a coordinator whose devices answer under two versions, and kills itself around a tally.

    python -m tests.collector.killed_while_counting FOLDER NUMBER before|after

With the number of a tally that never comes it lives to the end. What it released is printed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from ldpstream.collector.clock import ManualClock
from ldpstream.collector.store.sqlite.store import SqliteStore
from tests.collector.driving import DyingStore
from tests.collector.helpers import SECRETS, START_MS
from tests.collector.strata import StrataWorld
from tests.collector.test_succession import RENAMED, Twofold

LAST_T = 10


class KilledStore(DyingStore):
    """A store whose process is killed, by a signal that cannot be caught, at one of its tallies."""

    CHANGES = ("tally",)

    def __init__(self, store: Any, clock: ManualClock, file: Path, at: int, when: str) -> None:
        super().__init__(store, None, after=False)
        self._clock, self._file, self._at, self._when = clock, file, at, when

    def _counted(self, method: Any) -> Any:
        def call(*arguments: Any) -> None:
            self._file.write_text(str(self._clock.now_ms()))
            dying, self.changes = self.changes == self._at, self.changes + 1
            for when in ("before", "after"):
                if when == "after":
                    method(*arguments)
                if dying and when == self._when:
                    os.kill(os.getpid(), signal.SIGKILL)

        return call


def main() -> None:
    folder, at, when = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    file = folder / "now"
    clock = ManualClock(int(file.read_text()) if file.exists() else START_MS)
    world = StrataWorld(folder, Twofold(80), {"mechanism": "lpu"}, clock)
    with closing(SqliteStore(folder / "c.sqlite", SECRETS.master)) as store:
        dying = KilledStore(store, clock, file, at, when)
        if not file.exists():
            world.live(dying, 1)
        world.live(dying, LAST_T, **RENAMED)
        print(json.dumps([(one.t, one.received) for one in store.releases("a", 0, 100)]))


if __name__ == "__main__":
    main()
