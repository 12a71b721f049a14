"""The accountant: watches every report of a simulated run and stops it at the first broken promise.

It knows nothing of mechanisms. It adds up, in integer nano-epsilon, what each user has spent in the
window that ends now, and raises before a sum passes the limit.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldpstream.compiled import compiled
from ldpstream.errors import GuaranteeBroken, Problem
from ldpstream.privacy.epsilon import Epsilon

Users = NDArray[np.uint32]


@dataclass(frozen=True)
class _Charge:
    t: int
    users: Users | None
    nano: int


class Accountant:
    """w-event accounts of `users` users: 8 bytes a user, O(reports) a timestamp.

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
        self._limit = epsilon.nano
        self._window = window
        self._users = users
        self._by_each: NDArray[np.int64] | None = None
        self._by_all = 0
        self._charges: deque[_Charge] = deque()

    def charge(self, t: int, users: Users | None, epsilon: Epsilon) -> None:
        """Charge one report at t to each of `users`, or to everyone."""
        self._forget(t - self._window)
        self._charges.append(_Charge(t, users, epsilon.nano))
        spent = self._add(users, epsilon.nano)
        if spent > self._limit:
            raise GuaranteeBroken(
                Problem.EPSILON_EXCEEDED,
                user=int(np.argmax(self._each())),
                spent=spent,
                window=self._window,
                t=t,
                limit=self._limit,
            )

    def _forget(self, last: int) -> None:
        """Take back what was charged at or before `last`: it has left the window."""
        while self._charges and self._charges[0].t <= last:
            old = self._charges.popleft()
            self._add(old.users, -old.nano)

    def _add(self, users: Users | None, nano: int) -> int:
        """Add to the accounts; the most that one of the users concerned has spent now."""
        if users is None:
            self._by_all += nano
            return self._by_all + (0 if self._by_each is None else int(self._by_each.max()))
        return self._by_all + int(_add_and_find_most(self._each(), users, nano))

    def _each(self) -> NDArray[np.int64]:
        if self._by_each is None:
            self._by_each = np.zeros(self._users, np.int64)
        return self._by_each


@compiled()
def _add_and_find_most(accounts: NDArray[np.int64], users: Users, nano: int) -> np.int64:
    most = np.int64(0)
    for user in users:
        accounts[user] += nano
        most = max(most, accounts[user])
    return most
