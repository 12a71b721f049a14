"""Time the oracles for a million users, beside pure-ldp and multi-freq-ldpy.

    make bench-rivals [ARGS="--quick | --json | --write"]

Timed are privatising, aggregating and estimating. All libraries run in the same process, oracle by
oracle, and the best time of several counts. The rivals work user by user, which at this size takes
minutes. They are timed on two smaller numbers of users, and extrapolated along the straight line
through these: fixed costs are not multiplied. Where they
are not installed, only our own times are shown.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon

USERS = 1_000_000
EPSILON = 1
DOMAINS = (2, 16, 128, 1024)
TARGETS = {Oracle.GRR: 150, Oracle.OUE: 40, Oracle.OLH: 1000}
"""How many times faster than the faster rival to be, at 128 labels."""
REPORT = Path(__file__).parents[1] / "docs" / "benchmarks-oracles.md"

Values = NDArray[np.int64]
Run = Callable[[Values], Any]
"""A function from true values to an estimated histogram."""


@dataclass(frozen=True)
class Row:
    """Milliseconds for `USERS` users; None where a library lacks the oracle."""

    labels: int
    oracle: str
    ldpstream: float
    pure_ldp: float | None
    multi_freq_ldpy: float | None

    @property
    def times_faster(self) -> float | None:
        rivals = [t for t in (self.pure_ldp, self.multi_freq_ldpy) if t is not None]
        return min(rivals) / self.ldpstream if rivals else None


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="16 and 128 labels, short runs")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help=f"write the table to {REPORT.name}")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # the rivals': few users, invalid escape sequences

    rows = []
    for row in measure((16, 128) if options.quick else DOMAINS, 0.2 if options.quick else 0.7):
        rows.append(row)
        if not options.json:
            print(line(row), flush=True)
    if options.json:
        print(json.dumps([asdict(row) | {"times_faster": row.times_faster} for row in rows]))
    if options.write:
        REPORT.parent.mkdir(exist_ok=True)
        REPORT.write_text(page(rows))


def measure(domains: tuple[int, ...], seconds: float) -> Iterator[Row]:
    """One row for each oracle and domain; each rival gets about 6 times `seconds`."""
    for labels in domains:
        values = np.random.default_rng(1).integers(labels, size=USERS)
        for oracle in Oracle:
            rivals = [find(oracle, labels) for find in (pure_ldp, multi_freq_ldpy)]
            run = partial(ldpstream(oracle, labels), values)
            # Ours before, between and after theirs: a busy moment must not decide.
            ours, theirs = [best_of(5, run)], []
            for rival in rivals:
                theirs.append(1000 * extended(rival, values, seconds) if rival else None)
                ours.append(best_of(5, run))
            yield Row(labels, oracle, 1000 * min(ours), *theirs)


def best_of(repeats: int, work: Callable[[], Any]) -> float:
    """Return the least seconds that `work` took, after one warm-up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def extended(run: Run, values: Values, seconds: float) -> float:
    """Extrapolate the seconds for all of `values` from two sizes that fit into `seconds`."""
    trial = 200
    fitting = int(trial * seconds / best_of(1, partial(run, values[:trial])))
    many = min(max(fitting, 4 * trial), len(values))
    few = many // 4
    most, least = (best_of(3, partial(run, values[:users])) for users in (many, few))
    return most + (most - least) / (many - few) * (len(values) - many)


def ldpstream(oracle: Oracle, labels: int) -> Run:
    epsilon = Epsilon.of(EPSILON)
    lab, collector = oracle.lab(labels, epsilon), oracle.collector(labels, epsilon)
    rng = np.random.default_rng(2)
    return lambda values: collector.estimate(collector.support(lab.perturb(values, rng)))


