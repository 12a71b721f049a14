"""Releases of timestamps that a collector has missed: nobody was asked, so the last one holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ldpstream.collector.releases.paging import at_once
from ldpstream.collector.store.contract import StoredRelease
from ldpstream.collector.store.groups import GROUPS
from ldpstream.protocol.history import TermsHistory

MOST_CARRIED = 10_000
"""Timestamps that get a release after an absence, the last ones: all would get the same one."""
MOMENTARY = frozenset({"suspect", "devices"})
"""What is said of one timestamp only, and not repeated for those that were missed after it."""


def missed_before(t: int, last_t: int, history: TermsHistory) -> Iterator[range]:
    """Return the timestamps between the last release and t, those of the same terms together."""
    missed = range(max(last_t + 1, t - MOST_CARRIED), t)
    while missed:
        change = history.next_change(missed[0]) or t
        yield missed[: change - missed[0]]
        missed = missed[change - missed[0] :]


def lasting(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a release's content holds at later timestamps, too."""
    return {key: part for key, part in content.items() if key not in MOMENTARY}


def unchanged(content: Mapping[str, Any], last: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is released of a distribution where nobody has reported.

    A density that is fitted to the same readings with larger errors is flatter, and its quantiles
    are others. So the last figures stand, and only the intervals are those of now.

    >>> now = {"values": [0.9], "low": [0.5], "high": [1.0], "fresh": False}
    >>> unchanged(now, {"values": [0.4]})
    {'values': [0.4], 'low': [0.4], 'high': [1.0], 'fresh': False}
    """
    groups = {_name(one): one for one in last.get(GROUPS, ())}
    named = [(one, groups.get(_name(one))) for one in content.get(GROUPS, ())]
    held = [one if before is None else unchanged(one, before) for one, before in named]
    values = last["values"]
    ends = {
        "low": [*map(min, values, content["low"])],
        "high": [*map(max, values, content["high"])],
    }
    return {**content, "values": values, **ends, **({GROUPS: held} if held else {})}


def _name(group: Mapping[str, Any]) -> tuple[Any, ...]:
    return group["attribute"], group["value"], *group.get("merged", ())


def carried_over(
    last: StoredRelease, content: dict[str, Any], missed: range, now_ms: int
) -> Iterator[list[StoredRelease]]:
    """Repeat a release, with this content, at timestamps that were missed.

    As many as fit into memory at once are returned together.
    """
    content = content | {"fresh": False}
    carried = replace(last, at_ms=now_ms, content=content, asked=0, received=0, missed=True)
    figures = len(content["values"]) * (1 + len(content.get(GROUPS, ())))
    step = at_once(figures, MOST_CARRIED)
    for first in range(0, len(missed), step):
        part = missed[first : first + step]
        yield [replace(carried, t=t, content=content | {"t": t}) for t in part]
