"""Engines count each device of a round once, whatever is repeated, replayed or run twice."""

from __future__ import annotations

import threading
import uuid
from dataclasses import replace

import numpy as np
import pytest
from psycopg import DataError

from ldpstream.collector.kernels.device_table import DeviceTable
from ldpstream.collector.report_log.counts import BatchCount, CountOutcome
from ldpstream.collector.report_log.jetstream import JetStreamLog
from ldpstream.collector.reports.records import Records
from ldpstream.collector.store.database import Database
from ldpstream.engines import local
from ldpstream.engines.batch import BatchBuilder
from ldpstream.engines.batch_size import batch_end
from ldpstream.engines.shards import SHARDS, shards_of, split
from ldpstream.engines.spark.job import Job
from ldpstream.engines.spark.source import Options
from ldpstream.oracles.tagged.collector import together
from tests.engines.rounds import LABELS, Logged, a_round, logged, reports, truth, wrong
from tests.jetstream import NatsServer
from tests.waiting import eventually


def count_all(at: Logged) -> int:
    """Until nothing is left; how many batches it took."""
    batches = 0
    while local.advance(at.log, at.counts, at.stream):
        batches += 1
    return batches


def a_hard_round(at: Logged, *, count_between: bool) -> tuple[object, ...]:
    """Repeats and conflicts within a message, across messages and batches; late ones; an end."""
    wanted = a_round(at.stream)
    first, second = reports(300), reports(200, seed=1, devices=300)
    again, conflict = first.where(np.arange(300) < 100), reports(50, seed=9, devices=280)
    at.log.append(wanted, first)
    if count_between:
        assert count_all(at)
    at.log.append(wanted, again)
    at.log.append(wanted, conflict)  # 20 of devices that were counted, 30 that are new
    if count_between:
        count_all(at)
    at.log.append(wanted, second)  # 30 of them conflict with those
    at.log.end(wanted)
    at.log.append(wanted, reports(7, seed=3, devices=9000))
    new = np.arange(len(conflict)) >= 20
    return first, conflict.where(new), second.where(np.arange(200) >= 30)


@pytest.mark.parametrize("count_between", [False, True])
def test_each_device_counts_once(
    nats_server: NatsServer, database: Database, count_between: bool
) -> None:
    with logged(nats_server, database) as at:
        counted = a_hard_round(at, count_between=count_between)
        assert count_all(at) == 1
        tally = at.counts.tally(at.stream, "1-publication")
        assert not wrong(tally, *counted)  # type: ignore[arg-type]
        assert tally is not None
        outcome = tally.outcome
        assert (outcome.repeated, outcome.conflicting, outcome.late) == (100, 50, 7)
        assert at.counts.counted(at.stream) == at.log.extent(at.stream).last


def test_reports_that_tell_attributes_are_counted_by_them(
    nats_server: NatsServer, database: Database
) -> None:
    """Devices count once, whatever else they say of themselves in a second report."""
    with logged(nats_server, database) as at:
        plain = a_round(at.stream)
        wanted = replace(plain, tags=3, report_bytes=plain.report_bytes + 1)
        sent = reports(300)
        tags = (np.arange(300) % 3).astype(np.uint8)
        at.log.append(wanted, Records(np.column_stack([sent.table, tags])))
        at.log.append(wanted, Records(np.column_stack([sent.table, (tags + 1) % 3])))
        at.log.end(wanted)
        count_all(at)
        tally = at.counts.tally(at.stream, "1-publication")
        assert tally is not None
        support = tally.outcome.support
        assert support.reports == 300
        for tag in range(3):
            part = together(support, 3, [tag])
            assert (part.reports, part.counts.tolist()) == (100, truth(sent.where(tags == tag)))
        assert together(support, 3, range(3)).counts.tolist() == truth(sent)


