"""What a stream's operator tells its participants: the [stream.notice] table."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ldpstream.collector.config.table import ConfigTable

LONGEST = 2000
"""The longest text of a notice, in characters."""


@dataclass(frozen=True)
class PrivacyNotice:
    """Who asks, and why; the collector adds the rest from the terms (`api/privacy.py`)."""

    who: str
    why: str
    contact: str
    retention: str
    """What is kept, and for how long."""

    def to_json(self) -> dict[str, str]:
        return asdict(self)


def read_notice(stream: ConfigTable) -> PrivacyNotice | None:
    """Read the notice of a stream, if it has one: all of it, or nothing."""
    if "notice" not in stream:
        return None
    table = stream.table("notice")
    return PrivacyNotice(*(_text(table, key) for key in ("who", "why", "contact", "retention")))


def _text(table: ConfigTable, key: str) -> str:
    text = table.text(key).strip()
    if not 0 < len(text) <= LONGEST:
        what = f"{key} is empty" if not text else f"{key} has {len(text)} characters"
        table.refuse(key, what, f"say it to the participants, in at most {LONGEST} characters")
    return text
