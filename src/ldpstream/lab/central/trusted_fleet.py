from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ldpstream.mechanisms.division import Division
from ldpstream.mechanisms.messages import Ask, Tally
from ldpstream.privacy.accountant import Accountant
from ldpstream.streams.stream import Snapshot


class TrustedFleet:
    """Users who tell the server the truth, while an accountant checks what is published.

    An ask is answered with the exact histogram; its epsilon is what the server may publish of it,
    and that is charged to everyone. All asks of a timestamp are about one report of each user.
    """

    def __init__(self, division: Division) -> None:
        self._users = division.population
        self._accountant = Accountant(self._users, division.epsilon, division.window)
        self._reported_at = 0
        self.reports = 0

    def at(self, t: int, snapshot: Snapshot) -> Callable[[Ask], Tally]:
        def answer(ask: Ask) -> Tally:
            self._accountant.charge(t, None, ask.epsilon)
            if self._reported_at != t:
                self._reported_at = t
                self.reports += self._users
            exact = snapshot.counts / self._users
            return Tally(exact, np.zeros_like(exact), self._users)

        return answer
