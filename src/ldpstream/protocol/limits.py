"""The sizes and limits of the protocol."""

from __future__ import annotations

VERSION = 2
"""The version of enrolment and of a report's authentication; devices with another are refused."""
TERMS_FORMAT = 3
"""The newest format of terms (`terms.py`). Format 2 is still written for terms that have no levels
and follow no others, so that devices of release 0.2.0 read them."""

DEVICE_BYTES = 16
"""The length of a device's number."""
KEY_BYTES = 32
MAC_BYTES = 16
LARGEST_REPORT = 16 << 10
"""Bytes; the longest that an oracle makes is a bit for each of 65,536 labels, and a byte more."""
HEAD_BYTES = DEVICE_BYTES + MAC_BYTES
"""The length of what precedes a report in a record of a batch: number and MAC."""

LONGEST_WAIT = 30
"""The most seconds that a collector holds a long poll for rounds until there is news."""
LARGEST_SERIAL = (1 << 53) - 1
"""The largest serial of an announcement: JavaScript holds no larger integer exactly."""
MOST_ROUNDS = 64
"""The most rounds in one announcement: a timestamp has two or three."""
LATEST_MS = 1 << 52
