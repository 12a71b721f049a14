"""The resources that a fleet needs, computed from what was measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

DEVICES = (1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
INTERVAL_SECONDS = 600
WINDOW = 20
"""A device reports once in this many timestamps: population division."""
ARRIVAL_SECONDS = 0.9 * INTERVAL_SECONDS
PEAK = 4
"""The peak rate of reports, as a multiple of the average."""
SHARE = 0.5
"""The share of a measured rate that is planned with."""
RETENTION_HOURS = 24
REPLICAS = 3
LISTENERS = 10_000
"""Long polls that a collector holds, unless its configuration says otherwise."""
TALLY_SECONDS = 30
"""How long after its deadline a round may be counted, if all of it came in a burst."""


@dataclass(frozen=True)
class Measured:
    """The measurements that the table rests on, all of them from one run."""

    batch_rate: float
    """Reports per second that one collector accepts on JetStream, on a core of its own, in batches
    of 1,000 (gateways)."""
    single_rate: float
    """The same, each in a request of its own (devices)."""
    append_rate: float
    """Reports per second that one process appends to one log."""
    log_bytes: float
    """Bytes of a report in the log."""
    count_microseconds: float
    """Microseconds of a core of a Spark executor for a report."""
    report_bytes: int
    """Bytes of HTTP for a report and its answer."""


def table(measured: Measured) -> list[dict[str, Any]]:
    return [_row(devices, measured) for devices in DEVICES]


def _row(devices: int, measured: Measured) -> dict[str, Any]:
    round_reports = devices / WINDOW
    peak = round_reports / ARRIVAL_SECONDS * PEAK
    rounds_a_day = 86_400 / INTERVAL_SECONDS
    stored = round_reports * measured.log_bytes * rounds_a_day * RETENTION_HOURS / 24 * REPLICAS
    core_seconds = round_reports * measured.count_microseconds / 1e6
    return {
        "devices": devices,
        "reports_a_round": round(round_reports),
        "peak_reports_per_second": round(peak),
        "collectors_for_devices": math.ceil(peak / (SHARE * measured.single_rate)),
        "collectors_for_gateways": math.ceil(peak / (SHARE * measured.batch_rate)),
        "log_partitions": math.ceil(peak / (SHARE * measured.append_rate)),
        "engine_cores": math.ceil(core_seconds / (SHARE * TALLY_SECONDS)),
        "log_gb": round(stored / 1e9, 1),
        "bytes_per_device_per_day": round(measured.report_bytes * rounds_a_day / WINDOW),
        "collectors_to_announce": math.ceil(devices / LISTENERS),
    }
