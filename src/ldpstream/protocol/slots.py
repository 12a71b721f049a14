"""Slots: when a device reports unasked, which the collector can recompute (docs/protocol.md).

A keyed hash gives each device one timestamp in every window of w. The hash changes with the epoch,
so that a device that always sleeps through its slot gets another one, and cohorts mix. In the first
window of an epoch, those have no turn whose last one was less than w timestamps before.

>>> key = bytes(32)
>>> [t for t in range(1, 61) if is_turn(key, window=20, t=t)]
[16, 36, 56]
>>> next_turn(key, window=20, t=17)
36
"""

from __future__ import annotations

import hmac
from typing import Any

EPOCH_WINDOWS = 16
"""The length of an epoch, in windows."""


def epoch_of(t: int, window: int) -> int:
    """Return the epoch, from 0, that timestamp t belongs to."""
    return (t - 1) // (EPOCH_WINDOWS * window)


def slot_message(epoch: int) -> bytes:
    """Return the message whose HMAC under a device's key determines its slot.

    Neither the version of the terms nor the level has a part in it: a device keeps its rhythm when
    its stream gets new terms, and at each level it has another key.
    """
    return f"ldpstream slot 2\n1\n\n{epoch}".encode()


def group_message() -> bytes:
    """Return the message whose HMAC under a device's slot key determines its group, for good."""
    return b"ldpstream group 2\n"


def group_of(key: bytes, groups: int) -> int:
    """Return which of so many groups of a vocabulary a device belongs to (`vocabulary/`).

    >>> [group_of(bytes([n]) * 32, 8) for n in range(4)]
    [4, 7, 6, 5]
    """
    return _fraction(key, group_message()) % groups


def slot_of(key: bytes, window: int, epoch: int) -> int:
    """Return the slot of a device in an epoch, 0 to w - 1: it reports when t mod w equals it."""
    return _fraction(key, slot_message(epoch)) % window


def is_turn(key: bytes, window: int, t: int) -> bool:
    """Return whether timestamp t is the device's."""
    epoch = epoch_of(t, window)
    slot = slot_of(key, window, epoch)
    if t % window != slot:
        return False
    return not begins_epoch(t, window) or not comes_earlier(
        slot, slot_of(key, window, epoch - 1), window
    )


def begins_epoch(t: int, window: int) -> bool:
    """Return whether t is in the first window of an epoch that follows another one."""
    return t > EPOCH_WINDOWS * window and (t - 1) % (EPOCH_WINDOWS * window) < window


def comes_earlier(slot: int, before: Any, window: int) -> Any:
    """Return whether a slot comes earlier in a window than that of the epoch before.

    Then the turn is less than w timestamps after the last one. An honest device that has reported
    has no budget left for it; a fake one must not be heard more often than the others. A collector
    gives an array for `before`.
    """
    return (slot - 1) % window < (before - 1) % window


def turn_share(window: int, t: int) -> float:
    """Return the expected share of all devices whose turn timestamp t is.

    >>> turn_share(20, 5), turn_share(20, 16 * 20 + 5)
    (0.05, 0.0125)
    """
    if not begins_epoch(t, window):
        return 1 / window
    return ((t - 1) % window + 1) / window**2


def next_turn(key: bytes, window: int, t: int) -> int:
    """Return the first timestamp of the device from t on; t is at least 1."""
    while True:
        epoch = epoch_of(t, window)
        turn = t + (slot_of(key, window, epoch) - t) % window
        if epoch_of(turn, window) != epoch:
            t = (epoch + 1) * EPOCH_WINDOWS * window + 1
        elif is_turn(key, window, turn):
            return turn
        else:
            t = turn + 1


def moment_ms(key: bytes, stream: str, deadline_ms: int) -> int:
    """Return when a device reports within its timestamps: milliseconds from their start.

    It lies between 1/16 and 11/16 of the time until the deadline, which leaves time for retries. It
    stays the same from window to window, so that a whole window has passed since the last report.
    """
    drawn = _fraction(key, f"ldpstream moment 2\n{stream}".encode())
    return deadline_ms * ((1 << 64) + 10 * drawn) >> 68


def _fraction(key: bytes, message: bytes) -> int:
    """Return the first 64 bits of an HMAC as an integer."""
    return int.from_bytes(hmac.digest(key, message, "sha256")[:8], "big")
