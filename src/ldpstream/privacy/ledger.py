"""The ledger of one user: what was spent when, and whether more may be spent. Integers, no I/O.

The rule, with its proof, is in docs/guarantee.md. Moments are integers on one timeline that only
goes forward: milliseconds of a device's own time, or the timestamps of a simulation.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

from ldpstream.errors import GuaranteeBroken, Problem

UNLIMITED = 1 << 62
"""What is left where no promise binds any more."""


@dataclass(frozen=True)
class Promise:
    """A limit of `epsilon_nano` on any half-open span of this length, wherever it begins."""

    epsilon_nano: int
    span: int
    until: int | None = None
    """The moment from which it binds no more: a span after its end, or None if it goes on."""

    def binds(self, moment: int) -> bool:
        return self.until is None or moment < self.until


@dataclass(frozen=True)
class Reserve:
    """A part of every promise that is kept free for one stream, as long as it has not spent it."""

    nano: int
    debits: tuple[tuple[int, int], ...]
    """What the stream has spent, which is among the ledger's debits."""
    asks: bool = False
    """Whether it is the stream that asks to spend."""

    def unfilled(self, begin: int) -> int:
        """Return how much is still to be kept free, after what was spent later than `begin`."""
        return max(0, self.nano - sum(nano for at, nano in self.debits if at > begin))


@dataclass(frozen=True)
class Ledger:
    """The debits of one user, in nano-epsilon by moment, against a list of promises.

    >>> ledger = Ledger((Promise(10, span=3),)).spend(5, 6).spend(6, 3)
    >>> ledger.left(7), ledger.left(8), ledger.left(9)
    (1, 7, 10)
    >>> ledger.free_from(7), ledger.free_from(11)
    (8, None)

    If the past is unknown, everything counts as spent at the moment when that was found out. The
    first promise is in force; those that have ended bind until their span has passed:

    >>> Ledger((Promise(10, span=3), Promise(5, span=4, until=8)), ((5, 4),)).left(7)
    1

    Reserves keep a part free for others, of which they have spent some:

    >>> Ledger((Promise(10, span=3),), ((5, 1),), reserves=(Reserve(4, ((5, 1),)),)).left(6)
    6
    """

    promises: tuple[Promise, ...]
    debits: tuple[tuple[int, int], ...] = ()
    """Pairs of moment and nano-epsilon, in the order of moments."""
    forgotten: int | None = None
    """The newest moment whose debits were dropped: a longer promise may still depend on them."""
    reserves: tuple[Reserve, ...] = ()

    @classmethod
    def of(
        cls,
        promises: Iterable[Promise],
        debits: Iterable[tuple[int, int]],
        forgotten: int | None = None,
        reserves: tuple[Reserve, ...] = (),
    ) -> Self:
        """Return the ledger with these debits, in any order, whether or not they keep a promise."""
        return cls(tuple(promises), tuple(sorted(debits)), forgotten, reserves)

    def left(self, moment: int) -> int:
        """Return the nano-epsilon that may be spent at this moment."""
        binding = (one for one in self.promises if one.binds(moment))
        left = (self._left_of(promise, moment) for promise in binding)
        return max(0, min(left, default=UNLIMITED))

    def _left_of(self, promise: Promise, moment: int) -> int:
        begin = moment - promise.span
        if self.forgotten is not None and self.forgotten > begin:
            return 0
        left = promise.epsilon_nano - sum(nano for at, nano in self.debits if at > begin)
        left -= sum(one.unfilled(begin) for one in self.reserves if not one.asks)
        own = sum(one.unfilled(begin) for one in self.reserves if one.asks)
        return left if left >= own else 0  # a reserve that does not fit allows nothing yet

    def allows(self, moment: int, nano: int) -> bool:
        """Return whether a spend that is checked at this moment keeps every promise."""
        return 0 < nano <= self.left(moment)

    def free_from(self, nano: int) -> int | None:
        """Return the first moment at which this much may be spent if nothing is spent before.

        Return None if a promise is smaller than that.
        """
        first = 0
        for promise in self.promises:
            free = self._free_from(promise, nano)
            if promise.until is not None:
                free = promise.until if free is None else min(free, promise.until)
            if free is None:
                return None
            first = max(first, free)
        return first

    def _free_from(self, promise: Promise, nano: int) -> int | None:
        """Return the first moment at which one promise allows this much; None if it never does."""
        known = () if self.forgotten is None else (self.forgotten,)
        ends = sorted(at + promise.span for at in (*known, *(at for at, _ in self.debits)))
        moments = [0, *ends]  # what is left changes at these only, and never falls
        place = bisect_left(moments, True, key=lambda at: self._left_of(promise, at) >= nano)
        return moments[place] if place < len(moments) else None

    def spend(self, moment: int, nano: int, checked: int | None = None) -> Self:
        """Return the ledger after a debit that is entered at `moment`.

        If the value was read before `moment`, give the moment before the reading as `checked`: the
        check is made there.
        """
        at = moment if checked is None else checked
        if not self.allows(at, nano):
            raise GuaranteeBroken(
                Problem.EPSILON_EXCEEDED,
                user="of this ledger",
                spent=self.promises[0].epsilon_nano - self.left(at) + nano,
                window=self.promises[0].span,
                t=at,
                limit=self.promises[0].epsilon_nano,
            )
        return self.with_debit(moment, nano)

    def with_debit(self, moment: int, nano: int) -> Self:
        """Return the ledger with one more debit, whether or not a promise allows it."""
        return replace(self, debits=tuple(sorted((*self.debits, (moment, nano)))))

    @property
    def longest_span(self) -> int:
        return max((promise.span for promise in self.promises), default=0)

    def forget(self, moment: int) -> Self:
        """Return the ledger without the debits that no promise depends on at this moment."""
        first = bisect_right(self.debits, moment - self.longest_span, key=lambda debit: debit[0])
        if first == 0:
            return self
        newest = self.debits[first - 1][0]
        known = newest if self.forgotten is None else max(newest, self.forgotten)
        return replace(self, debits=self.debits[first:], forgotten=known)


@dataclass(frozen=True)
class Budget:
    """Ledgers that all have to allow a spend: a stream's own, and that of a limit over streams.

    >>> own, limit = Ledger((Promise(10, span=3),)), Ledger((Promise(6, span=9),), ((1, 2),))
    >>> Budget((own, limit)).left(2), Budget((own, limit)).free_from(5)
    (4, 10)
    """

    ledgers: tuple[Ledger, ...]

    def left(self, moment: int) -> int:
        """Return the nano-epsilon that may be spent at this moment."""
        return min(ledger.left(moment) for ledger in self.ledgers)

    def allows(self, moment: int, nano: int) -> bool:
        """Return whether a spend that is checked at this moment keeps every promise."""
        return all(ledger.allows(moment, nano) for ledger in self.ledgers)

    def free_from(self, nano: int) -> int | None:
        """Return the first moment at which this much may be spent; None if there is none."""
        moments = [ledger.free_from(nano) for ledger in self.ledgers]
        known = [one for one in moments if one is not None]
        return max(known) if len(known) == len(moments) else None

    def check(self, moment: int, nano: int) -> None:
        """Raise `GuaranteeBroken` if a spend that is checked at this moment breaks a promise."""
        for ledger in self.ledgers:
            ledger.spend(moment, nano)
