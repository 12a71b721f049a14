"""Announcements to devices: the open rounds, under a serial that grows with each change."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ldpstream.arrays import Flags
from ldpstream.collector.reports.halves import Half
from ldpstream.collector.rounds.selection import Asked
from ldpstream.collector.store.contract import NewRound
from ldpstream.protocol.answers import Round, announced
from ldpstream.protocol.authentication import report_prefix, report_prefix_1
from ldpstream.protocol.history import TermsHistory
from ldpstream.protocol.limits import HEAD_BYTES
from ldpstream.protocol.notice import Halt, undated
from ldpstream.protocol.terms import Terms


@dataclass(frozen=True)
class OpenRound:
    """A round that takes reports, with all that is needed to validate them."""

    terms: Terms
    """Those of the round's stratum: the terms at a level, whose pin MACs cover."""
    stored: NewRound
    collector: Half
    asked: Asked | None

    @property
    def stream(self) -> str:
        return self.terms.stream

    @property
    def name(self) -> str:
        return self.stored.name

    @property
    def record_bytes(self) -> int:
        return HEAD_BYTES + self.stored.report_bytes

    @cached_property
    def prefix(self) -> bytes:
        return report_prefix(self.stream, self.terms.pin, self.name, self.terms.level)

    @cached_property
    def prefix_1(self) -> bytes:
        """The prefix of devices of release 0.1.0, which are refused."""
        return report_prefix_1(self.stream, self.name)

    @cached_property
    def asked_mask(self) -> Flags:
        assert self.asked is not None
        return self.asked.mask()

    def asks(self, number: int | None) -> bool:
        """Return whether the device with this place on the roster is asked."""
        if self.asked is None:
            return True
        return (
            number is not None
            and 0 <= number < len(self.asked_mask)
            and bool(self.asked_mask[number])
        )

    def to_json(self) -> dict[str, Any]:
        one = self.stored
        asked = Round(one.name, one.t, one.epsilon_nano, one.deadline_ms, one.rate)
        return asked.to_json(one.purpose)


@dataclass(frozen=True)
class AnnouncedRounds:
    """The open rounds of a stream, of all strata, as announced under one serial."""

    serial: int
    t: int
    rounds: tuple[OpenRound, ...]
    history: TermsHistory
    """All terms that are known when it is made."""
    halt: Halt | None = None
    """Why no more rounds will be opened, or None if they will."""
    _bodies: dict[tuple[int, tuple[bool, ...]], bytes] = field(
        default_factory=dict, repr=False, compare=False
    )

    def body(self, now_ms: int, number: int | None, version: int = 1) -> bytes:
        """The announcement as a device under one version of the terms sees it, in JSON.

        All but the time is cached.
        """
        terms = self.history.versions[version - 1]
        own = [one for one in self.rounds if one.terms.version == version]
        listed = tuple(one.asks(number) for one in own)
        key = version, listed
        if key not in self._bodies:
            notice = self.history.notice(terms, now_ms, halt=self.halt)
            rounds = [one.to_json() for one, asks in zip(own, listed, strict=True) if asks]
            content = undated(announced(notice, self.serial, terms.pin, self.t, rounds))
            self._bodies[key] = json.dumps(content, separators=(",", ":")).encode()[1:]
        return b'{"now_ms":%d,%b' % (now_ms, self._bodies[key])
