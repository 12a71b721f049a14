"""The report log on NATS JetStream: a JetStream stream for each stream, kept in files."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TypeVar

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    RawStreamMsg,
    StorageType,
    StreamConfig,
)
from nats.js.client import JetStreamContext
from nats.js.errors import APIError, NotFoundError

from ldpstream.collector.report_log.contract import (
    Appended,
    LogEntry,
    LogExtent,
    LogSettings,
    ReportLog,
)
from ldpstream.collector.report_log.event_loop_thread import EventLoopThread
from ldpstream.collector.report_log.messages import LoggedRound, Message, MessageKind, frame_bytes
from ldpstream.collector.reports.records import Records
from ldpstream.errors import Mistake, Problem

ANSWER_SECONDS = 2.0
"""How long one attempt waits for the server."""
RETRY_SECONDS = 0.2
DUPLICATE_SECONDS = 120.0
"""How long the server recognises duplicates; an attempt is not repeated for longer."""
MESSAGE_BYTES = 512 << 10
"""The longest message: large enough that the server's work for it does not matter."""
FETCH = 32
"""Messages that are fetched at once: 16 MB at most."""

_EXPECTED_LAST = "Nats-Expected-Last-Subject-Sequence"
_MESSAGE_ID = "Nats-Msg-Id"
AWAY = 503
_WRONG_LAST = 10071
"""The server's code for: the subject has a later message than expected."""

PullSubscription = JetStreamContext.PullSubscription
Answer = TypeVar("Answer")


