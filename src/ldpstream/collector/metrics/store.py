"""A store that counts and times what passes through it."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ldpstream.collector.clock import ticks
from ldpstream.collector.metrics.meters import Meters
from ldpstream.collector.records import Records
from ldpstream.collector.store.contract import (
    Change,
    Lease,
    NewRound,
    Release,
    Round,
    RoundState,
    Store,
    Stream,
)
from ldpstream.collector.terms import Half
from ldpstream.collector.verdicts import Verdicts
from ldpstream.oracles.collector_half import See, Support

_log = logging.getLogger(__name__)


class MeteredStore(Store):
    """Another store, unchanged. It sees every change of a round and every release, once."""

    def __init__(self, inner: Store, meters: Meters) -> None:
        self._inner = inner
        self._meters = meters
        self._purposes: dict[tuple[str, str], str] = {}
        """Of rounds that are not tallied yet."""
        self.latest: dict[str, Release] = {}
        """The last release of each stream."""
        self.shared = inner.shared

    def recall(self, stream: str) -> None:
        """Look up what a stream left before a restart, or what another collector has made of it."""
        known = self._inner.stream(stream)
        if known is None:
            return
        for release in self._inner.releases(stream, known.last_t, 1):
            self.latest[stream] = release
        for key in [key for key in self._purposes if key[0] == stream]:
            del self._purposes[key]  # another collector may have tallied it
        for one in self._inner.rounds(stream, known.last_t):
            if one.state is not RoundState.TALLIED:
                self._purposes[stream, one.name] = one.purpose

    @contextmanager
    def _timed(self, stream: str, operation: str) -> Iterator[None]:
        began = ticks()
        try:
            yield
        except Exception:
            self._meters.store_errors.labels(stream, operation).inc()
            raise
        self._meters.store.labels(stream, operation).observe(ticks() - began)

    def _came(self, stream: str, round_name: str, state: RoundState) -> None:
        purpose = self._purposes.get((stream, round_name))
        if purpose is not None:
            self._meters.rounds.labels(stream, purpose, state.value).inc()

    def open_round(self, stream: str, new: NewRound) -> int:
        with self._timed(stream, "open_round"):
            serial = self._inner.open_round(stream, new)
        self._purposes[stream, new.name] = new.purpose
        self._came(stream, new.name, RoundState.OPEN)
        return serial

    def accept(self, stream: str, round_name: str, records: Records) -> Verdicts:
        with self._timed(stream, "accept"):
            return self._inner.accept(stream, round_name, records)

    def close_round(self, stream: str, round_name: str, at_ms: int) -> int:
        with self._timed(stream, "close_round"):
            serial = self._inner.close_round(stream, round_name, at_ms)
        self._came(stream, round_name, RoundState.CLOSED)
        return serial

    def tally(self, stream: str, round_name: str, support: Support) -> None:
        with self._timed(stream, "tally"):
            self._inner.tally(stream, round_name, support)
        self._came(stream, round_name, RoundState.TALLIED)
        self._purposes.pop((stream, round_name), None)

    def release(
        self, stream: str, releases: Sequence[Release], mechanism: dict[str, Any], forget_t: int
    ) -> None:
        with self._timed(stream, "release"):
            self._inner.release(stream, releases, mechanism, forget_t)
        self.latest[stream] = releases[-1]
        for one in releases:
            self._meters.releases.labels(stream, kind_of(one)).inc()
            self._meters.asked.labels(stream).inc(one.asked)
        last = releases[-1]
        facts = {"stream": stream, "t": last.t, "kind": kind_of(last), "number": len(releases)}
        _log.info("released", extra=facts | {"asked": last.asked, "received": last.received})

    # Who conducts

    def lease(self, stream: str, holder: str, seconds: float) -> Lease | None:
        return self._inner.lease(stream, holder, seconds)

    def give_back(self, lease: Lease) -> None:
        self._inner.give_back(lease)

    def under(self, lease: Lease) -> MeteredStore:
        held = copy.copy(self)  # it counts on the same meters
        held._inner = self._inner.under(lease)
        return held

    def claim(self, name: str, value: str) -> bool:
        return self._inner.claim(name, value)

    def pulse(self, stream: str) -> tuple[int, int]:
        return self._inner.pulse(stream)

    # What changes nothing, or is rare

    def stream(self, name: str) -> Stream | None:
        return self._inner.stream(name)

    def create_stream(self, name: str, terms: dict[str, Any]) -> Stream:
        return self._inner.create_stream(name, terms)

    def enrol(self, stream: str, device: bytes) -> int:
        with self._timed(stream, "enrol"):
            return self._inner.enrol(stream, device)

    def roster(self, stream: str, first: int = 0) -> bytes:
        return self._inner.roster(stream, first)

    def received(self, stream: str, round_name: str) -> int:
        return self._inner.received(stream, round_name)

    def reports(self, stream: str, round_name: str) -> Iterator[Records]:
        return self._inner.reports(stream, round_name)

    def count(
        self, stream: str, round_name: str, collector: Half, see: See | None = None
    ) -> Support | None:
        return self._inner.count(stream, round_name, collector, see)

    def rounds(self, stream: str, after_t: int) -> list[Round]:
        return self._inner.rounds(stream, after_t)

    def releases(self, stream: str, since: int, limit: int) -> list[Release]:
        return self._inner.releases(stream, since, limit)

    def note(self, stream: str, name: str) -> dict[str, Any] | None:
        return self._inner.note(stream, name)

    def write_note(self, stream: str, name: str, content: dict[str, Any]) -> None:
        with self._timed(stream, "write_note"):
            self._inner.write_note(stream, name, content)

    def change_setting(self, stream: str, name: str, change: Change) -> dict[str, Any]:
        with self._timed(stream, "change_setting"):
            return self._inner.change_setting(stream, name, change)

    def close(self) -> None:
        self._inner.close()


def kind_of(release: Release) -> str:
    """Fresh, carried over, or missed."""
    if release.missed:
        return "missed"
    return "fresh" if release.content["fresh"] else "carried"
