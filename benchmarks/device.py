"""Measure how fast a device decides and reports, on one core, with its ledger in memory.

    .venv/bin/python benchmarks/device.py [--seconds S] [--json] [--write]

Declines: rounds for which the coin says no, decided without disk access. Reports: drawn,
committed with a full sync to a file in memory, and signed. GRR, four labels.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ldpstream.device.account import CommittedReport
from ldpstream.fleet.folders import memory_folder
from ldpstream.protocol.answers import Round
from sections import write_section

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.device.collectors import INTERVAL_MS, Bench, a_round, make_terms

COMMAND = ".venv/bin/python benchmarks/device.py --write"
PAGE = Path(__file__).parents[1] / "docs" / "device.md"


def rate(seconds: float, act: Callable[[], object]) -> float:
    """Return how often `act` can be done in a second of processor time."""
    end, began, times = time.monotonic() + seconds, time.process_time(), 0
    while time.monotonic() < end:
        act()
        times += 1
    return times / (time.process_time() - began)


def measure(seconds: float) -> dict[str, int]:
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        bench = Bench(Path(folder) / "device.ldp")
        bench.collector.terms = make_terms(window=1)
        session = bench.enrolled().session
        pin = bench.collector.terms.pin
        declined = Round.read(a_round(1, rate=[0, 1]))

        def report() -> None:
            bench.clock.pass_ms(INTERVAL_MS + 1)
            session.account.label.correct(bench.clock.wall)
            outcome = session.consider(pin, Round.read(a_round(bench.t)))
            assert isinstance(outcome, CommittedReport)

        return {
            "declines": round(rate(seconds, lambda: session.consider(pin, declined))),
            "reports": round(rate(seconds, report)),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each of the two")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/device.md")
    options = parser.parse_args()
    found = measure(options.seconds)
    text = (
        f"`{COMMAND}`, one core of a shared two-core machine, ledgers in memory, GRR: in a second"
        f" of processor time a device decides {found['declines']:,} times not to answer, and draws,"
        f" commits and signs {found['reports']:,} reports."
    )
    print(json.dumps(found) if options.json else text)
    if options.write:
        write_section(PAGE, "device-speed", text)


if __name__ == "__main__":
    main()
