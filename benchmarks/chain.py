"""How long a collector takes to check its releases at the start, and to chain an older store.

    python benchmarks/chain.py [--releases 1000000] [--labels 10] [--store postgresql://...]

Without --store it uses a SQLite file in a temporary folder. It prints
wall-clock seconds and those of the CPU.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from ldpstream.collector.service.opening import open_place
from ldpstream.collector.store.contract import StoredRelease

MASTER = b"master secret of the benchmark"
AT_ONCE = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=1_000_000)
    parser.add_argument("--labels", type=int, default=10)
    parser.add_argument("--store", default="")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = given.store or str(Path(folder) / "c.sqlite")
        with closing(open_place(place, MASTER)) as store:
            store.create_stream("a", {})
            lease = store.lease("a", "me", 3600)
            assert lease is not None
            held = store.under(lease)
            rng = random.Random(1)
            for first in range(1, given.releases + 1, AT_ONCE):
                last = min(first + AT_ONCE, given.releases + 1)
                page = [_release(t, given.labels, rng) for t in range(first, last)]
                held.release("a", page, {}, 0)
        began = time.perf_counter()
        with closing(open_place(place, MASTER)) as store:
            print(f"open: {time.perf_counter() - began:.1f} s")
            _timed("check", given.releases, lambda: store.check_releases("a").refuse_damage())
            _timed("chain anew", given.releases, lambda: store.accept_releases("a"))


def _release(t: int, labels: int, rng: random.Random) -> StoredRelease:
    names = ("values", "variance", "low", "high")
    content = {name: [rng.random() for _ in range(labels)] for name in names}
    return StoredRelease(t, 1000 * t, {"t": t, **content, "fresh": True}, 10, 9, missed=False)


def _timed(what: str, releases: int, work: Callable[[], None]) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{what}: {releases:,} releases in {wall:.1f} s ({cpu:.1f} s of this process's CPU)")


if __name__ == "__main__":
    main()
