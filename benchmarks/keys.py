"""Time to check the MACs of a batch, before, during and after a rotation of the master secret.

    python benchmarks/keys.py [--records 10000] [--repeats 20]

Prints the median milliseconds for a batch whose devices all have a key of the current master secret
or all one of the earlier, and (in streams with slots, after a rotation) slot keys of a third one.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import numpy as np

from ldpstream.collector.credentials.device_keys import DeviceKeys, KeyedHashes, StreamKeys
from ldpstream.collector.credentials.masters import KeyRing, Masters

MASTERS = Masters(b"c" * 32, b"s" * 32, b"e" * 32, valid=True)
PREFIX = b"ldpstream report 2\nregions\n" + b"0" * 64 + b"\n7-publication\n\n\n\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=20)
    given = parser.parse_args()
    rng = np.random.default_rng(1)
    devices, reports = (rng.integers(0, 256, (given.records, n), np.uint8) for n in (16, 2))
    keys = StreamKeys(KeyRing(MASTERS), "regions")
    row: dict[str, object] = {"records": given.records, "repeats": given.repeats}
    for name, master in (("current", MASTERS.current), ("earlier", MASTERS.earlier)):
        assert master is not None
        macs = KeyedHashes(DeviceKeys(master, "regions").of_many(devices)).macs(PREFIX, reports)
        for slots in (False, True):
            spent = []
            for _ in range(given.repeats + 1):  # the first one compiles
                began = time.perf_counter()
                found = keys.signatures(devices, macs, reports, PREFIX, b"")
                if slots:
                    found.in_turn.are_due(20, 7)
                spent.append(time.perf_counter() - began)
                assert found.good.all()
            label = f"{name}, with slots" if slots else name
            row[f"{label} (ms)"] = round(1000 * statistics.median(spent[1:]), 2)
    print(json.dumps(row, indent=1))


if __name__ == "__main__":
    main()
