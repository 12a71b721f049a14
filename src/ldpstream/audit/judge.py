"""The judge of what a person's devices sent, in true time.

It knows when each value was read, since the world's own callback read it, and when each report was
drawn, since the world's own source gave the coins. It shares no arithmetic with a device.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from ldpstream.audit.machine import TrueTime
from ldpstream.privacy.randomness import Source

Key = tuple[int, str]
"""The identity of a round: the timestamp as it was asked, and the name."""
OnDisk = Callable[[Key, bytes], bool]
"""A function that returns whether these bytes are on disk for this round now."""


@dataclass(frozen=True)
class RecordedPromise:
    """A promise that was made to the person when a report was drawn.

    Any half-open span of this length that holds such a report holds at most epsilon, in one stream
    or, if none is named, in all streams together.
    """

    epsilon_nano: int
    span_ms: int
    stream: str | None = None


@dataclass(eq=False)
class Draw:
    """A report drawn from a value that was read at `read_us`; it may never have been sent."""

    key: Key
    nano: int
    read_us: int
    report: bytes | None = None
    on_disk: bool = True
    stream: str = ""
    promises: tuple[RecordedPromise, ...] = ()

    @property
    def left(self) -> bool:
        return self.report is not None


@dataclass
class PersonTranscript:
    """All that one person's devices drew and sent, from any process, file or machine."""

    true: TrueTime
    draws: list[Draw] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)
    """Violations: bytes that were sent and belong to no draw."""
    altered: set[Key] = field(default_factory=set)
    """Rounds whose bytes on disk were damaged, so that repeated reports may differ."""
    by_key: defaultdict[Key, list[Draw]] = field(default_factory=lambda: defaultdict(list))

    def drawn(self, draw: Draw) -> None:
        self.draws.append(draw)
        self.by_key[draw.key].append(draw)

    def departed(self, key: Key, report: bytes, fresh: Draw | None, on_disk: OnDisk) -> Draw | None:
        """Record bytes on the wire and return their draw.

        It is the one just made, one that was sent before, or one that a fault held back.
        """
        ours = self.by_key[key]
        if fresh is not None and fresh.report not in (None, report):
            fresh = None
        known = next((one for one in reversed(ours) if one.report == report), None)
        waiting = next((one for one in reversed(ours) if not one.left), None)
        draw = fresh or known or waiting
        if draw is None:
            if key not in self.altered:
                self.strays.append(f"round {key}: bytes left that nothing was drawn for")
            return None
        if not draw.left:
            draw.report, draw.on_disk = report, on_disk(key, report)
        return draw

    @property
    def sent(self) -> list[Draw]:
        """The distinct reports that were sent, in the order in which their values were read."""
        return sorted((one for one in self.draws if one.left), key=lambda one: one.read_us)

    def violations(self, epsilon_nano: int, span_ms: int) -> list[str]:
        """Return a line for each violation, such as more than epsilon in a half-open span."""
        span_us = 1000 * span_ms
        fullest = self._fullest(self.sent, epsilon_nano, span_us)
        return [*fullest, *self._drawn_twice(span_us), *self._unpaid()]

    def broken_vows(self) -> list[str]:
        """Return a line for each promise that was broken, of those made with each report."""
        found = self._unpaid()
        sent = self.sent
        for promise in dict.fromkeys(promise for one in sent for promise in one.promises):
            bound = [one for one in sent if promise.stream in (None, one.stream)]
            who = "all streams" if promise.stream is None else promise.stream
            span_us = 1000 * promise.span_ms
            fullest = self._fullest(bound, promise.epsilon_nano, span_us, promise)
            found += [f"{who}: {line}" for line in fullest]
        return found

    def _unpaid(self) -> list[str]:
        found = [*self.strays]
        found += [
            f"round {one.key} left before it was on disk"
            for one in self.sent
            if not one.on_disk and one.key not in self.altered
        ]
        return found

    @staticmethod
    def _fullest(
        sent: list[Draw], epsilon_nano: int, span_us: int, promise: RecordedPromise | None = None
    ) -> Iterator[str]:
        """Report the fullest span, which begins with a reading, if it exceeds epsilon.

        If a promise is given, only spans count that hold a report for which it was made.
        """
        most, most_at, held, bound, end = 0, 0, 0, 0, 0
        for first in sent:
            while end < len(sent) and sent[end].read_us < first.read_us + span_us:
                held += sent[end].nano
                bound += promise is None or promise in sent[end].promises
                end += 1
            if bound and held > most:
                most, most_at = held, first.read_us
            held -= first.nano
            bound -= promise is None or promise in first.promises
        if most > epsilon_nano:
            yield (
                f"{most} nano-epsilon in the {span_us / 1e6:g} s of true time from"
                f" {(most_at - sent[0].read_us) / 1e6:g} s on, and {epsilon_nano} are promised"
            )

    def _drawn_twice(self, span_us: int) -> Iterator[str]:
        for key, ours in self.by_key.items():
            left = sorted(one.read_us for one in ours if one.left)
            if any(b - a < span_us for a, b in pairwise(left)):
                yield f"round {key} was drawn again while its debit was kept"


class ProcessObserver:
    """An observer of one process of a device: which round it considers, when it reads and draws.

    It is also the process's source of randomness.
    """

    def __init__(self, transcript: PersonTranscript, source: Source) -> None:
        self._transcript, self._source = transcript, source
        self.key: Key = (0, "")
        self._nano = 0
        self._stream, self._promises = "", tuple[RecordedPromise, ...]()
        self._read_us: int | None = None
        self._fresh: Draw | None = None

    def considers(
        self, key: Key, nano: int, stream: str = "", promises: tuple[RecordedPromise, ...] = ()
    ) -> None:
        self.key, self._nano = key, nano
        self._stream, self._promises = stream, promises
        self._read_us = self._fresh = None

    def reads(self) -> None:
        """Record that the value is read at this moment."""
        self._read_us, self._fresh = self._transcript.true.us, None

    def coin(self, favour: int, total: int) -> bool:
        self._draws()
        return self._source.coin(favour, total)

    def below(self, bound: int) -> int:
        self._draws()
        return self._source.below(bound)

    def _draws(self) -> None:
        """Record a new draw at the first coin after a reading."""
        if self._read_us is not None and self._fresh is None:
            self._fresh = Draw(
                self.key, self._nano, self._read_us, stream=self._stream, promises=self._promises
            )
            self._transcript.drawn(self._fresh)

    def departs(self, report: bytes, on_disk: OnDisk) -> Draw | None:
        """Record bytes that are sent for the round under consideration."""
        return self._transcript.departed(self.key, report, self._fresh, on_disk)
