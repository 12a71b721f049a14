"""Report logs as a streaming source of Spark. A stream's offset is the sequence in its log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from ldpstream.collector.report_log.contract import LogSettings
from ldpstream.collector.report_log.counts import LogCounts
from ldpstream.collector.report_log.jetstream import JetStreamLog
from ldpstream.collector.store.database import Database
from ldpstream.engines.batch_size import batch_end
from ldpstream.engines.recount import Retained

FORMAT = "ldpstream-log"
ROWS = 16
"""Messages that go to the JVM together: 8 MB at most."""

SCHEMA = pa.schema(
    [
        ("stream", pa.string()),
        ("after", pa.int64()),
        ("last", pa.int64()),
        ("sequence", pa.int64()),
        ("payload", pa.binary()),
    ]
)
"""Each row has the range of the batch; a row without a payload has nothing else."""


@dataclass(frozen=True)
class Options:
    """The options of the source, which Spark passes on as text."""

    log: LogSettings
    database: Database
    streams: tuple[str, ...]
    partitions: int

    def to_json(self) -> str:
        return json.dumps(
            {
                "log": vars(self.log),
                "database": self.database.url,
                "streams": self.streams,
                "partitions": self.partitions,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Options:
        given = json.loads(text)
        return cls(
            LogSettings(**given["log"]),
            Database(given["database"]),
            tuple(given["streams"]),
            given["partitions"],
        )


@dataclass
class MessageRange(InputPartition):
    """Messages `first` < sequence <= `stop`, of a batch `after` < sequence <= `last`."""

    stream: str
    after: int
    last: int
    first: int
    stop: int


class LogSource(DataSource):
    """The data source that `spark.readStream.format(FORMAT)` reads."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return "stream string, after bigint, last bigint, sequence bigint, payload binary"

    def reader(self, schema: Any) -> RangeReader:
        given = [Retained(**one) for one in json.loads(self.options["rounds"])]
        return RangeReader(Options.from_json(self.options["ldpstream"]), given)

    def streamReader(self, schema: Any) -> LogReader:  # noqa: N802 - Spark's names
        return LogReader(Options.from_json(self.options["ldpstream"]))


class RangeReader(DataSourceReader):
    """Reads rounds that are over, for a recount."""

    def __init__(self, options: Options, rounds: Sequence[Retained]) -> None:
        self._options = options
        self._rounds = rounds

    def partitions(self) -> Sequence[MessageRange]:
        parts = self._options.partitions
        return [
            part for one in self._rounds for part in ranges(one.stream, one.after, one.end, parts)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, MessageRange)
        return read_range(self._options.log, partition)


class LogReader(DataSourceStreamReader):
    """Plans batches in the driver, and reads ranges in executors."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._log: JetStreamLog | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_log": None}  # a connection cannot be pickled

    def _connected(self) -> JetStreamLog:
        if self._log is None:
            self._log = JetStreamLog(self._options.log)
        return self._log

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Return where to start without a checkpoint: after what PostgreSQL has counted."""
        with closing(LogCounts(self._options.database)) as counts:
            return {stream: counts.counted(stream) for stream in self._options.streams}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802
        log = self._connected()
        return {
            stream: batch_end(log, stream, start.get(stream, 0)) for stream in self._options.streams
        }

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[MessageRange]:
        return [
            one
            for stream, last in end.items()
            for one in ranges(stream, start.get(stream, 0), last, self._options.partitions)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, MessageRange)
        return read_range(self._options.log, partition)

    def stop(self) -> None:
        if self._log is not None:
            self._log.close()


def read_range(settings: LogSettings, partition: MessageRange) -> Iterator[pa.RecordBatch]:
    """Yield the messages of a range, in order, after a row that says which range it is."""
    yield _rows(partition, [(partition.first, None)])
    with closing(JetStreamLog(settings)) as log:
        gathered: list[tuple[int, bytes | None]] = []
        for entry in log.read(partition.stream, partition.first, partition.stop):
            gathered.append((entry.sequence, entry.message.packed))
            if len(gathered) == ROWS:
                yield _rows(partition, gathered)
                gathered = []
        if gathered:
            yield _rows(partition, gathered)


def ranges(stream: str, after: int, last: int, parts: int) -> list[MessageRange]:
    """Divide a batch into at most `parts` ranges of about as many messages each.

    >>> [(one.first, one.stop) for one in ranges("a", 10, 15, 2)]
    [(10, 12), (12, 15)]
    >>> ranges("a", 10, 10, 2)
    []
    """
    parts = min(parts, last - after)
    borders = [after + (last - after) * part // parts for part in range(parts + 1)] if parts else []
    return [MessageRange(stream, after, last, first, stop) for first, stop in pairwise(borders)]


def _rows(partition: MessageRange, messages: Sequence[tuple[int, bytes | None]]) -> pa.RecordBatch:
    number = len(messages)
    return pa.RecordBatch.from_pydict(
        {
            "stream": [partition.stream] * number,
            "after": [partition.after] * number,
            "last": [partition.last] * number,
            "sequence": [sequence for sequence, _ in messages],
            "payload": [payload for _, payload in messages],
        },
        schema=SCHEMA,
    )
