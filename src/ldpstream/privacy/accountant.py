"""The accountant, which checks every report of a simulated run and stops it at a broken promise.

It knows nothing of mechanisms. It adds up, in integer nano-epsilon, what each user has spent in the
window that ends now, and raises when a sum exceeds the limit.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import UserIndexes
from ldpstream.compiled import compiled
from ldpstream.errors import GuaranteeBroken, Mistake, Problem
from ldpstream.privacy.epsilon import Epsilon

NEVER = np.iinfo(np.int32).min


class _Charge(NamedTuple):
    t: int
    users: UserIndexes | None
    nano: int


class Accountant:
    """The w-event accounts of `users` users, in 4 bytes per user and O(reports) per timestamp.

    For each user only the timestamp of the last report is kept. As long as nobody reports twice in
    a window that is enough; if someone does, the charges of the window are added up.

    >>> accountant = Accountant(users=3, epsilon=Epsilon.of(1), window=2)
    >>> accountant.charge(1, np.array([0, 2], np.uint32), Epsilon.of(1))
    >>> accountant.charge(2, np.array([1], np.uint32), Epsilon.of(1))
    >>> accountant.charge(3, np.array([2], np.uint32), Epsilon.of(1))
    >>> accountant.charge(4, None, Epsilon.of(1))
    Traceback (most recent call last):
    ldpstream.errors.GuaranteeBroken: user 2 would have spent 2000000000 nano-epsilon in 2 \
timestamps up to t=4; the limit is 1000000000: the mechanism breaks its guarantee
    """

    def __init__(self, users: int, epsilon: Epsilon, window: int) -> None:
        self._users = users
        self._limit = epsilon.nano
        self._window = window
        self._last_report: NDArray[np.int32] | None = None
        self._charges: deque[_Charge] = deque()
        self._by_everyone = 0
        """The sum of the charges in this window that went to everyone."""
        self._of_some = 0
        """The number of charges in this window that went to some users only."""

    def charge(self, t: int, users: UserIndexes | None, epsilon: Epsilon) -> None:
        """Charge one report at t to each of `users`, or to everyone."""
        if self._charges and t < self._charges[-1].t:
            raise Mistake(Problem.TIMESTAMP_ORDER, given=t, last=self._charges[-1].t)
        while self._charges and self._charges[0].t <= t - self._window:
            self._count(self._charges.popleft(), -1)
        charge = _Charge(t, users, epsilon.nano)
        self._charges.append(charge)
        self._count(charge, 1)
        user, spent = self._most_spent(t, users, epsilon.nano)
        if spent > self._limit:
            raise GuaranteeBroken(
                Problem.EPSILON_EXCEEDED,
                user=user,
                spent=spent,
                window=self._window,
                t=t,
                limit=self._limit,
            )

    def _count(self, charge: _Charge, times: int) -> None:
        if charge.users is None:
            self._by_everyone += times * charge.nano
        else:
            self._of_some += times

    def _most_spent(self, t: int, users: UserIndexes | None, nano: int) -> tuple[int, int]:
        """Return who of the users just charged has spent most in this window, and how much."""
        if users is None:
            if not self._of_some:
                return 0, self._by_everyone
        elif not len(users):
            return 0, self._by_everyone
        elif not _mark_reports(self._reports(), users, t, t - self._window):
            return int(users[0]), self._by_everyone + nano
        accounts = self._add_up()
        return int(accounts.argmax()), self._by_everyone + int(accounts.max())

    def _add_up(self) -> NDArray[np.int64]:
        """Return what each user has spent in this window by charges that did not go to everyone."""
        accounts = np.zeros(self._users, np.int64)
        for charge in self._charges:
            if charge.users is not None:
                np.add.at(accounts, charge.users, charge.nano)
        return accounts

    def _reports(self) -> NDArray[np.int32]:
        if self._last_report is None:
            self._last_report = np.full(self._users, NEVER, np.int32)
        return self._last_report


@compiled()
def _mark_reports(last_report: NDArray[np.int32], users: UserIndexes, t: int, before: int) -> bool:
    """Note a report of each user at t; return whether any of them had reported after `before`."""
    again = False
    for user in users:
        again |= last_report[user] > before
        last_report[user] = t
    return again
