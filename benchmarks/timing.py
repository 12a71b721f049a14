"""Test whether the time to answer tells more about the value than the report itself.

    .venv/bin/python benchmarks/timing.py [--answers N] [--json] [--write]

For each oracle, N answers of each of two values, in shuffled turns. The collector sees the report,
so time may depend on that (zero takes a little less to write than five). What it must not tell is
the value, given the report: answers are compared report by report (for hashed ones bucket by
bucket: the seed is drawn without regard to the value), and the differences pooled by their
precision. "coin" keeps the reports that support one of the two values only: there, one value's coin
has come up heads, and the other's tails. The slowest 10 % of all are the machine's and are left
out. |t| > 4.5 is what leakage assessment calls a leak (Goodwill et al., NIST 2011); by chance it
happens in one of 10,000 runs of these 15 tests. "whole answer" is what an observer of a device
sees: decide, draw, commit to the ledger (in memory), sign.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import random
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.device import Epsilon, Oracle, SystemSource
from ldpstream.device.account import CommittedReport
from ldpstream.fleet.folders import memory_folder
from ldpstream.protocol.answers import Round

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.device.collectors import INTERVAL_MS, Bench, a_round, make_terms

from sections import TRUST, table, write_section

COMMAND = ".venv/bin/python benchmarks/timing.py --write"
LABELS = 6
VALUES = (0, LABELS - 1)
THRESHOLD = 4.5
KEPT = 0.9
BLOCK = 500
LEAST = 30
"""The least number of answers of each value with the same report, to compare them."""

Times = dict[bytes, list[int]]
"""Times in nanoseconds, by what was sent."""


@dataclass(frozen=True)
class Comparison:
    """Answers with the same report, under two values."""

    oracle: str
    classes: str
    answers: int
    """The number of answers of both values."""
    reports: int
    nanoseconds: float
    difference: float
    """In nanoseconds."""
    t: float

    @property
    def leaks(self) -> bool:
        return abs(self.t) > THRESHOLD


def measure(oracle: Oracle, answers: int) -> list[Comparison]:
    """Time `answers` reports of each value, in shuffled turns."""
    device: Any = oracle.device(LABELS, Epsilon.of(1))
    hashed = oracle in (Oracle.BLH, Oracle.OLH)
    source, order, clock = SystemSource(), random.Random(1), time.perf_counter_ns
    taken: list[tuple[int, bytes, int]] = []
    turns = [0, 1] * BLOCK
    gc.disable()
    for _ in range(answers // BLOCK):
        order.shuffle(turns)
        for turn in turns:
            began = clock()
            wire = device.encode(device.perturb(VALUES[turn], source))
            took = clock() - began
            taken.append((turn, wire, took))
    gc.enable()
    times: tuple[Times, Times] = ({}, {})
    for turn, wire, took in taken:  # afterwards: it would leave one value's key in the caches
        times[turn].setdefault(_kind(device, wire, hashed), []).append(took)
    coin = {
        report
        for report in times[0].keys() | times[1].keys()
        if len(set(_supported(device, report, hashed))) > 1
    }
    return [compare(oracle, "value", times, None), compare(oracle, "coin", times, coin)]


def _kind(device: Any, wire: bytes, hashed: bool) -> bytes:
    """Return the key to compare answers by: the report, or which values a hashed one supports."""
    if not hashed:
        return wire
    report = device.decode(wire)
    return bytes([report.bucket, *(device.supports(report, value) for value in VALUES)])


def _supported(device: Any, kind: bytes, hashed: bool) -> list[bool]:
    if hashed:
        return [bool(flag) for flag in kind[1:]]
    return [device.supports(device.decode(kind), value) for value in VALUES]


def compare(
    oracle: Oracle, classes: str, times: tuple[Times, Times], only: set[bytes] | None
) -> Comparison:
    every = [took for part in times for taken in part.values() for took in taken]
    bound = np.quantile(every, KEPT)
    weights, differences, answers = [], [], 0
    for report in times[0].keys() & times[1].keys() if only is None else only:
        a, b = (_within(part.get(report, []), bound) for part in times)
        if min(len(a), len(b)) < LEAST:
            continue
        weights.append(1 / (a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b)))
        differences.append(float(a.mean() - b.mean()))
        answers += len(a) + len(b)
    total = sum(weights)
    pooled = sum(w * d for w, d in zip(weights, differences, strict=True)) / total
    mean = float(np.mean([took for took in every if took <= bound]))
    z = pooled * math.sqrt(total)
    return Comparison(oracle.value, classes, answers, len(weights), mean, pooled, z)


def _within(taken: list[int], bound: float) -> NDArray[np.float64]:
    return np.array([took for took in taken if took <= bound], float)


def whole_answers(answers: int) -> Comparison:
    """Compare what an observer of a device sees: decide, draw, commit to the ledger, sign; GRR."""
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        bench = Bench(Path(folder) / "device.ldp")
        labels = ["north", "east", "south", "west", "up", "down"]
        bench.collector.terms = make_terms(labels=labels, window=1)
        session = bench.enrolled().session
        account, value = session.account, session.value
        pin, order, clock = bench.collector.terms.pin, random.Random(2), time.perf_counter_ns
        times: tuple[Times, Times] = ({}, {})
        for _ in range(answers):
            bench.clock.pass_ms(INTERVAL_MS + 1)  # a debit is entered at the next millisecond
            account.label.correct(bench.clock.wall)
            turn = order.randrange(2)
            asked = Round.read(a_round(bench.t))
            value.observe(VALUES[0] if turn == 0 else VALUES[-1])
            began = clock()
            sent = account.consider(pin, asked, value.place)
            took = clock() - began
            assert isinstance(sent, CommittedReport)
            times[turn].setdefault(sent.message.report, []).append(took)
    return compare(Oracle.GRR, "whole answer", times, None)


def page(found: list[Comparison], answers: int) -> str:
    rows = [
        [
            one.oracle,
            one.classes,
            f"{one.answers:,}",
            one.reports,
            f"{one.nanoseconds / 1000:.2f}",
            f"{one.difference:+.1f}",
            f"{one.t:+.1f}",
            "**yes**" if one.leaks else "no",
        ]
        for one in found
    ]
    head = ["oracle", "by", "answers", "reports", "µs", "difference, ns", "t", "leaks"]
    return (
        f"Made by `{COMMAND}`: {LABELS} labels, epsilon 1, {answers:,} answers a value, in shuffled"
        f" turns on a shared machine; values {VALUES[0]} and {VALUES[1]} are compared report by"
        f" report. A leak is |t| > {THRESHOLD}.\n\n" + table(head, rows)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=100_000, help="of each value")
    parser.add_argument("--whole", type=int, default=20_000, help="whole answers, of both values")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="put the table into docs/trust.md")
    options = parser.parse_args()
    for oracle in Oracle:  # what is imported and kept at first use is not measured
        measure(oracle, 20 * BLOCK)
    found = [one for oracle in Oracle for one in measure(oracle, options.answers)]
    found.append(whole_answers(options.whole))
    print(
        json.dumps([asdict(one) | {"leaks": one.leaks} for one in found], indent=1)
        if options.json
        else page(found, options.answers)
    )
    if options.write:
        write_section(TRUST, "hostile-timing", page(found, options.answers))


if __name__ == "__main__":
    main()
