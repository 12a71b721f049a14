"""Messages to the webhook, in Alertmanager's format, version 4."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ldpstream.collector.alerts.evidence import AlertEvidence
from ldpstream.collector.alerts.rules import Rule
from ldpstream.collector.alerts.state import Alert, AlertState

NEVER = "0001-01-01T00:00:00Z"


@dataclass(frozen=True)
class AlertChange:
    """An alert that began to fire or was resolved, and what the release said that caused it."""

    rule: Rule
    alert: Alert
    evidence: AlertEvidence

    def to_json(self) -> dict[str, Any]:
        """The change, for the timeline of the page."""
        return {
            "t": self.evidence.release.t,
            "at_ms": self.evidence.release.at_ms,
            "id": self.rule.fingerprint,
            "name": self.rule.name,
            "label": self.rule.label,
            "kind": self.rule.condition.kind.value,
            "state": self.alert.state.value,
        }


def message(stream: str, alerts: Sequence[dict[str, Any]], external_url: str) -> dict[str, Any]:
    """Return the message about all alerts of a stream that changed; each is made by `told`."""
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
        "alerts": list(alerts),
    }


def told(change: AlertChange, external_url: str) -> dict[str, Any]:
    """Return what a message says of one alert that changed."""
    rule, alert = change.rule, change.alert
    demand = rule.condition.to_json().get("on")
    how = f" ({demand})" if demand else ""
    return {
        "status": "firing" if alert.state is AlertState.FIRING else "resolved",
        "labels": rule.labels,
        "annotations": {
            "summary": f"{rule.title}{how} in stream {rule.stream}",
            "description": rule.condition.told(rule.seen(change.evidence)),
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