class JetStreamLog(ReportLog):
    """A report log over one connection, which reconnects by itself."""

    def __init__(self, settings: LogSettings) -> None:
        self._settings = settings
        self._made: set[str] = set()
        self._bridge = EventLoopThread("ldpstream-log")
        try:
            self._client: Client = self._bridge.call(_connect(settings))
        except (NatsError, TimeoutError, OSError) as error:
            self._bridge.close()
            raise _unavailable(settings, error) from None
        self._server: JetStreamContext = self._client.jetstream(timeout=ANSWER_SECONDS)
        self._check_jetstream()

    def close(self) -> None:
        self._bridge.call(self._client.close())
        self._bridge.close()

    def _check_jetstream(self) -> None:
        """Refuse a server that has no JetStream: it would take reports, and keep none of them."""
        try:
            self._bridge.call(self._with_retries(self._server.account_info))
        except (NatsError, Mistake) as error:
            self.close()
            if isinstance(error, Mistake):
                raise
            raise _unavailable(self._settings, error) from None

    # Writing

    def append(self, wanted: LoggedRound, records: Records) -> Sequence[Appended]:
        self._make(wanted.stream)
        header = wanted.packed
        most = max(1, (MESSAGE_BYTES - frame_bytes(header)) // wanted.record_bytes)
        parts = [records.table[first : first + most] for first in range(0, len(records), most)]
        payloads = [Message(MessageKind.REPORTS, header, part.tobytes()).packed for part in parts]
        subject = f"ldpstream.{wanted.stream}.reports"

        async def publish_all() -> list[int]:
            return await asyncio.gather(*(self._publish(subject, one) for one in payloads))

        sequences = self._bridge.call(publish_all())
        return [
            Appended(sequence, len(part)) for sequence, part in zip(sequences, parts, strict=True)
        ]

    async def _publish(self, subject: str, payload: bytes) -> int:
        headers = {_MESSAGE_ID: uuid.uuid4().hex}
        acknowledged = await self._with_retries(
            lambda: self._server.publish(subject, payload, headers=dict(headers))
        )
        return acknowledged.seq

    def end(self, wanted: LoggedRound) -> int:
        self._make(wanted.stream)
        payload = Message(MessageKind.END, wanted.packed, b"").packed
        subject = _end_subject(wanted.stream, wanted.name)
        headers = {_EXPECTED_LAST: "0"}
        try:
            acknowledged = self._bridge.call(
                self._with_retries(
                    lambda: self._server.publish(subject, payload, headers=dict(headers))
                )
            )
        except APIError as error:
            if error.err_code != _WRONG_LAST:
                raise
            stands = self.ended(wanted.stream, wanted.name)
            assert stands is not None
            return stands
        return acknowledged.seq

    def _make(self, stream: str) -> None:
        """Create the stream's log, or apply changed settings to the one that is there."""
        if stream in self._made:
            return
        config = StreamConfig(
            name=_log_name(stream),
            subjects=[f"ldpstream.{stream}.>"],
            storage=StorageType.FILE,
            num_replicas=self._settings.replicas,
            max_age=self._settings.retention_hours * 3600,
            duplicate_window=min(DUPLICATE_SECONDS, self._settings.retention_hours * 3600),
        )

        async def make() -> None:
            try:
                await self._server.add_stream(config)
            except APIError:
                await self._server.update_stream(config)

        self._bridge.call(self._with_retries(make))
        self._made.add(stream)

    # Reading

    def ended(self, stream: str, round_name: str) -> int | None:
        return self._last_of(stream, _end_subject(stream, round_name))

    def last_end(self, stream: str) -> int:
        return self._last_of(stream, _end_subject(stream, "*")) or 0

    def _last_of(self, stream: str, subject: str) -> int | None:
        """The last position of a subject, from JetStream's leader: a replica may lag behind."""
        self._make(stream)

        async def last() -> RawStreamMsg | None:
            try:
                return await self._server.get_msg(_log_name(stream), subject=subject)
            except NotFoundError:
                return None

        found = self._bridge.call(self._with_retries(last))
        return None if found is None else found.seq

    def ends(self, stream: str, after: int) -> dict[str, int]:
        self._make(stream)
        return {
            entry.message.round.name: entry.sequence
            for entry in self._read(stream, after, self.last_end(stream), _end_subject(stream, "*"))
        }

    def extent(self, stream: str) -> LogExtent:
        self._make(stream)
        known = self._bridge.call(
            self._with_retries(lambda: self._server.stream_info(_log_name(stream)))
        )
        return LogExtent(known.state.first_seq, known.state.last_seq, known.state.bytes)

    def read(self, stream: str, after: int, last: int) -> Iterator[LogEntry]:
        yield from self._read(stream, after, last, f"ldpstream.{stream}.>")

    def _read(self, stream: str, after: int, last: int, subject: str) -> Iterator[LogEntry]:
        reading = _Reading(self, stream, subject, after, last)
        try:
            while entries := self._bridge.call(self._with_retries(reading.next_entries)):
                yield from entries
        finally:
            self._bridge.call(reading.stop())

    async def _consumer(self, stream: str, subject: str, after: int) -> PullSubscription:
        return await self._server.pull_subscribe(
            subject,
            stream=_log_name(stream),
            config=ConsumerConfig(
                deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=after + 1,
                ack_policy=AckPolicy.NONE,
                inactive_threshold=30.0,
            ),
        )

    async def _first(self, stream: str) -> int:
        known = await self._server.stream_info(_log_name(stream))
        return known.state.first_seq

    async def _with_retries(self, attempt: Callable[[], Awaitable[Answer]]) -> Answer:
        """Retry while the server is unavailable; what it refuses is not retried."""
        end = monotonic() + self._settings.patience_seconds
        while True:
            try:
                return await attempt()
            except APIError as error:
                if error.code != AWAY:
                    raise
                failure: Exception = error
            except (NatsError, TimeoutError, OSError) as error:
                failure = error
            if monotonic() > end:
                raise _unavailable(self._settings, failure) from failure
            await asyncio.sleep(RETRY_SECONDS)


@dataclass
class _Reading:
    """A range that is being read; after a lost connection a new consumer resumes the last one."""

    log: JetStreamLog
    stream: str
    subject: str
    after: int
    last: int
    consumer: PullSubscription | None = None

    async def next_entries(self) -> list[LogEntry]:
        """The next messages; none once the whole range is read."""
        try:
            return await self._fetch()
        except BaseException:
            await self.stop()
            raise

    async def _fetch(self) -> list[LogEntry]:
        if self.consumer is None:
            self.after = max(self.after, await self.log._first(self.stream) - 1)  # skip expired
            if self.after >= self.last:
                return []
            self.consumer = await self.log._consumer(self.stream, self.subject, self.after)
        if self.after >= self.last:
            return []
        wanted = min(FETCH, self.last - self.after)
        fetched = [_entry(one) for one in await self.consumer.fetch(wanted, ANSWER_SECONDS)]
        if fetched:
            self.after = fetched[-1].sequence
        return [entry for entry in fetched if entry.sequence <= self.last]

    async def stop(self) -> None:
        consumer, self.consumer = self.consumer, None
        if consumer is not None:
            with contextlib.suppress(NatsError):
                await consumer.unsubscribe()


async def _connect(settings: LogSettings) -> Client:
    async def quiet(error: Exception) -> None:
        """Ignore the error: each call reports its own."""

    connecting = nats.connect(
        settings.url,
        name="ldpstream",
        connect_timeout=ANSWER_SECONDS,
        max_reconnect_attempts=-1,
        reconnect_time_wait=RETRY_SECONDS,
        error_cb=quiet,
    )
    return await asyncio.wait_for(connecting, settings.patience_seconds)


def _unavailable(settings: LogSettings, error: Exception) -> Mistake:
    what = str(error).removeprefix("nats: ") or "it does not answer"
    return Mistake(Problem.LOG_UNAVAILABLE, where=settings, what=what)


def _entry(message: Msg) -> LogEntry:
    return LogEntry(message.metadata.sequence.stream, Message.of(message.data))


def _log_name(stream: str) -> str:
    return f"LDPSTREAM_{stream}"


def _end_subject(stream: str, round_name: str) -> str:
    return f"ldpstream.{stream}.end.{round_name}"
