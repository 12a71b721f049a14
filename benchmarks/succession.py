"""Change the labels of a live stream twice under a running fleet, and check every ledger after it.

    .venv/bin/python benchmarks/succession.py [--devices N] [--interval S]

The scene is that of tests/verify/test_live_succession.py, with as many devices as are asked for:
a real `ldpstream serve`, and real devices, a third of them at a level of their own. Prints a JSON
object. Exit status 1 if a release is missing or a ledger shows more than was promised.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from ldpstream.device.checking import check_ledger

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.serving import ENROLMENT, CollectorProcess
from tests.verify.test_live_succession import (
    CHANGES,
    FIRST,
    Scene,
    await_release,
    get,
    running_fleet,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=2000)
    parser.add_argument("--interval", type=int, default=10)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        told = run(Path(folder), Scene(given.devices, given.interval))
    print(json.dumps(vars(given) | told))
    sys.exit(bool(told["missing"] or told["faulty_ledgers"]))


def run(folder: Path, scene: Scene) -> dict[str, object]:
    """Let labels change twice; return what was released and what the ledgers say."""
    start, ledgers = datetime.now(UTC), folder / "ledgers"
    ledgers.mkdir()
    with CollectorProcess.of(folder, scene.configuration(start, FIRST, ""), ENROLMENT) as collector:
        with running_fleet(collector.url, ledgers, scene.devices) as fleet:
            await_release(collector.url, get(collector.url, "/status")["last_release"] + 4)
            for version, (labels, section) in enumerate(CHANGES, 2):
                scene.change(collector, start, labels, section)
                until = get(collector.url, "")["versions"][-2]["until_t"]
                await_release(collector.url, until + 2)
                fleet.await_version(version)
        released = get(collector.url, "/releases?since=0&format=json")["releases"]
    times = [one["t"] for one in released]
    faulty = sum(bool(check_ledger(file).faults) for file in ledgers.iterdir())
    place = [one["values"][-1] for one in released if one.get("terms_version") == 3]
    return {
        "releases": len(released),
        "missing": times[-1] - times[0] + 1 - len(times),
        "missed": sum(one["missed"] for one in released),
        "received": [one["received"] for one in released],
        "versions": [one.get("terms_version", 1) for one in released],
        "heard_last": released[-1]["devices"]["heard"],
        "x_at_the_end": place[-1],
        "faulty_ledgers": faulty,
    }


if __name__ == "__main__":
    main()
