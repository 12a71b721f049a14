"""The streaming job: batches of the log are counted by executors and committed by the driver."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ldpstream.collector.report_log.contract import ReportLog
from ldpstream.collector.report_log.counts import LogCounts
from ldpstream.collector.report_log.messages import read_header
from ldpstream.engines import local
from ldpstream.engines.batch import BatchBuilder
from ldpstream.engines.counting import ControlMarker
from ldpstream.engines.recount import Recount, Retained, Supports
from ldpstream.engines.spark.source import FORMAT, LogSource, Options
from ldpstream.engines.spark.tasks import COUNTED_DDL, PARTS_DDL, BatchPlan, outcome_of


class Job:
    """A Spark job that counts the logs of some streams."""

    def __init__(
        self, spark: SparkSession, options: Options, log: ReportLog, counts: LogCounts
    ) -> None:
        self._spark = spark
        self._options = options
        self._log = log
        self._counts = counts

    def start(self, checkpoint: Path | str) -> StreamingQuery:
        """Start the job; one that died resumes from its checkpoint."""
        self._spark.dataSource.register(LogSource)
        messages = (
            self._spark.readStream.format(FORMAT)
            .option("ldpstream", self._options.to_json())
            .load()
        )
        writer = messages.writeStream.foreachBatch(self._count)
        return writer.option("checkpointLocation", str(checkpoint)).start()

    def _count(self, messages: DataFrame, number: int) -> None:
        """Count one batch. Its number is not used: PostgreSQL knows by sequence what is counted."""
        batches = {stream: BatchBuilder(stream, 0, 0) for stream in self._options.streams}
        ends = {
            stream: local.known_ends(self._log, self._counts, stream, self._counts.counted(stream))
            for stream in batches
        }
        attempts = {stream: batch.attempt for stream, batch in batches.items()}
        plan = BatchPlan(self._options.database, attempts, ends)
        counted = counted_rows(messages, plan, self._options.partitions)
        for stream, batch in batches.items():
            own = [row for row in counted if row["stream"] == stream]
            if own:
                self._commit(_filled(batch, own))

    def _commit(self, batch: BatchBuilder) -> None:
        """Commit a batch once. If another engine has counted a part of it, count the rest here."""
        if self._counts.commit(batch.finish()):
            return
        while (counted := self._counts.counted(batch.stream)) < batch.last:
            local.count(self._log, self._counts, batch.stream, counted, batch.last)


def counted_rows(messages: DataFrame, plan: BatchPlan, places: int) -> list[Any]:
    """Scatter messages where they are read, then count each shard in one task and in order."""
    by = ("stream", "header", "shard")
    parts = messages.mapInArrow(plan.scattering(), PARTS_DDL)
    together = parts.repartition(places, *by).sortWithinPartitions(*by, "sequence")
    return together.mapInArrow(plan.counting(), COUNTED_DDL).collect()


def recount_on(spark: SparkSession, options: Options) -> Recount:
    """Return a recount that runs on the cluster, with all rounds in one job."""

    def work(rounds: Sequence[Retained]) -> Supports:
        spark.dataSource.register(LogSource)
        reading = spark.read.format(FORMAT).option("ldpstream", options.to_json())
        messages = reading.option("rounds", json.dumps([vars(one) for one in rounds])).load()
        ends = {
            stream: {one.name: one.end for one in rounds if one.stream == stream}
            for stream in options.streams
        }
        found: Supports = {}
        plan = BatchPlan(options.database, {}, ends, from_nothing=True)
        for row in counted_rows(messages, plan, options.partitions):
            if row["header"] and row["shard"] >= 0:
                wanted = read_header(bytes(row["header"]))
                key, support = (wanted.stream, wanted.name), outcome_of(row).support
                found[key] = found[key] + support if key in found else support
        return found

    return work


def _filled(batch: BatchBuilder, rows: Iterable[Any]) -> BatchBuilder:
    for row in rows:
        batch.after, batch.last = row["after"], row["last"]
        if not row["header"]:
            continue
        wanted = read_header(bytes(row["header"]))
        if row["shard"] == ControlMarker.END:
            batch.end(wanted, row["sequence"])
        elif row["shard"] == ControlMarker.LATE:
            batch.late(wanted, row["late"])
        else:
            batch.add(wanted, outcome_of(row))
            batch.runs += row["run"]
    return batch
