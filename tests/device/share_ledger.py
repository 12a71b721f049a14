"""Answers 100 rounds from a ledger that other processes answer from too; prints how many it did.

python -m tests.device.share_ledger FILE NAME
"""

from __future__ import annotations

import sys
from pathlib import Path

from ldpstream.device import ChangeTime
from tests.device.collectors import START_MS, Bench, a_round, make_terms


def main(path: Path, name: str) -> None:
    bench = Bench(path, witness=ChangeTime())
    bench.collector.terms = make_terms(window=100_000, interval_ms=1000)
    bench.clock.wall = START_MS
    device = bench.open()
    device.observe("south")
    far = START_MS + 10**6
    rounds = (a_round(1, f"{name}-{n}", epsilon_nano=1, deadline_ms=far) for n in range(100))
    print(sum(len(bench.ask(device, asked)) for asked in rounds))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
