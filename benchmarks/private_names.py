"""Whether the time of a refusal tells a private stream from a name that no stream has.

    .venv/bin/python benchmarks/private_names.py [--requests N]

A stranger asks a collector on this machine for a private stream and for two names that nobody has,
in shuffled turns, N times each and route by route. The slowest 10 % of each are the machine's and
are left out. "control" compares the two unknown names with each other: what it finds is chance.
|t| > 4.5 is what leakage assessment calls a leak, as in `timing.py`.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.serving import serving, stream_table

PRIVATE, UNKNOWN, CONTROL = NAMES = ("ward", "none", "zero")
KEPT = 0.9
THRESHOLD = 4.5
SIGNED = {"Ldp-Device": "5" * 32, "Ldp-Mac": "0" * 32}
TOKEN = {"Authorization": "Bearer " + "0" * 64}
ENROL = b'{"secret": "%s", "version": 2}' % (b"0" * 64)
ROUND = "rounds/1-publication"
ROUTES: dict[str, tuple[str, str, bytes, dict[str, str]]] = {
    "rounds": ("GET", "rounds", b"", {}),
    "rounds, signed wrongly": ("GET", "rounds?after=3", b"", SIGNED),
    "rounds, a wrong token": ("GET", "rounds", b"", TOKEN),
    "report, signed wrongly": ("POST", f"{ROUND}/reports", b"\1\0", SIGNED),
    "batch, signed wrongly": ("POST", f"{ROUND}/batch", bytes(34), SIGNED),
    "releases": ("GET", "releases", b"", {}),
    "status, a wrong token": ("GET", "status", b"", TOKEN),
    "enrolment": ("POST", "devices", ENROL, {"Content-Type": "application/json"}),
}
Times = NDArray[np.float64]


def times(port: int, route: str, requests: int) -> dict[str, Times]:
    """Microseconds of the fastest answers, by name."""
    method, path, body, headers = ROUTES[route]
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    found: dict[str, list[int]] = {name: [] for name in NAMES}
    for _ in range(requests):
        for name in random.sample(NAMES, len(NAMES)):
            began = time.perf_counter_ns()
            connection.request(method, f"/v1/streams/{name}/{path}", body, headers)
            connection.getresponse().read()
            found[name].append(time.perf_counter_ns() - began)
    connection.close()
    kept = int(requests * KEPT)
    return {name: np.sort(np.array(taken))[:kept] / 1000 for name, taken in found.items()}


def welch(one: Times, other: Times) -> float:
    error = np.sqrt(one.var(ddof=1) / len(one) + other.var(ddof=1) / len(other))
    return float((one.mean() - other.mean()) / error)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=4000, help="of each name and route")
    requests = parser.parse_args().requests
    now = datetime.now(UTC)
    with tempfile.TemporaryDirectory() as folder:
        tables = [stream_table("open", now), stream_table(PRIVATE, now, public="false")]
        with serving(Path(folder), *tables) as url:
            port = int(url.rpartition(":")[2])
            times(port, "rounds", 200)
            print(f"{'route':24}{'median us':>10}{'difference':>12}{'t':>7}{'control t':>11}")
            for route in ROUTES:
                taken = times(port, route, requests)
                private, unknown, control = (taken[name] for name in NAMES)
                difference = np.median(private) - np.median(unknown)
                t = welch(private, unknown)
                print(
                    f"{route:24}{np.median(unknown):10.0f}{difference:12.1f}{t:7.1f}"
                    f"{welch(control, unknown):11.1f}{'  leaks' if abs(t) > THRESHOLD else ''}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
