"""The ledger of one user: what was spent when, and whether more may be spent. Integers, no I/O.

The rule, with its proof, is in docs/guarantee.md. Moments are integers on one timeline that only
goes forward: milliseconds of a device's own time, or the timestamps of a simulation.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

from ldpstream.errors import GuaranteeBroken, Problem


@dataclass(frozen=True)
class Promise:
    """A limit of `epsilon_nano` on any half-open span of this length, wherever it begins."""

    epsilon_nano: int
    span: int
    until: int | None = None
    """The moment from which it does not bind any more: a span after its end; None: it goes on."""

    def binds(self, moment: int) -> bool:
        return self.until is None or moment < self.until


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
    """

    promises: tuple[Promise, ...]
    debits: tuple[tuple[int, int], ...] = ()
    """Pairs of moment and nano-epsilon, in the order of moments."""
    forgotten: int | None = None
    """The newest moment whose debits were dropped: a longer promise may still depend on them."""

    @classmethod
    def of(
        cls,
        promises: Iterable[Promise],
        debits: Iterable[tuple[int, int]],
        forgotten: int | None = None,
    ) -> Self:
        """Return the ledger with these debits, in any order, whether or not they keep a promise."""
        return cls(tuple(promises), tuple(sorted(debits)), forgotten)

    def left(self, moment: int) -> int:
        """Return the nano-epsilon that may be spent at this moment."""
        binding = (one for one in self.promises if one.binds(moment))
        return max(0, min(self._left_of(promise, moment) for promise in binding))

    def _left_of(self, promise: Promise, moment: int) -> int:
        begin = moment - promise.span
        if self.forgotten is not None and self.forgotten > begin:
            return 0
        return promise.epsilon_nano - sum(nano for at, nano in self.debits if at > begin)

    def allows(self, moment: int, nano: int) -> bool:
        """Return whether a spend that is checked at this moment keeps every promise."""
        return 0 < nano <= self.left(moment)

    def free_from(self, nano: int) -> int | None:
        """Return the first moment at which this much may be spent if nothing is spent before.

        Return None if a promise is smaller than that.
        """
        first = 0
        for promise in self.promises:
            if nano > promise.epsilon_nano:
                if promise.until is None:
                    return None
                first = max(first, promise.until)
                continue
            binding = [] if self.forgotten is None else [self.forgotten]
            held = 0
            for at, spent in reversed(self.debits):
                held += spent
                if held + nano > promise.epsilon_nano:
                    binding.append(at)
                    break
            free = max((at + promise.span for at in binding), default=0)
            first = max(first, free if promise.until is None else min(free, promise.until))
        return first

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

    def exhausted(self, moment: int) -> Self:
        """Return the ledger with everything spent at this moment, since the past is unknown.

        It is as if debits of this moment were forgotten: no promise allows any more for its span,
        not even one that is made later.
        """
        return replace(self, forgotten=max(moment, self.forgotten or moment))

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
