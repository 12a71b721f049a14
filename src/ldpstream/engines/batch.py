"""A builder of batches, from parts that were counted in this process or elsewhere."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

from ldpstream.collector.report_log.counts import BatchCount, CountOutcome
from ldpstream.collector.report_log.messages import LoggedRound
from ldpstream.oracles.collector_half import Support


@dataclass
class BatchBuilder:
    """The counts so far of the messages `after` < sequence <= `last` of a stream."""

    stream: str
    after: int
    last: int
    attempt: uuid.UUID = field(default_factory=uuid.uuid4)
    runs: int = 0
    _outcomes: dict[str, CountOutcome] = field(default_factory=dict)
    _ends: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, wanted: LoggedRound, outcome: CountOutcome) -> None:
        before = self._outcomes.get(wanted.name)
        self._outcomes[wanted.name] = outcome if before is None else before + outcome

    def late(self, wanted: LoggedRound, number: int) -> None:
        self.add(wanted, CountOutcome(Support.none(wanted.counters), late=number))

    def end(self, wanted: LoggedRound, sequence: int) -> None:
        self._ends[wanted.name] = (sequence, wanted.counters)

    def finish(self) -> BatchCount:
        return BatchCount(
            self.attempt,
            self.stream,
            self.after,
            self.last,
            self._outcomes,
            self._ends,
            self.runs,
        )


def ends_within(ends: dict[str, int], name: str, last: int) -> bool:
    """Return whether a round ends in this batch: then no later one needs its devices."""
    return ends.get(name, last + 1) <= last
