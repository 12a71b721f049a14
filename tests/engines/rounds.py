"""Rounds for the tests of engines: reports whose true counts are known, in a log of their own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

import numpy as np

from ldpstream.collector.report_log.contract import ReportLog
from ldpstream.collector.report_log.counts import LogCounts, LogTally
from ldpstream.collector.report_log.jetstream import JetStreamLog
from ldpstream.collector.report_log.messages import LoggedRound
from ldpstream.collector.reports.records import Records
from ldpstream.collector.store.database import Database
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.limits import HEAD_BYTES
from tests.jetstream import NatsServer

LABELS = 16
EPSILON = Epsilon.of(1)
COLLECTOR = Oracle.OLH.collector(LABELS, EPSILON)


def a_round(stream: str, t: int = 1) -> LoggedRound:
    report_bytes = COLLECTOR.device.report_bytes
    return LoggedRound(stream, f"{t}-publication", "olh", LABELS, EPSILON.nano, report_bytes)


def reports(number: int, seed: int = 0, devices: int = 0) -> Records:
    """Well-formed OLH reports of devices `devices`, `devices` + 1, ..., with random codes."""
    source = np.random.default_rng(seed)
    size = COLLECTOR.device.report_bytes
    table = source.integers(0, 256, (number, HEAD_BYTES + size), dtype=np.uint8)
    names = np.zeros((number, 2), ">u8")
    names[:, 1] = np.arange(devices, devices + number)
    table[:, :16] = names.view(np.uint8).reshape(number, 16)
    table[:, HEAD_BYTES] = 1
    table[:, -1] %= COLLECTOR.device.buckets  # type: ignore[attr-defined]
    return Records(table)


def truth(*counted: Records) -> list[int]:
    """Return how many of these reports support each label."""
    table = np.concatenate([one.reports for one in counted])
    counts: list[int] = COLLECTOR.support(COLLECTOR.decode_table(table)).counts.tolist()
    return counts


def wrong(tally: LogTally | None, *counted: Records) -> str:
    """Return what is wrong with a final tally of these reports; empty if nothing is."""
    if tally is None or tally.ended is None:
        return "the round is not counted"
    number = sum(map(len, counted))
    if tally.outcome.support.reports != number:
        return f"{tally.outcome.support.reports} reports are counted, not {number}"
    if tally.outcome.support.counts.tolist() != truth(*counted):
        return "the counts are not those of the reports"
    return ""


@dataclass(frozen=True)
class Logged:
    """A log and what is counted of it, with a stream that no other test uses."""

    log: ReportLog
    counts: LogCounts
    stream: str


@contextmanager
def logged(server: NatsServer, database: Database) -> Iterator[Logged]:
    with ExitStack() as opening:
        log = opening.enter_context(closing(JetStreamLog(server.settings)))
        counts = opening.enter_context(closing(LogCounts(database)))
        yield Logged(log, counts, f"s{uuid.uuid4().hex[:8]}")
