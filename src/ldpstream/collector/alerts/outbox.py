"""Messages about one stream's alerts that the webhook has not accepted, and what is held back.

While a rule is silenced nothing is sent about it. What became of its alert meanwhile is sent when
the silence ends, unless it fired and was resolved within it, or the other way round: then whoever
reads the messages knows already how it stands.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from ldpstream.collector.alerts.message import message

MOST_UNSENT = 1000
"""Messages that wait for the webhook; when there are more, the oldest are dropped."""

IsSilenced = Callable[[str], bool]
"""Whether nothing is to be sent about the rule with a fingerprint."""


class Outbox:
    """The messages to be sent about the alerts of one stream. It is not thread-safe."""

    def __init__(self, stream: str, external_url: str) -> None:
        self._stream = stream
        self._external_url = external_url
        self._unsent: deque[dict[str, Any]] = deque()
        self._withheld: dict[str, dict[str, Any]] = {}
        """Alerts of silenced rules, by fingerprint."""
        self.dropped = 0

    @property
    def first(self) -> dict[str, Any] | None:
        return self._unsent[0] if self._unsent else None

    def put(self, alerts: Iterable[dict[str, Any]], is_silenced: IsSilenced) -> None:
        """Add alerts that changed, in one message; hold those of silenced rules back."""
        due = []
        for alert in alerts:
            fingerprint = alert["fingerprint"]
            if not is_silenced(fingerprint):
                due.append(alert)
            elif self._withheld.pop(fingerprint, None) is None:  # else it is as it was told
                self._withheld[fingerprint] = alert
        self._send(due)

    def release_held(self, is_silenced: IsSilenced) -> None:
        """Send what was held back for rules that are silenced no more."""
        free = [name for name in self._withheld if not is_silenced(name)]
        self._send([self._withheld.pop(name) for name in free])

    def settle(self, sent: dict[str, Any]) -> bool:
        """Delete a message that is done; return whether it was still there."""
        if not self._unsent or self._unsent[0] is not sent:
            return False
        self._unsent.popleft()
        return True

    def _send(self, alerts: list[dict[str, Any]]) -> None:
        if alerts:
            self._unsent.append(message(self._stream, alerts, self._external_url))
        while len(self._unsent) > MOST_UNSENT:
            self._unsent.popleft()
            self.dropped += 1

    def to_json(self) -> dict[str, Any]:
        return {"unsent": list(self._unsent), "withheld": self._withheld}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `to_json` gave; releases before 0.3.0 held nothing back."""
        self._unsent = deque(saved["unsent"])
        self._withheld = dict(saved.get("withheld", {}))
