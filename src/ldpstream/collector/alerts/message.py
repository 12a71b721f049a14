"""Messages to the webhook, in Alertmanager's format, version 4."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ldpstream.collector.alerts.evidence import Evidence
from ldpstream.collector.alerts.rules import Rule
from ldpstream.collector.alerts.state import Alert, State

NEVER = "0001-01-01T00:00:00Z"


@dataclass(frozen=True)
class Change:
    """An alert that began to fire, or was resolved, and what the release said that did it."""

    rule: Rule
    alert: Alert
    evidence: Evidence

    def to_json(self) -> dict[str, Any]:
        """The change, for the timeline of the page."""
        return {
            "t": self.evidence.release.t,
            "at_ms": self.evidence.release.at_ms,
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
    rule, alert = change.rule, change.alert
    return {
        "status": "firing" if alert.state is State.FIRING else "resolved",
        "labels": rule.labels,
        "annotations": {
            "summary": f"{rule.condition} ({rule.on}) in stream {rule.stream}",
            "description": _description(rule.label, change.evidence),
        },
        "startsAt": moment(alert.fired_ms),
        "endsAt": moment(alert.resolved_ms),
        "generatorURL": f"{external_url}/#/streams/{rule.stream}" if external_url else "",
        "fingerprint": rule.fingerprint,
    }


def _description(label: str, evidence: Evidence) -> str:
    figure = evidence.figure(label)
    if figure is None:
        return f"{label} is no label of this stream any more, at t={evidence.release.t}"
    return (
        f"{label} is {figure.value:.4g}, {figure.low:.4g} to {figure.high:.4g},"
        f" at t={evidence.release.t}"
    )


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
