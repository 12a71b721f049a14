"""Devices on a roster that do not answer: they are asked ever more rarely.

Anybody who may enrol could otherwise fill the samples with devices that never speak.
"""

from __future__ import annotations

import numpy as np

from ldpstream.arrays import Flags
from ldpstream.collector.store.contract import NO_RESTS, Places, Rests

LONGEST = 64
"""The longest rest, in windows."""


class RestSchedule:
    """How long each device rests, by its place on the roster.

    After the n-th unanswered ask in a row a device is not asked for 2^(n - 1) windows, at most for
    LONGEST. One answer ends this.

    >>> silence, nobody = RestSchedule(window=10), np.array([], np.int64)
    >>> [silence.heard(t, np.array([0]), nobody).tolist() for t in (1, 11)]
    [[[0, 1, 11]], [[0, 2, 31]]]
    >>> [bool(silence.may_ask(t, size=1)[0]) for t in (30, 31)]
    [False, True]
    >>> silence.heard(31, np.array([0]), np.array([0])).tolist()
    [[0, 0, 0]]
    """

    def __init__(self, window: int, rests: Rests = NO_RESTS) -> None:
        self.window = window
        self._unanswered = np.zeros(0, np.int64)
        self._until = np.zeros(0, np.int64)
        self._set(rests)

    def may_ask(self, t: int, size: int) -> Flags:
        """Return which of the first `size` devices do not rest at t."""
        self._grow(size)
        rested: Flags = self._until[:size] <= t
        return rested

    def speaks(self, t: int, size: int) -> Flags:
        """Return which devices count as present: all but those that rest for over a window."""
        return self.may_ask(t, size) | (self._unanswered[:size] < 2)

    def heard(self, t: int, asked: Places, answered: Places) -> Rests:
        """Take note of who was asked at t and who has answered; return what has changed."""
        self._grow(max((*asked[-1:].tolist(), -1)) + 1)
        spoke = asked[np.isin(asked, answered)]
        mute = asked[~np.isin(asked, answered)]
        ended = spoke[self._unanswered[spoke] > 0]
        most = LONGEST.bit_length()
        times = np.minimum(self._unanswered[mute] + 1, most)
        until = t + self.window * (1 << (times - 1))
        rests = np.concatenate(
            [np.stack([mute, times, until], axis=1), np.pad(ended[:, None], ((0, 0), (0, 2)))]
        )
        self._set(rests)
        return rests

    def _set(self, rests: Rests) -> None:
        self._grow(int(rests[:, 0].max(initial=-1)) + 1)
        self._unanswered[rests[:, 0]], self._until[rests[:, 0]] = rests[:, 1], rests[:, 2]

    def _grow(self, size: int) -> None:
        more = max(0, size - len(self._until))
        self._unanswered = np.pad(self._unanswered, (0, more))
        self._until = np.pad(self._until, (0, more))
