"""Run hostile streams against one wallet, and judge by what left the device, in true time.

    .venv/bin/python benchmarks/wallet.py [--operations N] [--streams N] [--seed S] [--json]

The world is that of tests/hostile/wallet_world.py. Exit status 1 if a promise was broken: the
limit over all streams, or that of any one of them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.hostile.wallet_world import HostileWallet

from ldpstream.device.checking import check_ledger
from ldpstream.fleet.folders import memory_folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=100_000)
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        world = HostileWallet(Path(folder), options.streams, options.seed)
        world.live(options.operations)
        audit = check_ledger(world.life.path).faults
    found = {
        "streams": options.streams,
        "operations": world.operations,
        "reports": len(world.life.transcript.sent),
        "violations": world.violations,
        "faults_of_the_ledger": list(audit),
        "seconds": round(time.perf_counter() - began, 1),
    }
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        print("\n".join(f"{name}: {value}" for name, value in found.items()))
    if world.violations or audit:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
