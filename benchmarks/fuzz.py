"""Fuzz every decoder of untrusted bytes, and the HTTP API, for a given time.

    .venv/bin/python benchmarks/fuzz.py [--seconds S] [--json] [--write]

Runs the targets of tests/hostile/fuzz.py in turns, then the operations of a real collector from its
OpenAPI description (tests/hostile/http_fuzz.py). Exit status 1 if anything was found.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from sections import TRUST, table, write_section

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.hostile import fuzz, http_fuzz

COMMAND = ".venv/bin/python benchmarks/fuzz.py --seconds {seconds} --write"
INPUTS = 500
"""Inputs to a target before the next one has its turn."""
CALLS = 50
"""Calls of an operation of the API before the next one has its turn."""
HTTP = "HTTP API"


@dataclass
class Tried:
    """The inputs that one target was given, and what they found."""

    target: str
    inputs: int = 0
    seconds: float = 0.0
    findings: int = 0
    first_finding: str = ""

    def found(self, what: str) -> None:
        self.findings += 1
        self.first_finding = self.first_finding or what[:400]


def feed(tried: Tried, turn: int) -> None:
    """Run one turn of a target."""
    target = fuzz.TARGETS[tried.target]

    @seed(turn)
    @settings(
        max_examples=INPUTS,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(st.data())
    def check(data: st.DataObject) -> None:
        tried.inputs += 1
        target(data)

    began = time.perf_counter()
    try:
        check()
    except Exception as finding:  # whatever it is, it should not have happened
        tried.found(repr(finding))
    tried.seconds += time.perf_counter() - began


def call(seconds: float) -> tuple[Tried, int]:
    """Call the API without and with each token; also return how many bytes the collector grew."""
    tried, end = Tried(HTTP), time.perf_counter() + seconds
    with (
        tempfile.TemporaryDirectory() as folder,
        http_fuzz.collector(Path(folder)) as at,
    ):
        http_fuzz.fuzz(at, 10, None)
        before = http_fuzz.resident_bytes(at)
        while time.perf_counter() < end:
            for token in (None, *http_fuzz.TOKENS.values()):
                began = time.perf_counter()
                findings = http_fuzz.fuzz(at, CALLS, token)
                tried.inputs += findings.calls
                tried.seconds += time.perf_counter() - began
                for wrong in findings.wrong:
                    tried.found(wrong)
        return tried, http_fuzz.resident_bytes(at) - before


def page(found: list[Tried], growth: int, seconds: int) -> str:
    hours = sum(one.seconds for one in found) / 3600
    rows = [[one.target, f"{one.inputs:,}", f"{one.seconds:.0f}", one.findings] for one in found]
    total = sum(one.inputs for one in found)
    return (
        f"Made by `{COMMAND.format(seconds=seconds)}`: {hours:.2f} hours, {total:,} inputs,"
        f" {sum(one.findings for one in found)} findings. The collector's memory grew by"
        f" {growth / 2**20:.1f} MiB over the calls of its API.\n\n"
        + table(["target", "inputs", "seconds", "findings"], rows)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="a fifth of it for the HTTP API")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="put the table into docs/trust.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of the fuzzing library, about itself
    tried = [Tried(name) for name in fuzz.TARGETS]
    end, turn = time.perf_counter() + 0.8 * options.seconds, 0
    with tempfile.TemporaryDirectory() as home:
        os.environ["LDPSTREAM_HOME"] = home
        while time.perf_counter() < end:
            feed(tried[turn % len(tried)], turn)
            turn += 1
    called, growth = call(0.2 * options.seconds)
    tried.append(called)
    print(
        json.dumps({"targets": [asdict(one) for one in tried], "growth_bytes": growth}, indent=1)
        if options.json
        else page(tried, growth, options.seconds)
    )
    if options.write:
        write_section(TRUST, "hostile-fuzz", page(tried, growth, options.seconds))
    if any(one.findings for one in tried):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
