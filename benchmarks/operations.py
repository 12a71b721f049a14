"""Operate a live collector under a running fleet, and account for every report.

    .venv/bin/python benchmarks/operations.py [--devices N] [--interval S]

A real `ldpstream serve` and real devices. While they run: the population is changed by a reload, a
stream is created by being written, enrolment tokens are revoked, the first stream is paused and
resumed, and the second one retired. Prints a JSON object. Exit status 1 if a report of a device did
not arrive outside the pause, was not counted, or a ledger shows more than epsilon.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ldpstream.device.checking import check_ledger
from ldpstream.fleet.folders import memory_folder

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.collector.operating import Admin, DeviceFleet
from tests.serving import ENROLMENT, HEAD, TOKEN, CollectorProcess, stream_table
from tests.waiting import eventually

WINDOW = 3
SECOND = 10
"""The second stream has one device for so many of the first."""
HALTED = ("stream-paused", "stream-retired")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=2000)
    parser.add_argument("--interval", type=int, default=10)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        told = run(Path(folder), given.devices, given.interval)
    print(json.dumps(vars(given) | told))
    sys.exit(bool(told["lost"] or told["uncounted"] or told["faulty_ledgers"]))


def table(name: str, start: datetime, interval: int, **more: object) -> str:
    usual = {"selection": '"slots"', "mechanism": '"lpf"', "window": WINDOW, "public": "true"}
    usual |= {"labels": '["x", "y", "z"]', "interval": f'"{interval}s"', "oracle": '"auto"'}
    return stream_table(name, start, **usual | {"population": '"auto"'} | more) + "\n"


def run(folder: Path, devices: int, interval: int) -> dict[str, Any]:
    """Let the operator do everything once; return what became of the reports."""
    start, ledgers = datetime.now(UTC), folder / "ledgers"
    a, few = table("a", start, interval), max(1, devices // SECOND)
    with CollectorProcess.of(folder, HEAD + a, ENROLMENT) as collector:
        admin = Admin.of(folder, collector.url)

        def reload(text: str) -> list[str]:
            file = collector.file.read_text()
            head = file[: file.index("[[stream]]")]
            collector.file.write_text(head + text)
            told = admin.call("POST", "admin/reload")
            assert not told["refused"], told
            return list(told["changes"])

        first = DeviceFleet(collector.url, ledgers, "a", devices, TOKEN)
        with first.running():
            admin.await_more("a", 2 * WINDOW)
            followed = admin.call("GET", "streams/a")
            changes = reload(table("a", start, interval, population=2 * devices))
            admin.await_more("a", WINDOW)
            changes += reload(a + table("b", start, interval))
            token = admin.call("POST", "admin/tokens", {"name": "field", "stream": "b"})["token"]
            second = DeviceFleet(collector.url, ledgers, "b", few, token)
            with second.running():
                admin.call("DELETE", "admin/tokens/field")
                admin.await_more("b", WINDOW)
                admin.call("POST", "admin/streams/a/pause")
                eventually(lambda: admin.status("a")["rounds"] == [])
                paused_t = admin.await_more("b", 2 * WINDOW)
                paused = admin.status("a")["state"]
                admin.call("POST", "admin/streams/a/resume")
                admin.await_release("a", paused_t + 2 * WINDOW)
                changes += reload(a + table("b", start, interval, retired="true"))
                eventually(lambda: admin.status("b")["rounds"] == [])
                retired = admin.status("b")["state"]
                admin.await_more("a", WINDOW)
        released = {name: admin.releases(name) for name in ("a", "b")}
        state = admin.status("a")["state"]
        log = [one["action"] for one in admin.call("GET", "admin/log")["entries"]]
    undelivered = first.undelivered + second.undelivered
    times = [one["t"] for one in released["a"]]
    faults = Counter(fault for file in ledgers.iterdir() for fault in check_ledger(file).faults)
    return {
        "changes": changes,
        "log": log,
        "states": {"a while paused": paused, "b at the end": retired, "a at the end": state},
        "followed": {key: followed[key] for key in ("population", "population_interval")},
        "releases": len(times),
        "missing": times[-1] - times[0] + 1 - len(times),
        "missed_in_the_pause": sum(one["missed"] for one in released["a"]),
        "delivered": first.delivered + second.delivered,
        "refused_in_the_pause_or_after_the_end": sum(undelivered[code] for code in HALTED),
        "lost": {code: n for code, n in undelivered.items() if code not in HALTED},
        "uncounted": first.delivered
        + second.delivered
        - sum(one["received"] for each in released.values() for one in each),
        "ledgers": devices + few,
        "faulty_ledgers": sum(faults.values()),
    }


if __name__ == "__main__":
    main()