def pure_ldp(oracle: Oracle, labels: int) -> Run | None:
    """Return a run of the library's clients and servers, as its README uses them."""
    if find_spec("pure_ldp") is None:
        return None
    from pure_ldp.frequency_oracles import (
        DEClient,
        DEServer,
        HadamardResponseClient,
        HadamardResponseServer,
        LHClient,
        LHServer,
        UEClient,
        UEServer,
    )

    def hadamard_client(epsilon: float, labels: int, **options: Any) -> Any:
        return HadamardResponseClient(epsilon, labels, hash_funcs=None, **options)

    kinds: dict[Oracle, tuple[Any, Any, dict[str, Any]]] = {
        Oracle.GRR: (DEClient, DEServer, {}),
        Oracle.SUE: (UEClient, UEServer, {}),
        Oracle.OUE: (UEClient, UEServer, {"use_oue": True}),
        Oracle.BLH: (LHClient, LHServer, {}),
        Oracle.OLH: (LHClient, LHServer, {"use_olh": True}),
        Oracle.HADAMARD: (hadamard_client, HadamardResponseServer, {}),
    }
    if oracle not in kinds:
        return None
    make_client, make_server, options = kinds[oracle]
    options = options | {"index_mapper": int}

    def run(values: Values) -> Any:
        client = make_client(EPSILON, labels, **options)
        server = make_server(EPSILON, labels, **options)
        for value in values.tolist():
            server.aggregate(client.privatise(value))
        return server.estimate_all(range(labels), suppress_warnings=True)

    return run


def multi_freq_ldpy(oracle: Oracle, labels: int) -> Run | None:
    """Return a run of the library's client and aggregator functions, as its README uses them."""
    if find_spec("multi_freq_ldpy") is None:
        return None
    from multi_freq_ldpy.pure_frequency_oracles import GRR, LH, SS, UE

    def with_labels(client: Any, aggregate: Any, *more: bool) -> Run:
        return lambda values: aggregate(
            [client(value, labels, EPSILON, *more) for value in values.tolist()],
            labels,
            EPSILON,
            *more,
        )

    def unary(optimal: bool) -> Run:
        return lambda values: UE.UE_Aggregator_MI(
            [UE.UE_Client(value, labels, EPSILON, optimal) for value in values.tolist()],
            EPSILON,
            optimal,
        )

    return {
        Oracle.GRR: with_labels(GRR.GRR_Client, GRR.GRR_Aggregator_MI),
        Oracle.SUE: unary(optimal=False),
        Oracle.OUE: unary(optimal=True),
        Oracle.BLH: with_labels(LH.LH_Client, LH.LH_Aggregator_MI, False),
        Oracle.OLH: with_labels(LH.LH_Client, LH.LH_Aggregator_MI, True),
        Oracle.SUBSET: with_labels(SS.SS_Client, SS.SS_Aggregator_MI),
    }.get(oracle)


def line(row: Row) -> str:
    cells = [f"{row.labels:6} {row.oracle:9}"]
    cells += [milliseconds(t) for t in (row.ldpstream, row.pure_ldp, row.multi_freq_ldpy)]
    return " ".join(f"{cell:>12}" for cell in [*cells, times(row)])


def page(rows: list[Row]) -> str:
    table = "\n".join(
        f"| {row.labels} | {row.oracle} | {milliseconds(row.ldpstream)} "
        f"| {milliseconds(row.pure_ldp)} | {milliseconds(row.multi_freq_ldpy)} | {times(row)} |"
        for row in rows
    )
    targets = ", ".join(
        f"{row.oracle} {times(row)} (target {TARGETS[Oracle(row.oracle)]}x)"
        for row in rows
        if row.labels == 128 and row.oracle in TARGETS
    )
    return f"""# The oracles against other libraries

Made by `make bench-rivals ARGS=--write` (`benchmarks/oracles.py`) on {os.cpu_count()} cores, Python
{platform.python_version()}, {versions()}. The load average was
{os.getloadavg()[0]:.1f} at the end, of which the benchmark itself makes 1 to 2.

Milliseconds to privatise, aggregate and estimate for {USERS:,} users at epsilon {EPSILON}; ours
on all cores, best of 15. The others, which work user by user, are timed on as many users as fit
into about 0.7 seconds and extended linearly. The last column is the faster of them over ours; `-`
means that a library has no such oracle.

At 128 labels: {targets}.

| labels | oracle | ldpstream | pure-ldp | multi-freq-ldpy | times faster |
|---:|---|---:|---:|---:|---:|
{table}
"""


def milliseconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def times(row: Row) -> str:
    return f"{row.times_faster:,.0f}x" if row.times_faster else "-"


def versions() -> str:
    def known(package: str) -> str:
        try:
            return f"{package} {version(package)}"
        except PackageNotFoundError:
            return package

    return ", ".join(known(name) for name in ("numpy", "numba", "pure-ldp", "multi-freq-ldpy"))


if __name__ == "__main__":
    main()
