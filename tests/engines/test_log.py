"""The report log keeps its contract on a real JetStream, through the death of the server too."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from ldpstream.collector.report_log.contract import LogSettings
from ldpstream.collector.report_log.jetstream import MESSAGE_BYTES, JetStreamLog
from ldpstream.collector.store.database import Database
from ldpstream.errors import Mistake
from tests.engines.rounds import a_round, logged, reports
from tests.jetstream import NatsServer, running_nats


def test_what_is_appended_is_read_back_in_order(
    nats_server: NatsServer, database: Database
) -> None:
    with logged(nats_server, database) as at:
        wanted = a_round(at.stream)
        first, second = reports(500), reports(3, seed=1)
        (one,) = at.log.append(wanted, first)
        (other,) = at.log.append(wanted, second)
        assert (one.sequence, one.number, other.sequence, other.number) == (1, 500, 2, 3)
        extent = at.log.extent(at.stream)
        assert (extent.first, extent.last) == (1, 2)
        entries = list(at.log.read(at.stream, 0, 2))
        assert [entry.sequence for entry in entries] == [1, 2]
        assert [entry.message.round for entry in entries] == [wanted, wanted]
        assert entries[0].message.records.packed == first.packed
        assert [entry.sequence for entry in at.log.read(at.stream, 1, 2)] == [2]
        assert list(at.log.read(at.stream, 2, 2)) == []


def test_many_records_become_several_messages(nats_server: NatsServer, database: Database) -> None:
    with logged(nats_server, database) as at:
        records = reports(30_000)
        appended = at.log.append(a_round(at.stream), records)
        assert len(appended) == -(-len(records.packed) // MESSAGE_BYTES)
        assert sum(one.number for one in appended) == len(records)
        last = at.log.extent(at.stream).last
        parts = sorted(appended, key=lambda one: one.sequence)
        read = list(at.log.read(at.stream, 0, last))
        assert [len(entry.message.records) for entry in read] == [one.number for one in parts]


def test_an_end_is_said_once(nats_server: NatsServer, database: Database) -> None:
    with logged(nats_server, database) as at:
        wanted, later = a_round(at.stream), a_round(at.stream, 2)
        at.log.append(wanted, reports(1))
        assert at.log.ended(at.stream, wanted.name) is None
        assert at.log.last_end(at.stream) == 0
        assert [at.log.end(wanted), at.log.end(wanted)] == [2, 2]
        at.log.append(later, reports(1))
        assert at.log.end(later) == 4
        assert at.log.ended(at.stream, wanted.name) == 2
        assert at.log.last_end(at.stream) == 4
        assert at.log.ends(at.stream, 0) == {wanted.name: 2, later.name: 4}
        assert at.log.ends(at.stream, 2) == {later.name: 4}


def test_kill_9_of_the_server_loses_nothing_that_was_acknowledged(database: Database) -> None:
    """Nor does it store twice what is tried again: the server knows messages by their number."""
    with running_nats() as server, logged(server, database) as at:
        wanted = a_round(at.stream)
        acknowledged = 0
        gone = threading.Thread(target=_restart, args=(server,))
        for number in range(60):
            if number == 20:
                gone.start()
            acknowledged += sum(one.number for one in at.log.append(wanted, reports(50, number)))
        gone.join()
        stored = list(at.log.read(at.stream, 0, at.log.extent(at.stream).last))
        assert acknowledged == 3000
        assert sum(len(entry.message.records) for entry in stored) == 3000


def _restart(server: NatsServer) -> None:
    server.kill()
    time.sleep(0.3)
    server.start()


def test_no_server_is_told_in_one_line() -> None:
    with pytest.raises(Mistake, match="nats-server runs with JetStream") as told:
        JetStreamLog(LogSettings("nats://me:secret@127.0.0.1:1", patience_seconds=0.5))
    assert "secret" not in str(told.value)


def test_a_server_without_jetstream_is_told_in_one_line() -> None:
    with running_nats(keeps=False) as server:
        settings = replace(server.settings, patience_seconds=1)
        with pytest.raises(Mistake) as caught:
            JetStreamLog(settings)
    message = str(caught.value)
    assert "\n" not in message
    assert "nats-server runs with JetStream (-js)" in message
