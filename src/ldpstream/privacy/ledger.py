"""The ledger of one user: what was spent when, and whether more may be. Integers, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from ldpstream.errors import GuaranteeBroken, Problem


@dataclass(frozen=True)
class Ledger:
    """Nano-epsilon spent per timestamp, against a limit for any `window` consecutive ones.

    >>> ledger = Ledger(limit=10, window=3).spend(5, 6).spend(6, 3)
    >>> ledger.left(7), ledger.left(8), ledger.left(9)
    (1, 7, 10)
    >>> ledger.allows(7, 2), ledger.allows(8, 7)
    (False, True)

    Spends may be entered in any order: all windows that contain a timestamp count, also those that
    reach past it. A ledger whose past is unknown is one with the whole limit spent at the last
    timestamp that it may have been used at.
    """

    limit: int
    window: int
    spends: Mapping[int, int] = field(default_factory=dict)
    """By timestamp. What no window shares with the next timestamp may be left out."""

    @classmethod
    def of(cls, limit: int, window: int, entries: Iterable[tuple[int, int]]) -> Self:
        """The ledger with these entries, whether or not they keep to the limit."""
        spends: dict[int, int] = {}
        for t, nano in entries:
            spends[t] = spends.get(t, 0) + nano
        return cls(limit, window, spends)

    def most(self, t: int) -> int:
        """The most that any window containing t holds already."""
        near = sorted(one for one in self.spends if abs(one - t) < self.window)
        most = held = entered = 0
        # A window loses nothing by moving up until it starts with a spend, or with t itself.
        for start in [*(one for one in near if one < t), t]:
            while entered < len(near) and near[entered] < start + self.window:
                held += self.spends[near[entered]]
                entered += 1
            most = max(most, held)
            held -= self.spends.get(start, 0)
        return most

    def left(self, t: int) -> int:
        """What may still be spent at t."""
        return max(0, self.limit - self.most(t))

    def allows(self, t: int, nano: int) -> bool:
        """Whether this spend keeps every window within the limit."""
        return 0 < nano <= self.left(t)

    def spend(self, t: int, nano: int) -> Self:
        """The ledger after a spend that it allows."""
        if not self.allows(t, nano):
            raise GuaranteeBroken(
                Problem.EPSILON_EXCEEDED,
                user="of this ledger",
                spent=self.most(t) + nano,
                window=self.window,
                t=t,
                limit=self.limit,
            )
        return self._with(t, nano)

    def exhausted(self, t: int) -> Self:
        """The ledger after anything may have been spent up to t: silence until t + window."""
        return self._with(t, self.limit)

    def since(self, t: int) -> Self:
        """The ledger without what lies before t."""
        spends = {one: nano for one, nano in self.spends.items() if one >= t}
        return type(self)(self.limit, self.window, spends)

    def _with(self, t: int, nano: int) -> Self:
        spends = {**self.spends, t: self.spends.get(t, 0) + nano}
        return type(self)(self.limit, self.window, spends)
