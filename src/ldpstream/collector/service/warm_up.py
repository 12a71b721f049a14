"""The warm-up before a collector listens: a simulated timestamp of each kind of stream.

Numba compiles a kernel when it is first called with arguments of some kind. Without a cache that
takes seconds, in which the reports of a first round would come too late.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from ldpstream.collector.clock import ManualClock
from ldpstream.collector.config import SelectionMethod, StreamConfig
from ldpstream.collector.credentials.device_keys import (
    SIDE_BY_SIDE,
    StreamKeys,
    vectorised_is_right,
)
from ldpstream.collector.credentials.sealing import KEY_BYTES
from ldpstream.collector.intake.validation import validate
from ldpstream.collector.reports.records import Records
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.rounds.coordinator import Coordinator
from ldpstream.collector.store.sqlite.store import SqliteStore
from ldpstream.mechanisms.registry import build
from ldpstream.privacy.randomness import SystemSource
from ldpstream.protocol.authentication import report_mac
from ldpstream.protocol.limits import DEVICE_BYTES

MOST_ROUNDS = 8
"""Of one timestamp: a mechanism asks twice at most."""

_log = logging.getLogger(__name__)


def warm_up(streams: Iterable[StreamConfig]) -> None:
    """Compile, or load, what the first rounds of these streams would have to wait for."""
    vectorised_is_right()  # says so if it is not
    try:
        with tempfile.TemporaryDirectory() as folder:
            for number, stream in enumerate(_kinds(streams)):
                with closing(_new_store(Path(folder) / f"{number}.sqlite")) as store:
                    _play(replace(stream, start_ms=0), store)
    except OSError:  # nowhere to write: the first rounds are slow, and that is all
        _log.warning("no warm-up: a folder for temporary files is missing", exc_info=True)


def _new_store(file: Path) -> SqliteStore:
    return SqliteStore(file, os.urandom(KEY_BYTES))


def _kinds(streams: Iterable[StreamConfig]) -> Iterable[StreamConfig]:
    """Return one stream of each mechanism, oracle and selection: others use the same kernels."""
    return {
        (one.mechanism, build(one.mechanism, one.settings).noise.oracle, one.selection): one
        for one in streams
    }.values()


def _play(stream: StreamConfig, store: SqliteStore) -> None:
    """Play one timestamp, from its first round to its release."""
    clock = ManualClock(0)
    coordinator = Coordinator(stream, store, clock)
    keys = StreamKeys.of_master(os.urandom(DEVICE_BYTES), stream.name)
    devices = [os.urandom(DEVICE_BYTES) for _ in range(SIDE_BY_SIDE + 1)]
    if stream.selection is SelectionMethod.ROSTER:
        for device in devices:
            store.enrol(stream.name, device)
    for _ in range(MOST_ROUNDS):
        coordinator.advance()
        if coordinator.open is None:
            return
        for records in _reports(coordinator.open, keys, devices):
            validate(records, coordinator.open, keys, coordinator.selection)
            store.accept(stream.name, coordinator.open.name, records)
        clock.advance_to(max(clock.now_ms(), coordinator.open.stored.deadline_ms))


def _reports(asking: OpenRound, keys: StreamKeys, devices: list[bytes]) -> Iterator[Records]:
    """Yield a single report, and as many as are checked side by side."""
    half, source = asking.collector.device, SystemSource()
    packed = []
    for device in devices:
        report = half.encode(half.perturb(0, source))
        packed.append(device + report_mac(keys.of(device), asking.prefix, report) + report)
    for part in (packed[:1], packed[1:]):
        yield Records.of(b"".join(part), asking.stored.report_bytes)
