"""The notice: what every answer to a report tells a device, besides what came of the report.

>>> Notice(1000, successor="ab" * 32, renew=True).to_json()["renew"]
True
>>> Notice.read({"now_ms": -1, "successor": 7, "renew": "yes", "halt": "soon"})
Notice(now_ms=None, successor=None, renew=False, halt=None)
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ldpstream.protocol.limits import LATEST_MS
from ldpstream.protocol.names import whole
from ldpstream.protocol.strata import is_pin


class Halt(StrEnum):
    """Why a stream takes no reports, though its collector runs."""

    PAUSED = "paused"
    """It will be resumed: a device asks whether it was before it takes its next turn."""
    RETIRED = "retired"
    """It has ended: a device hardly ever asks again."""


@dataclass(frozen=True)
class Notice:
    """What a collector wants its devices to know; none of it is trusted, and all may be absent."""

    now_ms: int | None = None
    """The time by the collector's clock, which determines the current timestamp."""
    successor: str | None = None
    """The pin of the terms that follow those of the report, to be fetched by `FetchTerms`."""
    renew: bool = False
    """Whether the device's key is of a master secret that is being replaced (`RenewKey`)."""
    halt: Halt | None = None
    """Why the stream takes no reports, or None if it does."""

    @classmethod
    def read(cls, answer: object) -> Notice:
        """Return the notice in the JSON of an answer; what is malformed counts as absent."""
        told = answer if isinstance(answer, dict) else {}
        now_ms, successor = told.get("now_ms"), told.get("successor")
        return cls(
            now_ms if whole(now_ms, 0, LATEST_MS) else None,
            successor if is_pin(successor) else None,
            told.get("renew") is True,
            next((one for one in Halt if one == told.get("halt")), None),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the members that an answer gets; what is not there is left out."""
        told = {
            "now_ms": self.now_ms,
            "successor": self.successor,
            "renew": self.renew or None,
            "halt": self.halt,
        }
        return {name: value for name, value in told.items() if value is not None}


def undated(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without the time of its notice, which is right for a moment only."""
    return {name: value for name, value in answer.items() if name != "now_ms"}
