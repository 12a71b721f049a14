"""Which collector leads a stream: the lease against a model, and what a former leader may do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ldpstream.collector.store.contract import Lease, Store
from ldpstream.collector.store.database import Database
from ldpstream.collector.store.postgres.connections import connect
from ldpstream.collector.store.postgres.store import PostgresStore
from ldpstream.errors import Mistake, Problem
from ldpstream.oracles.collector_half import Support
from tests.collector.helpers import SECRETS, new_round, unsigned
from tests.collector.store_contract import TERMS, release_of

HOLDERS = ("one", "two", "three")
SECONDS = 1000
"""The length of a lease here: real time does not matter, it is moved by hand."""


@pytest.fixture
def store(database: Database) -> Iterator[PostgresStore]:
    with closing(PostgresStore(database, SECRETS.master)) as found:
        found.create_stream("a", TERMS)
        yield found


@dataclass
class Model:
    """What a lease is, in a few lines: the holder, the token, and the seconds that are left."""

    holder: str = ""
    token: int = 0
    left: float = 0
    given: list[Lease] = field(default_factory=list)

    def take(self, holder: str) -> Lease | None:
        if holder != self.holder and self.left > 0:
            return None
        self.token += holder != self.holder
        self.holder, self.left = holder, SECONDS
        self.given.append(Lease("a", holder, self.token))
        return self.given[-1]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.sampled_from(HOLDERS)),
        st.tuples(st.just("wait"), st.sampled_from([400, 700, 1100])),
        st.tuples(st.just("give back"), st.integers(0, 30)),
        st.tuples(st.just("write"), st.integers(0, 30)),
    ),
    max_size=25,
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_a_lease_is_what_its_model_is(
    store: PostgresStore, database: Database, story: list[tuple[str, object]]
) -> None:
    """Any holders in any order, and writes with any token: only the newest one is accepted."""
    model = Model()
    with connect(database) as connection:
        connection.execute("DELETE FROM lease")
        for what, given_to in story:
            if what == "take":
                assert store.lease("a", str(given_to), SECONDS) == model.take(str(given_to))
            elif what == "wait":
                assert isinstance(given_to, int)
                model.left -= given_to
                connection.execute(
                    "UPDATE lease SET expires = expires - make_interval(secs => %s)", (given_to,)
                )
            elif model.given:
                assert isinstance(given_to, int)
                lease = model.given[given_to % len(model.given)]
                if what == "write":
                    assert writes(store, lease) == (lease.token == model.token)
                else:
                    store.give_back(lease)
                    model.left = 0 if lease.token == model.token else model.left


def writes(store: Store, lease: Lease) -> bool:
    try:
        store.under(lease).write_note("a", "x", {"token": lease.token})
    except Mistake as refused:
        if refused.problem is not Problem.LEASE_LOST:
            raise
        return False
    return True


CHANGES: dict[str, Callable[[Store], object]] = {
    "open_round": lambda store: store.open_round("a", new_round(2)),
    "close_round": lambda store: store.close_round("a", "1-publication", 9),
    "tally": lambda store: store.tally("a", {"0-publication": Support(np.array([3, 1]), 4)}),
    "release": lambda store: store.release("a", [release_of(1)], {"t": 1}, 0),
    "write_note": lambda store: store.write_note("a", "alerts", {"mine": 1}),
}


def contents(database: Database) -> list[object]:
    tables = ("stream", "round", "release", "note", "taken")
    with connect(database) as connection:
        return [connection.execute(f"TABLE {name}".encode()).fetchall() for name in tables]


@pytest.mark.parametrize("change", CHANGES)
def test_whoever_lost_the_lease_changes_nothing(
    store: PostgresStore, database: Database, change: str
) -> None:
    first = store.lease("a", "one", 60)
    assert first is not None
    late = store.under(first)
    late.open_round("a", new_round(1, name="0-publication"))
    late.close_round("a", "0-publication", 1)
    late.open_round("a", new_round(1))
    store.give_back(first)
    second = store.lease("a", "two", 60)
    assert second is not None
    before = contents(database)
    with pytest.raises(Mistake) as refused:
        CHANGES[change](late)
    assert refused.value.problem is Problem.LEASE_LOST
    assert contents(database) == before
    CHANGES[change](store.under(second))
    assert contents(database) != before


def test_reports_need_no_lease(store: PostgresStore) -> None:
    lease = store.lease("a", "one", 60)
    assert lease is not None
    store.under(lease).open_round("a", new_round(1))
    assert store.accept("a", "1-publication", unsigned((1, b"\1a"))).tolist() == [0]
    with pytest.raises(RuntimeError, match="needs its lease"):
        store.close_round("a", "1-publication", 9)


def test_a_lease_is_not_taken_in_the_middle_of_a_change(
    store: PostgresStore, database: Database
) -> None:
    """Whoever takes over waits for the change under way; the server ends one that hangs."""
    lease = store.lease("a", "one", 0)
    assert lease is not None
    with connect(database, patience_ms=300) as hanging:
        hanging.execute("BEGIN; SELECT token FROM lease FOR SHARE")
        with connect(database) as impatient, pytest.raises(psycopg.errors.LockNotAvailable):
            impatient.execute("SET lock_timeout = 50; UPDATE lease SET token = token + 1")
        assert store.lease("a", "two", 60) == Lease("a", "two", 2)
        with pytest.raises(psycopg.Error):
            hanging.execute("COMMIT")
