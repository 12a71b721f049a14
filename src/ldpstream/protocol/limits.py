"""The sizes and limits of the protocol."""

from __future__ import annotations

VERSION = 2
"""Of enrolment and of a report's authentication; devices that speak another are refused."""

DEVICE_BYTES = 16
"""A device's number."""
KEY_BYTES = 32
MAC_BYTES = 16
LARGEST_REPORT = 16 << 10
"""Bytes; the longest that an oracle makes is a bit for each of 65,536 labels, and a byte more."""
HEAD_BYTES = DEVICE_BYTES + MAC_BYTES
"""What precedes a report in a record of a batch."""

LONGEST_WAIT = 30
"""Seconds that a collector holds a question for rounds back until there is news."""
LARGEST_SERIAL = (1 << 53) - 1
"""Of an announcement: JavaScript holds no larger integer exactly."""
MOST_ROUNDS = 64
"""In one announcement: a timestamp has two or three."""
LATEST_MS = 1 << 52
