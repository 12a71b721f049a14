"""All versions of a stream's terms: which are in force, which still count, and their strata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ldpstream.protocol.notice import Halt, Notice
from ldpstream.protocol.strata import stratum_in
from ldpstream.protocol.terms import Terms


@dataclass(frozen=True)
class TermsHistory:
    """The terms of one stream, from the first to the latest, without gaps."""

    versions: tuple[Terms, ...]

    @classmethod
    def read(cls, sent: Sequence[dict[str, Any]]) -> TermsHistory:
        """Validate the terms of all versions, in order."""
        return cls(tuple(Terms.read(one) for one in sent))

    @property
    def first(self) -> Terms:
        return self.versions[0]

    @property
    def latest(self) -> Terms:
        """The newest terms, which may not be in force yet."""
        return self.versions[-1]

    @property
    def longest_window(self) -> int:
        """The longest window of any version and level: how far back rounds matter."""
        return max(one.window for terms in self.versions for one in terms.strata)

    def version(self, number: int) -> Terms | None:
        return self.versions[number - 1] if 1 <= number <= len(self.versions) else None

    def with_pin(self, pin: str) -> Terms | None:
        return next((one for one in self.versions if one.pin == pin), None)

    def successor_of(self, terms: Terms) -> Terms | None:
        """Return the terms that directly follow these, also before they are in force."""
        return self.version(terms.version + 1)

    def at(self, t: int) -> Terms:
        """Return the terms that are in force at t."""
        begun = (one for one in reversed(self.versions) if first_t(one) <= t)
        return next(begun, self.first)

    def last_t(self, terms: Terms) -> int | None:
        """Return the last timestamp at which reports under these terms count, or None if open."""
        successor = self.successor_of(terms)
        return (
            None if successor is None or successor.succeeds is None else successor.succeeds.until_t
        )

    def next_change(self, t: int) -> int | None:
        """Return the first timestamp after t at which other terms come into force."""
        return next((first_t(one) for one in self.versions if first_t(one) > t), None)

    def is_counted(self, terms: Terms, t: int) -> bool:
        """Return whether reports under these terms count at t."""
        last_t = self.last_t(terms)
        return first_t(terms) <= t and (last_t is None or t <= last_t)

    def strata_at(self, t: int) -> tuple[Terms, ...]:
        """Return the strata that are counted at t: those of the terms in force, then older ones."""
        counted = [one for one in reversed(self.versions) if self.is_counted(one, t)]
        return tuple(stratum for one in counted for stratum in one.strata)

    def deadline_of(self, t: int) -> int:
        """Return when the rounds of t close with slots: devices of all terms have had their moment.

        Rounds of one ask close together, so the latest deadline holds for all of them.
        """
        return max(one.deadline_of(t) for one in self.strata_at(t))

    def stratum(self, round_name: str) -> Terms | None:
        """Return the terms, at their level, that a round is for; None if there are none."""
        version, level = stratum_in(round_name) or (0, "")
        terms = self.version(version)
        return terms.at_level(level) if terms is not None and terms.has_level(level) else None

    def places(self, old: Terms, new: Terms) -> tuple[int, ...] | None:
        """Return the index in later terms of each earlier label, or None for numbers."""
        if old.domain is None or new.domain is None:
            return None
        names = old.domain.labels
        for one in self.versions[old.version : new.version]:
            before = self.versions[one.version - 2].domain
            assert before is not None
            assert one.succeeds is not None
            called = dict(zip(before.labels, one.succeeds.labels or (), strict=True))
            names = tuple(called[name] for name in names)
        return tuple(new.domain.index(name) for name in names)

    def notice(
        self, terms: Terms, now_ms: int, *, renew: bool = False, halt: Halt | None = None
    ) -> Notice:
        """Return what a device under these terms is to know, whatever it has asked or sent."""
        successor = self.successor_of(terms)
        return Notice(now_ms, None if successor is None else successor.pin, renew, halt)


def first_t(terms: Terms) -> int:
    """Return the first timestamp that terms are in force at."""
    return 1 if terms.succeeds is None else terms.succeeds.from_t
