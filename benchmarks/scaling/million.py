"""A million simulated devices with slots in one process, against one collector in another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.serving import ENROLMENT, CollectorProcess

from ldpstream.errors import Problem
from scaling.servers import cpu_seconds, memory_mb

DEVICES = 1_000_000
WINDOW = 60
INTERVAL = 10
SECONDS = 600
ADDRESS = "127.0.0.1:18765"
"""Fixed, so that devices that have enrolled can be used again: their numbers depend on it."""
ENROLLING_ONLY = 1

CONFIGURATION = f"""
[collector]
listen = "{ADDRESS}"
store = "collector.sqlite"

[collector.limits]
enrolments_per_second = 1000000

[[stream]]
name = "million"
labels = ["0", "1"]
epsilon = 1.0
window = {WINDOW}
interval = "{INTERVAL}s"
mechanism = "lpf"
selection = "slots"
population = {{devices}}
public = true
"""


def measure(quick: bool, folder: Path | None) -> list[dict[str, Any]]:
    """Return what both processes used; devices in `folder` that have enrolled do not do so again.

    Enrolment has a run of its own, so that what the other uses is what reports cost.
    """
    devices, seconds = (30_000, 60) if quick else (DEVICES, SECONDS)
    with ExitStack() as stack:
        folder = folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        text = CONFIGURATION.format(devices=devices)
        for duration in (ENROLLING_ONLY, seconds):
            with CollectorProcess.of(folder, text, ENROLMENT) as collector:
                row = run(collector, folder, devices, duration)
    return [row]


def run(collector: CollectorProcess, folder: Path, devices: int, seconds: int) -> dict[str, Any]:
    options = {
        "collector": collector.url,
        "name": "million",
        "stream": "sin:a=0.2,b=0.05,h=0.4",
        "devices": devices,
        "state": folder / "fleet.npz",
        "seconds": seconds,
    }
    words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
    command = [sys.executable, "-m", "ldpstream", "fleet", *words, "--simulated", "--json"]
    pids = [collector.process.pid]
    before = cpu_seconds(pids)
    with tempfile.TemporaryFile("w+") as told:
        fleet = subprocess.Popen(command, stdout=told, env=os.environ | ENROLMENT)
        _, status, usage = os.wait4(fleet.pid, 0)
        told.seek(0)
        (outcome,) = json.loads(told.read() or "[{}]")
    if status:
        raise SystemExit(f"the fleet ended with status {status}")
    refused = outcome["refused"]
    late = refused.pop(Problem.ROUND_CLOSED.code, 0)
    return {
        "devices": devices,
        "window": WINDOW,
        "interval_seconds": INTERVAL,
        "seconds": round(outcome["seconds"]),
        "releases": outcome["timestamps"],
        "reports": outcome["reports"],
        "late": late,
        "otherwise_refused": sum(refused.values()),
        "mae": outcome["mae"] and round(outcome["mae"], 5),
        "collector_mb": memory_mb(pids),
        "fleet_mb": round(usage.ru_maxrss / 1024),
        "collector_cpu_seconds": round(cpu_seconds(pids) - before, 1),
        "fleet_cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
    }
