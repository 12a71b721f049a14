"""The queue between requests and the store.

Requests put their records into a queue. One thread takes all that has gathered, round by round,
checks it in one go, has the store commit it in one go, and answers everyone at once. The busier the
collector, the more reports share a check and a disk sync; a single report is a batch of one.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from ldpstream.collector.clock import ticks
from ldpstream.collector.credentials.deny_list import NOBODY, DenyList
from ldpstream.collector.credentials.device_keys import StreamKeys
from ldpstream.collector.intake.fair_queue import FairQueue
from ldpstream.collector.intake.validation import validate
from ldpstream.collector.reports.records import Records
from ldpstream.collector.reports.verdicts import JudgedRecords, Verdict, count
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.rounds.selection import Selection
from ldpstream.collector.store.contract import Store
from ldpstream.errors import LdpStreamError, MalformedReport, Mistake, Problem

RETRY_SECONDS = 1
SHARE = 2
"""One part in so many of what may wait is the most that may come from one address."""
TIMESTAMPS_REMEMBERED = 100_000
BYTES_AT_ONCE = 2 << 20
"""Records that are checked and committed together: bounds the memory and the time of one go."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Submission:
    """Records of one request, and where its answer goes."""

    asking: OpenRound
    packed: bytes
    number: int
    answer: asyncio.Future[JudgedRecords]
    began: float
    sender: str
    """The address that it came from."""


@dataclass
class StreamIntake:
    """What the reports of one stream are validated with, and counts of the verdicts."""

    keys: StreamKeys
    selection: Selection
    outcomes: Counter[Verdict]
    denied: Callable[[], DenyList] = lambda: NOBODY
    """Returns the deny list as it is now."""
    earlier: Counter[int] = field(default_factory=Counter)
    """Reports with a key of the earlier master secret, by timestamp; of the last ones only."""

    def count(self, t: int, judged: JudgedRecords) -> None:
        """Count what came of records of timestamp t."""
        self.outcomes += count(judged.verdicts)
        if judged.renew.any():
            self.earlier[t] += int(judged.renew.sum())
            if len(self.earlier) > TIMESTAMPS_REMEMBERED:
                del self.earlier[min(self.earlier)]

    def earlier_since(self, t: int) -> int:
        """Return how many reports after timestamp t used a key of the earlier master secret."""
        return sum(number for one, number in self.earlier.copy().items() if one > t)


class IntakeQueue:
    """A queue of submissions, and the thread that empties it in batches."""

    def __init__(
        self,
        store: Store,
        streams: dict[str, StreamIntake],
        most_bytes: int,
        progress: Callable[[OpenRound], None] = lambda asking: None,
        took: Callable[[str, float], None] = lambda stream, seconds: None,
    ) -> None:
        self._store = store
        self._streams = streams
        self.most_bytes = most_bytes
        self._progress = progress
        """Called when a round has got new reports."""
        self._took = took
        """Called with the stream of a request and the seconds until its answer."""
        self.waiting = 0
        """Records that were submitted and not yet answered; touched by the event loop only."""
        self._bytes = 0
        """The length of these records: a report may have 2 bytes or 8,000."""
        self._bytes_of: dict[str, int] = {}
        """The same, by sender."""
        self._queue: FairQueue[Submission] = FairQueue()
        self._thread = threading.Thread(target=self._run, name="ldpstream-intake", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def stop(self) -> None:
        """Answer all that was submitted, then stop the thread."""
        self._queue.close()
        if self._thread.is_alive():
            self._thread.join()

    def submit(
        self, asking: OpenRound, packed: bytes, number: int, sender: str = ""
    ) -> asyncio.Future[JudgedRecords]:
        """Queue records of a round; the verdicts come once the accepted ones are on disk."""
        assert self._loop is not None
        expected = number * asking.record_bytes
        if len(packed) != expected:  # it would shift all records that are checked with it
            raise MalformedReport(Problem.REPORT_LENGTH, given=len(packed), expected=expected)
        own = self._bytes_of.get(sender, 0) + len(packed)
        if self._bytes + len(packed) > self.most_bytes or own > self.most_bytes // SHARE:
            raise Mistake(Problem.RATE_LIMITED, what="reports", seconds=RETRY_SECONDS)
        self.waiting += number
        self._bytes += len(packed)
        self._bytes_of[sender] = own
        answer: asyncio.Future[JudgedRecords] = self._loop.create_future()
        self._queue.put(Submission(asking, packed, number, answer, ticks(), sender))
        return answer

    def _run(self) -> None:
        while taken := self._queue.take(BYTES_AT_ONCE):
            by_round: dict[tuple[str, str], list[Submission]] = {}
            for one in taken:
                by_round.setdefault((one.asking.stream, one.asking.name), []).append(one)
            for together in by_round.values():
                self._process(together)

    def _process(self, together: list[Submission]) -> None:
        assert self._loop is not None
        outcome: JudgedRecords | Exception
        try:
            outcome = self._take_in(together)
        except Exception as error:
            if isinstance(error, LdpStreamError):  # it says what is wrong in one line
                _log.error("reports could not be stored: %s", error)
            else:
                _log.exception("reports could not be stored")
            outcome = error
        self._loop.call_soon_threadsafe(self._answer, together, outcome)

    def _take_in(self, together: list[Submission]) -> JudgedRecords:
        asking = together[0].asking
        stream = self._streams[asking.stream]
        packed = b"".join([one.packed for one in together])
        records = Records.of(packed, asking.stored.report_bytes)
        judged = validate(records, asking, stream.keys, stream.selection, stream.denied())
        verdicts, _ = judged
        if stream.keys.ring.is_behind and (verdicts == Verdict.MAC).any():
            raise Mistake(Problem.UNAVAILABLE, seconds=RETRY_SECONDS)
        good = verdicts == Verdict.ACCEPTED
        if good.any():
            fit = records if good.all() else records.where(good)
            verdicts[good] = self._store.accept(asking.stream, asking.name, fit)
            self._progress(asking)
        return judged

    def _answer(self, together: list[Submission], outcome: JudgedRecords | Exception) -> None:
        self.waiting -= sum(one.number for one in together)
        for one in together:
            self._bytes -= len(one.packed)
            self._bytes_of[one.sender] -= len(one.packed)
            if not self._bytes_of[one.sender]:
                del self._bytes_of[one.sender]
        if isinstance(outcome, Exception):
            for one in together:
                if not one.answer.done():  # the client may have gone away
                    one.answer.set_exception(Mistake(Problem.UNAVAILABLE, seconds=RETRY_SECONDS))
            return
        asking = together[0].asking
        self._streams[asking.stream].count(asking.stored.t, outcome)
        first = 0
        now = ticks()
        for one in together:
            self._took(one.asking.stream, now - one.began)
            if not one.answer.done():
                one.answer.set_result(outcome.part(first, one.number))
            first += one.number
