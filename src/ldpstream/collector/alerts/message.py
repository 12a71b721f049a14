"""Messages to the webhook, in Alertmanager's format, version 4."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ldpstream.collector.alerts.rules import Rule
from ldpstream.collector.alerts.state import Alert, State
from ldpstream.collector.store.contract import Release

NEVER = "0001-01-01T00:00:00Z"


@dataclass(frozen=True)
class Change:
    """An alert that began to fire, or was resolved, and the release that did it."""

    rule: Rule
    alert: Alert
    release: Release

    def to_json(self) -> dict[str, Any]:
        """The change, for the timeline of the page."""
        return {
            "t": self.release.t,
            "at_ms": self.release.at_ms,
            "id": self.rule.fingerprint,
            "name": self.rule.name,
            "label": self.rule.label,
            "state": self.alert.state.value,
        }


def message(stream: str, changes: Sequence[Change], external_url: str) -> dict[str, Any]:
    """Return the message about all alerts that changed at one release of a stream."""
    alerts = [_alert(change, external_url) for change in changes]
    firing = any(alert["status"] == "firing" for alert in alerts)
    return {
        "version": "4",
        "groupKey": f'{{}}:{{stream="{stream}"}}',
        "truncatedAlerts": 0,
        "status": "firing" if firing else "resolved",
        "receiver": "ldpstream",
        "groupLabels": {"stream": stream},
        "commonLabels": _common([alert["labels"] for alert in alerts]),
        "commonAnnotations": _common([alert["annotations"] for alert in alerts]),
        "externalURL": external_url,
        "alerts": alerts,
    }


def _alert(change: Change, external_url: str) -> dict[str, Any]:
    rule, alert, content = change.rule, change.alert, change.release.content
    value, low, high = (content[part][rule.place] for part in ("values", "low", "high"))
    return {
        "status": "firing" if alert.state is State.FIRING else "resolved",
        "labels": rule.labels,
        "annotations": {
            "summary": f"{rule.condition} ({rule.on}) in stream {rule.stream}",
            "description": f"{rule.label} is {value:.4g}, {low:.4g} to {high:.4g},"
            f" at t={change.release.t}",
        },
        "startsAt": moment(alert.fired_ms),
        "endsAt": moment(alert.resolved_ms),
        "generatorURL": f"{external_url}/#/streams/{rule.stream}" if external_url else "",
        "fingerprint": rule.fingerprint,
    }


def _common(tables: list[dict[str, str]]) -> dict[str, str]:
    first, *others = tables
    return {
        name: value
        for name, value in first.items()
        if all(other.get(name) == value for other in others)
    }


def moment(ms: int | None) -> str:
    """Format a time by RFC 3339; what has not happened yet (None) has Go's zero time.

    >>> moment(0)
    '1970-01-01T00:00:00.000Z'
    """
    if ms is None:
        return NEVER
    at = datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
    return at.removesuffix("+00:00") + "Z"
