"""How long the releases of a stream are kept: a [stream.retention] table."""

from __future__ import annotations

from itertools import pairwise

from ldpstream.collector.config.table import ConfigTable
from ldpstream.collector.releases.retention import Retention
from ldpstream.durations import DAY_MS, HOUR_MS, spelled

_AGES = {"releases": HOUR_MS, "hourly": HOUR_MS, "daily": DAY_MS}
"""The ages in the table, in ascending order, and the least of each."""


def read_retention(table: ConfigTable, interval_ms: int, window: int) -> Retention:
    """Read the ages: data in less detail must be kept at least as long."""
    found = {
        name: table.duration(name, least_ms=least) if name in table else None
        for name, least in _AGES.items()
    }
    for earlier, later in pairwise(_AGES):
        first, second = found[earlier], found[later]
        if second is not None and (first is None or second < first):
            what = (
                f"{later} is given without {earlier}"
                if first is None
                else (f"{later} is less than {earlier}")
            )
            table.refuse(later, what, f"give {earlier} as well, and not more than {later}")
    least_ms = (window + 1) * interval_ms
    if found["releases"] is not None and found["releases"] < least_ms:
        what = f"releases is less than a window of {window} timestamps plus one"
        table.refuse("releases", what, f"give {spelled(least_ms)} or more")
    return Retention(found["releases"], found["hourly"], found["daily"])
