"""Run both sides among hostile parties, and count operations, faults and violations.

    .venv/bin/python benchmarks/hostile.py [--operations N] [--seed S] [--json] [--write]

The state machines of tests/hostile run for longer and without shrinking of examples: a
collector among hostile devices, a device with a hostile collector, a bad disk and bad clocks, and
the device of a browser (tests/page/js/hostile.mjs, run by Node). Exit status 1 if a promise was
broken.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from sections import TRUST, table, write_section

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.hostile.counting import Fault, Ledger
from tests.hostile.test_bad_disks import BadDisk
from tests.hostile.test_hostile_devices import HostileDevices, settings_here

COMMAND = ".venv/bin/python benchmarks/hostile.py --operations 100000 --write"
IN_A_BROWSER = Path(__file__).parents[1] / "tests" / "page" / "js" / "hostile.mjs"
EXAMPLES = 50
"""Lives of a machine between two checks of its progress."""
STEPS = 50


@dataclass(frozen=True)
class Side:
    """The operations and faults of one machine."""

    name: str
    done: Ledger
    lives: int | None
    violations: list[str]
    seconds: float
    others: dict[str, int] = field(default_factory=dict)
    """Faults that only this side has, by name."""

    @property
    def faults(self) -> dict[str, int]:
        return {fault.value: times for fault, times in self.done.faults.items()} | self.others


def run(name: str, machine: Any, operations: int, first_seed: int) -> Side:
    """Run lives of a machine until it has done this many operations."""
    machine.done = Ledger()
    quick = settings(
        settings_here,
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        phases=[Phase.generate],
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
    )
    violations, lives, began = [], 0, time.perf_counter()
    while machine.done.operations < operations:
        seeded = seed(first_seed + lives)(type(machine.__name__, (machine,), {}))
        try:
            run_state_machine_as_test(seeded, settings=quick)
        except Exception as violation:  # whatever it is, it should not have happened
            violations.append(f"seed {first_seed + lives}: {violation!r}"[:400])
        lives += EXAMPLES
    return Side(name, machine.done, lives, violations, time.perf_counter() - began)


def run_in_node(operations: int, first_seed: int) -> Side:
    """Run this many operations of a browser's device, which has its own kinds of faults."""
    node = shutil.which("node")
    if node is None or not IN_A_BROWSER.is_file():
        raise SystemExit(f"node and {IN_A_BROWSER.name} are needed")
    began = time.perf_counter()
    command = [node, str(IN_A_BROWSER), "--operations", str(operations), "--seed", str(first_seed)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        told = json.loads(ran.stdout)
    except ValueError:
        told = {"operations": 0, "faults": {}, "violations": [f"it ended: {ran.stderr[-300:]}"]}
    violations = [json.dumps(one)[:400] for one in told["violations"]]
    seconds = time.perf_counter() - began
    name = "browser with a hostile collector"
    return Side(name, Ledger(told["operations"]), None, violations, seconds, told["faults"])


def page(sides: list[Side], options: argparse.Namespace) -> str:
    total = sum(side.done.operations for side in sides)
    broken = sum(len(side.violations) for side in sides)
    head = ["", *(side.name for side in sides)]
    rows = [
        ["operations", *(f"{side.done.operations:,}" for side in sides)],
        ["lives of a machine", *(f"{side.lives:,}" if side.lives else "" for side in sides)],
    ]
    kinds = dict.fromkeys([*map(str, Fault), *(kind for side in sides for kind in side.others)])
    rows += [
        [f"fault: {kind}", *(f"{side.faults.get(kind, 0):,}" for side in sides)] for kind in kinds
    ]
    rows.append(["**violations**", *(f"**{len(side.violations)}**" for side in sides)])
    rows.append(["seconds", *(f"{side.seconds:.0f}" for side in sides)])
    return (
        f"Made by `{COMMAND}` (seed {options.seed}): {total:,} operations,"
        f" {broken} violations.\n\n" + table(head, rows)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=10_000, help="over all sides, at least")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="put the table into docs/trust.md")
    options = parser.parse_args()
    third = -(-options.operations // 3)
    sides = [
        run("collector among hostile devices", HostileDevices, third, options.seed),
        run("device with a hostile collector", BadDisk, third, options.seed),
        run_in_node(third, options.seed),
    ]
    if options.json:
        found = [
            {
                "side": side.name,
                "operations": side.done.operations,
                "faults": side.faults,
                "violations": side.violations,
                "seconds": round(side.seconds, 1),
            }
            for side in sides
        ]
        print(json.dumps(found, indent=1))
    else:
        print(page(sides, options))
    if options.write:
        write_section(TRUST, "hostile-operations", page(sides, options))
    if any(side.violations for side in sides):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
