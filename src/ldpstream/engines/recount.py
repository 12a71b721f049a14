"""A recount of what the log still holds, to check that what was stored is what was sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, Protocol

from ldpstream.collector.report_log.contract import ReportLog
from ldpstream.collector.report_log.counts import LogCounts, LogTally
from ldpstream.collector.store.contract import StoredRound
from ldpstream.engines.counting import ShardCount, scatter
from ldpstream.oracles.collector_half import Support
from ldpstream.protocol.strata import ask_name


@dataclass(frozen=True)
class Retained:
    """A round of which the log still holds everything: `after` < sequence <= `end`.

    The rounds of an ask are opened after the ends of those of the ask before it are in the log. So
    all of a round's reports are between those ends and its own.
    """

    stream: str
    name: str
    after: int
    end: int


Supports = dict[tuple[str, str], Support]
"""By stream and round, without the rounds in which nobody has reported."""
Recount = Callable[[Sequence[Retained]], Supports]
"""Counts rounds from scratch."""


class Rounds(Protocol):
    """A store, or an archive of one."""

    def rounds(self, stream: str, after_t: int) -> list[StoredRound]: ...


def retained(log: ReportLog, stream: str) -> list[Retained]:
    """Return the rounds that have ended and of which nothing has expired."""
    first = log.extent(stream).first
    ends = sorted(log.ends(stream, 0).items(), key=lambda one: one[1])
    asks = [list(ask) for _, ask in groupby(ends, key=lambda one: ask_name(one[0]))]
    before = [[("", 0)], *asks] if first <= 1 else asks
    return [
        Retained(stream, name, earlier[-1][1], end)
        for earlier, ask in pairwise(before)
        for name, end in ask
    ]


def recount_here(log: ReportLog) -> Recount:
    """Return a recount that runs in this process, round by round."""

    def one_round(one: Retained) -> Support | None:
        tables: dict[int, ShardCount] = {}
        for part in scatter(log.read(one.stream, one.after, one.end), {one.name: one.end}):
            if part.round.name == one.name and part.shard >= 0:
                table = tables.setdefault(part.shard, ShardCount(part.round, ()))
                table.add(part.packed)
        supports = [table.outcome.support for table in tables.values()]
        return sum(supports[1:], supports[0]) if supports else None

    def work(rounds: Sequence[Retained]) -> Supports:
        found = {(one.stream, one.name): one_round(one) for one in rounds}
        return {key: support for key, support in found.items() if support is not None}

    return work


def compare(
    log: ReportLog, counts: LogCounts, store: Rounds, streams: Sequence[str], recount: Recount
) -> Iterator[dict[str, Any]]:
    """Yield a row for each retained round: the log's count, the stored one, whether they agree."""
    rounds = [one for stream in streams for one in retained(log, stream)]
    again = recount(rounds)
    for stream in streams:
        tallied = {one.name: one.support for one in store.rounds(stream, 0)}
        for one in rounds:
            tally = counts.tally(stream, one.name)
            if one.stream == stream and tally is not None and tally.ended is not None:
                found = again.get((stream, one.name))
                yield _row(one, found, tally, tallied.get(one.name) or tally.outcome.support)


def _row(one: Retained, found: Support | None, tally: LogTally, stored: Support) -> dict[str, Any]:
    counted = tally.outcome.support
    found = found or Support.none(len(counted.counts))
    return {
        "stream": one.stream,
        "round": one.name,
        "reports": found.reports,
        "stored": stored.reports,
        "repeated": tally.outcome.repeated,
        "conflicting": tally.outcome.conflicting,
        "late": tally.outcome.late,
        "equal": _same(found, counted) and _same(found, stored),
    }


def _same(one: Support, other: Support) -> bool:
    return one.reports == other.reports and one.counts.tolist() == other.counts.tolist()
