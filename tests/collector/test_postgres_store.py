"""The shared store on a real server: the contract, and what only this store does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing

import numpy as np
import psycopg
import pytest

from ldpstream.collector.report_log.counts import ENDED_REMEMBERED, LATEST_ENDS
from ldpstream.collector.reports.verdicts import Verdict
from ldpstream.collector.store.contract import Store
from ldpstream.collector.store.database import Database
from ldpstream.collector.store.postgres.connections import connect
from ldpstream.collector.store.postgres.copying import binary_rows
from ldpstream.collector.store.postgres.store import PostgresStore
from ldpstream.collector.store.round_table import FORGET_ASKED
from ldpstream.errors import Mistake
from tests.collector.admin_contract import AdminContract
from tests.collector.helpers import SECRETS, device_of, new_round, unsigned
from tests.collector.store_contract import (
    StoreContract,
    as_leader,
    release_of,
    stored_reports,
)


class TestPostgresStore(StoreContract, AdminContract):
    @pytest.fixture(autouse=True)
    def _database(self, database: Database) -> None:
        self.database = database

    def create(self, master: bytes = SECRETS.master) -> Store:
        return PostgresStore(self.database, master)

    def property(self, name: str) -> str:
        with connect(self.database) as connection:
            row = connection.execute("SELECT value FROM property WHERE name = %s", (name,))
            return str(*(row.fetchone() or ()))

    def tamper(self, statements: str) -> None:
        with connect(self.database) as connection:
            connection.execute("SET session_replication_role = replica")  # no trigger fires
            connection.execute(statements.encode())

    def reopened(self) -> Store:
        """Every call has committed, so closing leaves what a crash would leave."""
        self.current.close()
        self.current = as_leader(PostgresStore(self.database, SECRETS.master))
        return self.current

    def test_commits_reach_the_disk(self, store: Store) -> None:
        with connect(self.database) as connection:
            for name in ("synchronous_commit", "fsync"):
                assert connection.execute(f"SHOW {name}".encode()).fetchone() == ("on",)

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE release SET content = '{}'",
            "DELETE FROM release",
            "UPDATE stream SET terms = '{}'",
            "UPDATE stream SET last_t = 0",
            "UPDATE round SET state = 'tallied' WHERE t = 2",
            "UPDATE round SET closed_ms = 1 WHERE t = 2",
            "UPDATE round SET state = 'open', closed_ms = NULL WHERE t = 3",
            "INSERT INTO report SELECT gen_random_uuid(), gen_random_uuid(), ''",
            "INSERT INTO report_2 SELECT gen_random_uuid(), gen_random_uuid(), ''",
            "UPDATE lease SET holder = 'another'",
            "UPDATE lease SET token = 0",
            "INSERT INTO release VALUES (1, 9, 9, '{}', 0, 0, false)",  # as 0.1.0 would
        ],
    )
    def test_the_schema_refuses_what_must_not_happen(self, store: Store, statement: str) -> None:
        store.open_round("a", new_round(2))
        store.open_round("a", new_round(3))
        store.close_round("a", "3-publication", 5)
        store.release("a", [release_of(1)], {}, 0)
        with connect(self.database) as connection, pytest.raises(psycopg.IntegrityError):
            connection.execute(statement.encode())

    # Several collectors

    def test_both_collectors_see_one_roster(self, store: Store) -> None:
        with (
            closing(PostgresStore(self.database, SECRETS.master)) as other,
            ThreadPoolExecutor(8) as pool,
        ):
            devices = [device_of(n % 30) for n in range(90)]
            numbers = list(
                pool.map(lambda n: (store, other)[n % 2].enrol("a", devices[n]), range(90))
            )
            assert sorted(set(numbers)) == list(range(30))
            assert numbers[:30] == numbers[30:60] == numbers[60:]
            assert store.roster("a") == other.roster("a")

    def test_a_report_counts_once_whichever_collector_takes_it(self, store: Store) -> None:
        """Every device sends one report to one collector and another to the other, at once."""
        store.open_round("a", new_round(1))
        with (
            closing(PostgresStore(self.database, SECRETS.master)) as other,
            ThreadPoolExecutor(4) as pool,
        ):
            for first in range(0, 2000, 200):
                numbers = range(first, first + 200)
                ours = unsigned(*((n, b"\1a") for n in numbers))
                theirs = unsigned(*((n, b"\1b") for n in reversed(numbers)))
                sent = ((store, ours), (other, theirs), (store, theirs), (other, ours))
                jobs = [pool.submit(one.accept, "a", "1-publication", batch) for one, batch in sent]
                verdicts = np.array([job.result() for job in jobs])
                verdicts[1:3] = verdicts[1:3, ::-1]
                accepted = (verdicts == Verdict.ACCEPTED).sum(axis=0)
                assert accepted.tolist() == [1] * 200
                others = (verdicts == Verdict.REPEATED).sum(axis=0)
                assert others.tolist() == [1] * 200
                assert ((verdicts == Verdict.CONFLICT).sum(axis=0) == 2).all()
            assert store.received("a", "1-publication") == 2000
        store.close_round("a", "1-publication", 5)
        assert len(stored_reports(store)) == 2000

    def test_what_was_accepted_before_a_round_closed_is_all_there_is(self, store: Store) -> None:
        """Reports arrive while the round is closed: each is accepted and counted, or too late."""
        store.open_round("a", new_round(1))
        with (
            closing(PostgresStore(self.database, SECRETS.master)) as other,
            ThreadPoolExecutor(4) as pool,
        ):

            def submit(lane: int) -> int:
                accepted = 0
                for drop in range(1000):
                    first = 10 * (lane * 1000 + drop)
                    batch = unsigned(*((first + n, b"\1a") for n in range(10)))
                    verdicts = (store, other)[lane % 2].accept("a", "1-publication", batch)
                    assert len(set(verdicts.tolist())) == 1  # all of a batch, or none
                    if verdicts[0] == Verdict.CLOSED:
                        return accepted
                    accepted += len(batch)
                raise AssertionError("the round did not close")

            lanes = [pool.submit(submit, lane) for lane in range(3)]
            while store.received("a", "1-publication") < 200:
                pass
            store.close_round("a", "1-publication", 5)
            at_once = len(stored_reports(store))
            assert at_once == sum(lane.result() for lane in lanes) >= 200
            assert len(stored_reports(store)) == at_once

    def test_closing_waits_for_commits_under_way_and_lets_in_nothing_more(
        self, store: Store
    ) -> None:
        store.open_round("a", new_round(1))
        statement = b"COPY report_1 FROM STDIN (FORMAT binary)"
        with connect(self.database) as under_way, ThreadPoolExecutor(2) as pool:
            with under_way.transaction():
                with under_way.cursor().copy(statement) as copy:
                    copy.write(binary_rows(unsigned((1, b"\1a"))))
                closing_round = pool.submit(store.close_round, "a", "1-publication", 5)
                assert not wait([closing_round], timeout=0.3).done
                late = pool.submit(store.accept, "a", "1-publication", unsigned((2, b"\1b")))
                assert not wait([late], timeout=0.3).done  # it found the round open, and waits
            assert closing_round.result() == 2
            assert late.result().tolist() == [Verdict.CLOSED]
        assert stored_reports(store) == [b"\1a"]

    def test_a_collector_that_stopped_in_the_middle_does_not_hold_up_a_round(
        self, store: Store
    ) -> None:
        store.open_round("a", new_round(1))
        held = as_leader(PostgresStore(self.database, SECRETS.master, patience_ms=200))
        statement = b"COPY report_1 FROM STDIN (FORMAT binary)"
        with closing(held), connect(self.database) as stopped:
            copying = stopped.cursor().copy(statement)
            copying.__enter__().write(binary_rows(unsigned((1, b"\1a")))[:-2])
            held.close_round("a", "1-publication", 5)
            with pytest.raises(psycopg.OperationalError):
                copying.__exit__(None, None, None)
            assert stored_reports(held) == []

    def test_collectors_may_start_together(self) -> None:
        with ThreadPoolExecutor(4) as pool:
            stores = list(
                pool.map(lambda _: PostgresStore(self.database, SECRETS.master), range(4))
            )
        for one in stores:
            one.close()

    def test_a_server_that_vanished_is_noticed_within_a_lease(self, store: Store) -> None:
        with connect(self.database, 8000) as connection:
            told = connection.info.get_parameters()
        assert told["tcp_user_timeout"] == "8000"
        seconds = int(told["keepalives_idle"]) + int(told["keepalives_interval"]) * int(
            told["keepalives_count"]
        )
        assert seconds == 8

    def test_lost_connections_are_replaced(self, store: Store) -> None:
        store.open_round("a", new_round(1))
        store.accept("a", "1-publication", unsigned((1, b"\1a")))
        for again in (False, True):
            with connect(self.database) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            if again:
                assert store.accept("a", "1-publication", unsigned((1, b"\1a"))).tolist() == [1]
                continue
            with pytest.raises(Mistake, match="try again"):  # it may or may not be committed
                store.open_round("a", new_round(2))
            assert [one.t for one in store.rounds("a", 0)] == [1]

    def test_a_database_of_a_newer_release_is_left_alone(self, store: Store) -> None:
        with connect(self.database) as connection:
            connection.execute("INSERT INTO version VALUES (99)")
        with pytest.raises(Mistake, match="newer release"):
            PostgresStore(self.database, SECRETS.master)

    def test_what_is_done_often_does_not_look_at_every_round(self, store: Store) -> None:
        with connect(self.database) as connection:
            connection.execute(
                "INSERT INTO log_tally SELECT 'a', n || '-publication', '', 1, 0, 0, 0, n"
                " FROM generate_series(1, 20000) n; ANALYZE log_tally"
            )
            for statement, given, index in (
                (FORGET_ASKED, (1, 5), "round_by_asked"),
                (LATEST_ENDS, ("a", ENDED_REMEMBERED), "log_tally_by_end"),
            ):
                rows = connection.execute(f"EXPLAIN {statement}".encode(), given).fetchall()
                plan = "\n".join(line for (line,) in rows)
                assert index in plan
                assert "Sort" not in plan


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("postgresql://me:hunter2@127.0.0.1:1/x", "refused"),
        ("postgresql://me:hunter2@127.0.0.1:1/x?nonsense=hunter", "cannot be read"),
        ("postgresql://me:hunter2/3@127.0.0.1:1/x", "not the address"),
        ("postgresql://me:hunter2?3@127.0.0.1:1/x", "not the address"),
        ("postgresql://me:hunter2", "not the address"),
        ("postgresql://me@here/x?password=hunter@2", "not the address"),
        ("mysql://me:hunter2@here/x", "not the address"),
    ],
)
def test_a_server_that_is_not_there_is_told_in_a_line_without_the_password(
    url: str, what: str
) -> None:
    with pytest.raises(Mistake, match=what) as told:
        PostgresStore(Database(url), SECRETS.master)
    assert "hunter" not in str(told.value) + repr(told.value)
    assert "\n" not in str(told.value)