def test_without_memory_of_earlier_batches_the_count_is_wrong(
    nats_server: NatsServer, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted bug: the test above would see it."""
    with logged(nats_server, database) as at:
        monkeypatch.setattr(at.counts, "runs", lambda *_: iter(()))
        counted = a_hard_round(at, count_between=True)
        count_all(at)
        assert wrong(at.counts.tally(at.stream, "1-publication"), *counted)  # type: ignore[arg-type]


def test_without_deduplication_the_count_is_wrong(
    nats_server: NatsServer, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted bug: everyone is always new."""
    monkeypatch.setattr(DeviceTable, "add", lambda self, devices, _: np.zeros(len(devices), "u8"))
    with logged(nats_server, database) as at:
        counted = a_hard_round(at, count_between=False)
        count_all(at)
        assert wrong(at.counts.tally(at.stream, "1-publication"), *counted)  # type: ignore[arg-type]


def test_a_batch_that_is_replayed_changes_nothing(
    nats_server: NatsServer, database: Database
) -> None:
    with logged(nats_server, database) as at:
        records = reports(100)
        at.log.append(a_round(at.stream), records)
        assert local.count(at.log, at.counts, at.stream, 0, 1)
        assert not local.count(at.log, at.counts, at.stream, 0, 1)
        at.log.end(a_round(at.stream))
        count_all(at)
        assert not wrong(at.counts.tally(at.stream, "1-publication"), records)


def test_a_replay_that_is_not_checked_is_seen(
    nats_server: NatsServer, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted bug: the commit does not look at the progress, and whom it has counted is lost."""
    with logged(nats_server, database) as at:
        records = reports(100)
        at.log.append(a_round(at.stream), records)
        monkeypatch.setattr("ldpstream.collector.report_log.counts._counted", lambda *_: 0)
        monkeypatch.setattr(at.counts, "runs", lambda *_: iter(()))
        local.count(at.log, at.counts, at.stream, 0, 1)
        local.count(at.log, at.counts, at.stream, 0, 1)
        monkeypatch.undo()
        at.log.end(a_round(at.stream))
        count_all(at)
        assert wrong(at.counts.tally(at.stream, "1-publication"), records)


def test_two_engines_at_once_count_once(nats_server: NatsServer, database: Database) -> None:
    with logged(nats_server, database) as at, logged(nats_server, database) as other:
        stop = threading.Event()
        engines = [
            threading.Thread(target=local.run, args=(one.log, one.counts, [at.stream], stop))
            for one in (at, other)
        ]
        for engine in engines:
            engine.start()
        sent = [reports(100, seed=number, devices=100 * number) for number in range(20)]
        for records in sent:
            at.log.append(a_round(at.stream), records)
        at.log.end(a_round(at.stream))
        eventually(lambda: at.counts.counted(at.stream) == 21, "the round is counted")
        stop.set()
        for engine in engines:
            engine.join()
        assert not wrong(at.counts.tally(at.stream, "1-publication"), *sent)


def test_a_spark_batch_that_another_engine_has_begun_is_finished(
    nats_server: NatsServer, database: Database
) -> None:
    """As after a lost checkpoint: the batch does not begin where the progress is."""
    with logged(nats_server, database) as at:
        sent = [reports(50, seed=number, devices=50 * number) for number in range(3)]
        for records in sent:
            at.log.append(a_round(at.stream), records)
        at.log.end(a_round(at.stream))
        assert local.count(at.log, at.counts, at.stream, 0, 2)
        options = Options(nats_server.settings, database, (at.stream,), 1)
        job = Job(None, options, at.log, at.counts)  # type: ignore[arg-type]  # it is not asked
        job._commit(BatchBuilder(at.stream, 0, 4))
        assert not wrong(at.counts.tally(at.stream, "1-publication"), *sent)


def test_a_batch_whose_runs_are_gone_is_refused(
    nats_server: NatsServer, database: Database
) -> None:
    with logged(nats_server, database) as at:
        none = {"1-publication": CountOutcome.none(LABELS)}
        batch = BatchCount(uuid.uuid4(), at.stream, 0, 1, none, {}, runs=1)
        with pytest.raises(DataError, match="0 runs"):
            at.counts.commit(batch)


def test_who_was_counted_is_forgotten_with_the_end(
    nats_server: NatsServer, database: Database
) -> None:
    with logged(nats_server, database) as at:
        wanted = a_round(at.stream)
        records = reports(64)
        at.log.append(wanted, records)
        count_all(at)
        shard = int(shards_of(records.devices)[0])
        assert list(at.counts.runs(at.stream, wanted.name, shard))
        at.log.end(wanted)
        count_all(at)
        assert not list(at.counts.runs(at.stream, wanted.name, shard))


def test_a_round_without_reports_has_a_tally(nats_server: NatsServer, database: Database) -> None:
    with logged(nats_server, database) as at:
        at.log.end(a_round(at.stream))
        count_all(at)
        tally = at.counts.tally(at.stream, "1-publication")
        assert tally is not None
        assert (tally.ended, tally.outcome.support.counts.tolist()) == (1, [0] * LABELS)


def test_reading_back_stays_in_proportion(nats_server: NatsServer, database: Database) -> None:
    """Batches of a round grow with it: 81 messages, one at a time, are counted in 10 batches."""
    with logged(nats_server, database) as at:
        wanted, batches, left = a_round(at.stream), 0, 0
        for number in range(81):
            at.log.append(wanted, reports(1, devices=number))
            batches += local.advance(at.log, at.counts, at.stream)
            left = at.log.extent(at.stream).last - at.counts.counted(at.stream)
            assert left <= (number + 1) / 3
        assert batches == 10
        at.log.end(wanted)
        assert batch_end(at.log, at.stream, at.counts.counted(at.stream)) == 82


def test_a_batch_does_not_wait_for_rounds_that_have_expired(
    nats_server: NatsServer, database: Database
) -> None:
    with logged(nats_server, database) as at:
        for number in range(20):
            at.log.append(a_round(at.stream), reports(1, devices=number))
        at.log.end(a_round(at.stream))
        count_all(at)
        expire(at, before=22)
        assert at.log.last_end(at.stream) == 0
        at.log.append(a_round(at.stream, 2), reports(1))
        assert batch_end(at.log, at.stream, at.counts.counted(at.stream)) == 22


def expire(at: Logged, before: int) -> None:
    """As time does."""
    log = at.log
    assert isinstance(log, JetStreamLog)
    log._bridge.call(log._server.purge_stream(f"LDPSTREAM_{at.stream}", seq=before))


def test_shards_share_devices_evenly_and_keep_their_order() -> None:
    """Chi-squared of 20,000 devices over 32 shards: above 90 with probability below 1e-7."""
    records = reports(20_000)
    sizes = np.bincount(shards_of(records.devices), minlength=SHARDS)
    expected = len(records) / SHARDS
    assert ((sizes - expected) ** 2 / expected).sum() < 90
    twice = type(records)(np.concatenate([records.table, records.table]))
    parts = dict(split(twice))
    assert sum(map(len, parts.values())) == 40_000
    for part in parts.values():
        half = len(part) // 2
        assert np.array_equal(part.table[:half], part.table[half:])
