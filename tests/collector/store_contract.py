"""The contract of a store: an implementation is tested by subclassing `StoreContract`."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from ldpstream.collector.credentials.sealing import check_of, seal, unseal
from ldpstream.collector.reports.verdicts import Verdict
from ldpstream.collector.store.chain import ChainCheck
from ldpstream.collector.store.chain_key import CHAIN_KEY
from ldpstream.collector.store.contract import (
    ReleaseSummary,
    RoundState,
    Store,
    StoredRelease,
    TalliedRounds,
)
from ldpstream.errors import Mistake, Problem
from ldpstream.oracles.collector_half import Support
from tests.collector.helpers import SECRETS, device_of, new_round, unsigned

TERMS = {
    "version": 1,
    "stream": "a",
    "query": "histogram",
    "labels": ["x", "y"],
    "epsilon_nano": 10**9,
    "window": 4,
    "interval_ms": 1000,
    "start_ms": 5,
    "oracle": "grr",
}


def later(version: int) -> dict[str, Any]:
    """Terms that follow others, as far as a store looks at them."""
    return TERMS | {"version": 3, "window": 3 + version, "succeeds": {"version": version}}


SUPPORT = Support(np.array([3, 1]), 4)


def release_of(t: int, **given: object) -> StoredRelease:
    usual: dict[str, object] = {
        "t": t,
        "at_ms": 100 * t,
        "content": {"t": t, "values": [0.1, 0.9], "variance": [1e-17, 0.5], "fresh": True},
        "asked": 10,
        "received": 8,
        "missed": False,
    }
    return StoredRelease(**usual | given)  # type: ignore[arg-type]


def summary_of(first_t: int, last_t: int | None = None) -> ReleaseSummary:
    content = {"releases": 1, "values": [0.1, 1e-17]}
    return ReleaseSummary(first_t, last_t or first_t, 1000 * first_t, 3_600_000, content)


def as_leader(store: Store) -> Store:
    """The store under the lease of the stream `a`."""
    lease = store.lease("a", "me", 60)
    assert lease is not None
    return store.under(lease)


def stored_reports(store: Store) -> list[bytes]:
    """The reports of the first round, in order of their devices' numbers here, from 0."""
    found = {
        device.tobytes(): report.tobytes()
        for part in store.reports("a", "1-publication")
        for device, report in zip(part.devices, part.reports, strict=True)
    }
    assert len(found) == sum(len(part) for part in store.reports("a", "1-publication"))
    places = {device_of(number): number for number in range(50_000)}
    return [found[device] for device in sorted(found, key=places.__getitem__)]


STORED = '{"t":3,"values":[0.1,0.8],"variance":[1e-17,0.5],"fresh":true}'
DAMAGE = {
    "a digit": (3, f"UPDATE release SET content = '{STORED}' WHERE t = 3"),
    "a time": (3, "UPDATE release SET at_ms = at_ms + 1 WHERE t = 3"),
    "asked": (3, "UPDATE release SET asked = 11 WHERE t = 3"),
    "received": (3, "UPDATE release SET received = 9 WHERE t = 3"),
    "missed": (3, "UPDATE release SET missed = true WHERE t = 3"),
    "the first removed": (2, "DELETE FROM release WHERE t = 1"),
    "one removed": (4, "DELETE FROM release WHERE t = 3"),
    "the tail removed": (5, "DELETE FROM release WHERE t > 4"),
    "all removed": (1, "DELETE FROM release"),
    "the tail removed, and the end moved": (
        4,
        "DELETE FROM release WHERE t > 4;"
        " UPDATE stream SET last_t = 4, head = (SELECT link FROM release WHERE t = 4)",
    ),
    "the beginning removed, and the checkpoint moved": (
        7,
        "UPDATE stream SET checkpoint_t = 2, checkpoint = (SELECT link FROM release WHERE t = 2);"
        " DELETE FROM release WHERE t <= 2",
    ),
    "two exchanged": (
        3,
        "UPDATE release SET t = 103 WHERE t = 3; UPDATE release SET t = 3 WHERE t = 4;"
        " UPDATE release SET t = 4 WHERE t = 103",
    ),
    "one inserted": (
        5,
        "INSERT INTO release SELECT stream, 5, at_ms, content, asked, received, missed, link"
        " FROM release WHERE t = 4",
    ),
    "one appended": (
        9,
        "INSERT INTO release SELECT stream, 9, at_ms, content, asked, received, missed, link"
        " FROM release WHERE t = 7",
    ),
    "a link": (
        3,
        "UPDATE release SET link = (SELECT link FROM release WHERE t = 2) WHERE t = 3",
    ),
    "the state": (7, """UPDATE stream SET mechanism = '{"t":6}'"""),
    "the terms": (7, """UPDATE stream SET terms = '{"window":1}'"""),
}
"""What somebody may do to the releases of t = 1, 2, 3, 4, 6, 7, and the first t that shows it."""


class StoreContract:
    """One test for each promise. `reopened` must behave like a new process after kill -9."""

    @pytest.fixture
    def store(self) -> Iterator[Store]:
        self.current = self.create()
        self.current.create_stream("a", TERMS)
        self.current = as_leader(self.current)
        yield self.current
        self.current.close()

    @abstractmethod
    def create(self, master: bytes = SECRETS.master) -> Store:
        """A new store, empty; or the one that is there."""

    @abstractmethod
    def property(self, name: str) -> str:
        """Return what the store has under that name."""

    @abstractmethod
    def reopened(self) -> Store:
        """The same store after a crash of the process; also put into `self.current`."""

    @abstractmethod
    def tamper(self, statements: str) -> None:
        """Change the store behind its back, without its triggers."""

    # Streams and devices

    def test_a_stream_is_stored_with_its_terms(self, store: Store) -> None:
        store = self.reopened()
        found = store.stream("a")
        assert found is not None
        assert (found.terms, found.serial, found.last_t, found.mechanism) == (TERMS, 0, 0, None)
        assert store.stream("b") is None

    def test_a_stream_is_created_once(self, store: Store) -> None:
        with pytest.raises(Exception, match=r"(?i)unique"):
            store.create_stream("a", TERMS | {"start_ms": 6})
        found = store.stream("a")
        assert found is not None
        assert found.terms == TERMS

    def test_all_versions_of_the_terms_are_kept(self, store: Store) -> None:
        for version in (2, 3):
            before = store.pulse("a")[0]
            assert store.succeed("a", later(version)) == before + 1
        store = self.reopened()
        found = store.stream("a")
        assert found is not None
        assert found.terms == TERMS
        assert [*found.versions] == store.versions("a") == [TERMS, later(2), later(3)]
        assert store.versions("b") == []
        assert store.check_releases("a").damage is None
        store.release("a", [release_of(1)], {"t": 1}, 0)
        assert store.check_releases("a").damage is None

    def test_versions_of_the_terms_follow_each_other(self, store: Store) -> None:
        store.succeed("a", later(2))
        for version in (2, 4):
            with pytest.raises(Exception, match="follow each other"):
                store.succeed("a", later(version))
        assert store.versions("a") == [TERMS, later(2)]
        assert store.check_releases("a").damage is None

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE successor SET terms = '{}' WHERE version = 2",
            "DELETE FROM successor WHERE version = 3",
            "DELETE FROM successor",
        ],
        ids=["changed", "removed", "all removed"],
    )
    def test_terms_that_somebody_changed_are_found(self, store: Store, change: str) -> None:
        for version in (2, 3):
            store.succeed("a", later(version))
        self.tamper(change)
        store = self.reopened()
        assert store.check_releases("a").damage is not None
        with pytest.raises(Mistake, match="were changed"):
            store.succeed("a", later(len(store.versions("a")) + 1))

    def test_devices_are_numbered_as_they_enrol(self, store: Store) -> None:
        assert store.enrolled("a") == 0
        assert [store.enrol("a", device_of(n)) for n in (7, 5, 7, 6)] == [0, 1, 0, 2]
        store = self.reopened()
        assert store.roster("a") == device_of(7) + device_of(5) + device_of(6)
        assert store.roster("a", first=2) == device_of(6)
        assert store.enrol("a", device_of(5)) == 1

    def test_who_has_left_keeps_a_number_that_no_other_gets(self, store: Store) -> None:
        store.create_stream("b", TERMS | {"stream": "b"})
        for stream in ("a", "b"):
            for number in (7, 5, 6):
                store.enrol(stream, device_of(number))
        for device in (5, 6, 5, 99):
            store.leave("a", device_of(device))
        store = self.reopened()
        assert (store.left("a").tolist(), store.left("b").tolist()) == ([1, 2], [])
        assert (store.enrolled("a"), store.enrolled("b")) == (1, 3)
        assert store.roster("a") == device_of(7) + device_of(5) + device_of(6)
        assert [store.enrol("a", device_of(number)) for number in (8, 5)] == [3, 1]
        assert store.left("a").tolist() == [1, 2], "who comes back as the same stays away"

    def test_who_rests_is_stored_with_the_tally(self, store: Store) -> None:
        for number in range(4):
            store.enrol("a", device_of(number))
        assert store.rests("a").tolist() == []
        for t, rests in ((1, [[1, 1, 5], [3, 1, 5]]), (2, [[3, 2, 10], [1, 0, 0]])):
            store.open_round("a", new_round(t))
            store.close_round("a", f"{t}-publication", 5)
            store.tally("a", {f"{t}-publication": Support.none(3)}, np.array(rests, np.int64))
        store = self.reopened()
        assert store.rests("a").tolist() == [[3, 2, 10]]

    def test_devices_that_have_answered_are_told_until_the_tally(self, store: Store) -> None:
        store.open_round("a", new_round(1))
        store.accept("a", "1-publication", unsigned((4, b"\1a"), (2, b"\1b")))
        store.close_round("a", "1-publication", 5)
        devices = store.answered("a", "1-publication")
        assert devices is not None
        found = {row.tobytes() for part in devices for row in part}
        assert found == {device_of(4), device_of(2)}

    def test_streams_have_rosters_of_their_own(self, store: Store) -> None:
        store.create_stream("b", TERMS)
        assert store.enrol("a", device_of(1)) == store.enrol("b", device_of(2)) == 0
        assert store.roster("b") == device_of(2)

    # Rounds

    def test_a_round_comes_back_as_it_was_opened(self, store: Store) -> None:
        new = new_round(3, roster_size=9, asked=b"\1\0\0\0\4\0\0\0")
        assert store.open_round("a", new) == 1
        (stored,) = self.reopened().rounds("a", 0)
        assert {name: getattr(stored, name) for name in vars(new)} == vars(new)
        assert (stored.state, stored.support, stored.closed_ms) == (RoundState.OPEN, None, None)

    def test_rounds_of_a_stretch_of_time(self, store: Store) -> None:
        for t in (1, 2, 3, 4):
            store.open_round("a", new_round(t))
            store.close_round("a", f"{t}-publication", 50)
        assert [one.t for one in store.rounds("a", 1, 3)] == [2, 3]
        assert [one.t for one in store.rounds("a", 1)] == [2, 3, 4]

    def test_a_round_is_opened_once(self, store: Store) -> None:
        store.open_round("a", new_round(1))
        with pytest.raises(Exception, match=r"(?i)unique"):
            store.open_round("a", new_round(1))
        found = store.stream("a")
        assert found is not None
        assert found.serial == 1

    def test_a_report_counts_once(self, store: Store) -> None:
        store.open_round("a", new_round(1))
        verdicts = store.accept("a", "1-publication", unsigned((1, b"\1a"), (2, b"\1b")))
        assert verdicts.tolist() == [Verdict.ACCEPTED] * 2
        for _ in range(2):
            again = store.accept(
                "a", "1-publication", unsigned((1, b"\1a"), (2, b"\1c"), (3, b"\1d"))
            )
            assert again.tolist()[:2] == [Verdict.REPEATED, Verdict.CONFLICT]
            store = self.reopened()
        assert store.received("a", "1-publication") == 3
        store.close_round("a", "1-publication", 5)
        assert stored_reports(store) == [b"\1a", b"\1b", b"\1d"]

    def test_a_device_that_stands_twice_in_a_batch_counts_once(self, store: Store) -> None:
        store.open_round("a", new_round(1))
        batch = unsigned((1, b"\1a"), (1, b"\1a"), (1, b"\1b"))
        verdicts = store.accept("a", "1-publication", batch)
        assert verdicts.tolist() == [Verdict.ACCEPTED, Verdict.REPEATED, Verdict.CONFLICT]
        assert store.received("a", "1-publication") == 1

    def test_a_closed_round_takes_no_reports(self, store: Store) -> None:
        store.open_round("a", new_round(1))
        assert store.close_round("a", "1-publication", 50) == 2
        assert store.close_round("a", "1-publication", 60) == 2
        for reopen in (False, True):
            current = self.reopened() if reopen else store
            verdicts = current.accept("a", "1-publication", unsigned((1, b"\1a")))
            assert verdicts.tolist() == [Verdict.CLOSED]
        (stored,) = self.current.rounds("a", 0)
        assert (stored.state, stored.closed_ms) == (RoundState.CLOSED, 50)

    def test_an_unknown_round_takes_no_reports(self, store: Store) -> None:
        assert store.accept("a", "9-x", unsigned((1, b"\1a"))).tolist() == [Verdict.CLOSED]
        assert store.received("a", "9-x") == 0

    def test_a_tally_replaces_the_reports(self, store: Store) -> None:
        store.open_round("a", new_round(1))
        store.accept("a", "1-publication", unsigned((1, b"\1a")))
        store.close_round("a", "1-publication", 50)
        store.tally("a", {"1-publication": SUPPORT})
        store = self.reopened()
        (stored,) = store.rounds("a", 0)
        assert stored.state is RoundState.TALLIED
        assert stored.support is not None
        assert (stored.support.counts.tolist(), stored.support.reports) == ([3, 1], 4)
        assert [*store.reports("a", "1-publication")] == []

    def test_what_was_counted_comes_as_columns(self, store: Store) -> None:
        for t in range(1, 5):
            store.open_round("a", new_round(t))
            if t != 3:
                store.close_round("a", f"{t}-publication", 50)
                store.tally("a", {f"{t}-publication": Support(np.array([t, 1]), 4)})
        found = store.tallied("a", 1, 4)
        assert (found.times, found.names) == ((2, 4), ("2-publication", "4-publication"))
        assert [np.frombuffer(one, "<i8").tolist() for one in found.counts] == [[2, 1], [4, 1]]
        assert found.reports == (4, 4)
        assert found.epsilons_nano == (new_round(1).epsilon_nano,) * 2
        assert store.tallied("a", 4, 9) == TalliedRounds()

    def test_a_tally_is_final(self, store: Store) -> None:
        store.open_round("a", new_round(1))
        store.close_round("a", "1-publication", 50)
        store.tally("a", {"1-publication": SUPPORT})
        with pytest.raises(Exception, match="never changes"):
            store.tally("a", {"1-publication": Support(np.array([9, 9]), 9)})

    def test_rounds_come_in_the_order_in_which_they_were_opened(self, store: Store) -> None:
        for t, purpose in ((1, "publication"), (2, "dissimilarity"), (2, "publication")):
            store.open_round("a", new_round(t, purpose))
        names = [one.name for one in store.rounds("a", 1)]
        assert names == ["2-dissimilarity", "2-publication"]

    def test_several_rounds_are_opened_together_or_not_at_all(self, store: Store) -> None:
        before = store.pulse("a")[0]
        assert store.open_round("a", new_round(), new_round(purpose="publication-v2")) == before + 1
        store = self.reopened()
        again = [new_round(2), new_round(2, "publication-v2"), new_round(1)]
        with pytest.raises(Exception, match=r"(?i)unique"):
            store.open_round("a", *again)
        names = ["1-publication", "1-publication-v2"]
        assert [one.name for one in store.rounds("a", 0)] == names
        for name in names:
            assert store.accept("a", name, unsigned((1, b"\1\0"))).tolist() == [Verdict.ACCEPTED]
        closed = store.accept("a", "2-publication", unsigned((1, b"\1\0"))).tolist()
        assert closed == [Verdict.CLOSED]

    # Releases

    def test_releases_come_back_bit_by_bit_with_the_state(self, store: Store) -> None:
        given = [release_of(1, missed=True), release_of(2)]
        store.release("a", given, {"t": 2}, 0)
        store = self.reopened()
        assert store.releases("a", 0, 10) == given
        assert store.releases("a", 2, 10) == given[1:]
        assert store.releases("a", 0, 1) == given[:1]
        found = store.stream("a")
        assert found is not None
        assert (found.last_t, found.mechanism) == (2, {"t": 2})

    @pytest.mark.parametrize("t", [1, 2])
    def test_a_release_never_changes(self, store: Store, t: int) -> None:
        store.release("a", [release_of(2)], {"t": 2}, 0)
        with pytest.raises(Exception, match="released"):
            store.release("a", [release_of(t, asked=99)], {"t": 3}, 0)
        found = store.stream("a")
        assert found is not None
        assert (found.last_t, found.mechanism) == (2, {"t": 2})
        assert store.releases("a", 0, 10) == [release_of(2)]

    # The chain

    @pytest.fixture
    def released(self, store: Store) -> Store:
        for part in ((1, 2), (3, 4), (6, 7)):
            store.release("a", [release_of(t) for t in part], {"t": part[-1]}, 0)
        return store

    def test_the_chain_of_what_was_released_holds(self, released: Store) -> None:
        whole = ChainCheck("a", releases=6, first_t=1, last_t=7, damage=None)
        assert released.check_releases("a") == whole
        assert self.reopened().check_releases("a") == whole
        assert self.current.check_releases("b") == ChainCheck("b")

    @pytest.mark.parametrize("what", DAMAGE)
    def test_what_was_done_to_releases_is_found_and_can_be_accepted(
        self, released: Store, what: str
    ) -> None:
        t, statements = DAMAGE[what]
        self.tamper(statements)
        for _ in range(2):
            found = self.current.check_releases("a")
            assert found.damage is not None
            assert found.damage.t == t
            with pytest.raises(Mistake, match=f"stream a differs .* t={t}"):
                found.refuse_damage()
            self.reopened()
        before = self.current.releases("a", 0, 10)
        self.current.accept_releases("a")
        assert self.current.releases("a", 0, 10) == before
        self.current.release("a", [release_of(10)], {"t": 10}, 0)
        assert self.current.releases("a", 0, 10) == [*before, release_of(10)]
        assert self.reopened().check_releases("a").damage is None

    def test_what_was_changed_under_a_running_collector_is_not_sealed_again(
        self, released: Store
    ) -> None:
        self.tamper(DAMAGE["the tail removed, and the end moved"][1])
        with pytest.raises(Mistake, match="stored data of stream a differs from what was released"):
            released.release("a", [release_of(8)], {"t": 8}, 0)
        assert [one.t for one in released.releases("a", 0, 10)] == [1, 2, 3, 4]

    def test_a_prefix_is_pruned_and_the_rest_still_holds(self, released: Store) -> None:
        released.prune("a", 4)
        store = self.reopened()
        expected = ChainCheck("a", releases=3, first_t=4, last_t=7, pruned_t=3)
        assert store.check_releases("a") == expected
        store.prune("a", 2)  # they are gone already
        store.release("a", [release_of(8)], {"t": 8}, 0)
        store.prune("a", 99)
        assert [one.t for one in store.releases("a", 0, 10)] == [8]
        store.release("a", [release_of(9)], {"t": 9}, 0)
        assert self.reopened().check_releases("a").damage is None
        self.tamper("DELETE FROM release WHERE t = 8")
        found = self.reopened().check_releases("a").damage
        assert found is not None
        assert found.t == 9

    def test_summaries_stand_in_the_place_of_what_was_pruned(self, released: Store) -> None:
        released.prune("a", 3, added=[summary_of(1), summary_of(2)])
        released.prune("a", 5, added=[summary_of(3, last_t=4)])
        store = self.reopened()
        assert store.summaries("a") == [summary_of(1), summary_of(2), summary_of(3, last_t=4)]
        assert [one.first_t for one in store.summaries("a", 2000, 1)] == [2]
        found = store.check_releases("a")
        assert (found.damage, found.pruned_t, found.summaries, found.releases) == (None, 4, 3, 2)
        store.prune("a", 0, added=[summary_of(1, last_t=2)], gone=[1, 2])
        store.release("a", [release_of(8)], {"t": 8}, 0)
        store.prune("a", 0, gone=[1])
        assert self.reopened().summaries("a") == [summary_of(3, last_t=4)]
        assert self.current.check_releases("a").damage is None
        self.current.prune("a", 0, gone=[3])
        assert self.reopened().check_releases("a").damage is None

    @pytest.mark.parametrize(
        ("t", "change"),
        [
            (2, "UPDATE summary SET content = '{}' WHERE first_t = 2"),
            (2, "UPDATE summary SET last_t = 3 WHERE first_t = 2"),
            (2, "UPDATE summary SET start_ms = 7 WHERE first_t = 2"),
            (3, "DELETE FROM summary WHERE first_t = 1"),
            (3, "DELETE FROM summary WHERE first_t = 3"),
            (3, "DELETE FROM summary"),
            (7, "DELETE FROM summary; UPDATE stream SET summaries = substr(seal, 1, 0)"),
        ],
    )
    def test_summaries_that_were_changed_are_found(
        self, released: Store, t: int, change: str
    ) -> None:
        released.prune("a", 4, added=[summary_of(1), summary_of(2), summary_of(3)])
        self.tamper(change)
        found = self.reopened().check_releases("a").damage
        assert found is not None
        assert found.t == t
        self.current.accept_releases("a")
        assert self.reopened().check_releases("a").damage is None

    def test_rounds_go_with_their_releases(self, released: Store) -> None:
        released.open_round("a", new_round(2))
        released.close_round("a", "2-publication", 9)
        released.tally("a", {"2-publication": SUPPORT})
        released.open_round("a", new_round(6))
        released.prune("a", 4)
        assert [one.t for one in released.rounds("a", 0)] == [6]

    def test_a_chain_is_of_one_stream(self, released: Store) -> None:
        released.create_stream("b", TERMS)
        self.tamper(
            "INSERT INTO release SELECT stream + 1, t, at_ms, content, asked, received, missed,"
            " link FROM release; UPDATE stream SET last_t = 7 WHERE name = 'b';"
            " UPDATE stream SET head = (SELECT head FROM stream WHERE name = 'a'),"
            " seal = (SELECT seal FROM stream WHERE name = 'a') WHERE name = 'b'"
        )
        found = self.current.check_releases("b").damage
        assert found is not None
        assert found.t == 1

    def test_another_master_secret_is_refused(self, store: Store) -> None:
        store.close()
        with pytest.raises(Mistake, match="another master secret") as refused:
            self.create(b"another master secret")
        assert refused.value.problem is Problem.MASTER_DIFFERS
        self.current = self.create()

    def test_the_chain_outlives_a_change_of_the_master_secret(self, released: Store) -> None:
        """What a rotation does: the same key, sealed anew."""
        new = b"the next master secret"
        key = unseal(SECRETS.master, CHAIN_KEY, self.property(CHAIN_KEY))
        assert key is not None
        self.tamper(
            f"UPDATE property SET value = '{seal(new, CHAIN_KEY, key)}' WHERE name = 'chain-key';"
            f" UPDATE property SET value = '{check_of(new)}' WHERE name = 'master'"
        )
        released.close()
        self.current = self.create(new)
        assert self.current.check_releases("a").damage is None

    def test_a_sealed_key_that_was_changed_is_refused(self, released: Store) -> None:
        sealed = self.property(CHAIN_KEY)
        other = f"{int(sealed[40], 16) ^ 1:x}"
        self.tamper(
            f"UPDATE property SET value = '{sealed[:40]}{other}{sealed[41:]}'"
            " WHERE name = 'chain-key'"
        )
        released.close()
        with pytest.raises(Mistake, match="the key of its chain does not open"):
            self.create()
        self.tamper(f"UPDATE property SET value = '{sealed}' WHERE name = 'chain-key'")
        self.current = self.create()

    def test_who_was_asked_is_forgotten_after_the_window(self, store: Store) -> None:
        for t in (1, 2):
            store.open_round("a", new_round(t, roster_size=9, asked=b"\1\0\0\0"))
        store.release("a", [release_of(3)], {}, forget_t=1)
        assert [one.asked for one in store.rounds("a", 0)] == [None, b"\1\0\0\0"]

    # Together

    def test_what_fails_changes_nothing_and_hurts_nobody(self, store: Store) -> None:
        """Calls of many threads share transactions; a failed one must not affect the others."""
        store.open_round("a", new_round(1))
        failures = []

        def submit(number: int) -> None:
            if number % 5 == 0:
                try:
                    store.open_round("a", new_round(1))
                except Exception as error:
                    failures.append(error)
            store.accept("a", "1-publication", unsigned((number, b"\1a")))

        threads = [threading.Thread(target=submit, args=(number,)) for number in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(failures) == 10
        assert store.received("a", "1-publication") == 50
        assert self.reopened().received("a", "1-publication") == 50

    def test_many_reports_come_back_whole(self, store: Store) -> None:
        store.open_round("a", new_round(1))
        for first in range(0, 3000, 1000):
            batch = unsigned(*((n, b"\1" + bytes([n % 256])) for n in range(first, first + 1000)))
            assert not store.accept("a", "1-publication", batch).any()
        store = self.reopened()
        store.close_round("a", "1-publication", 5)
        assert stored_reports(store) == [b"\1" + bytes([n % 256]) for n in range(3000)]

    def test_a_note_is_replaced_as_a_whole_and_survives(self, store: Store) -> None:
        assert store.note("a", "mine") is None
        store.write_note("a", "mine", {"x": 1})
        store.write_note("a", "mine", {"y": [0.1]})
        store.write_note("a", "yours", {})
        assert self.reopened().note("a", "mine") == {"y": [0.1]}

    def test_a_setting_is_changed_by_one_at_a_time(self, store: Store) -> None:
        def count(note: dict[str, Any] | None) -> dict[str, Any]:
            return {"n": (note or {"n": 0})["n"] + 1}

        def refuse(note: dict[str, Any] | None) -> dict[str, Any]:
            raise Mistake(Problem.ALERT_RULE_UNKNOWN, given="it")

        with pytest.raises(Mistake):
            store.change_setting("a", "set", refuse)
        assert store.note("a", "set") is None
        with ThreadPoolExecutor(8) as pool:
            told = list(pool.map(lambda _: store.change_setting("a", "set", count), range(40)))
        assert sorted(one["n"] for one in told) == list(range(1, 41))
        with pytest.raises(Mistake):
            store.change_setting("a", "set", refuse)
        assert self.reopened().note("a", "set") == {"n": 40}

    def test_an_observer_is_told_of_each_change_and_of_each_failure(self, store: Store) -> None:
        seen: list[tuple[str, bool]] = []
        store.observer = lambda stream, change, seconds: seen.append((change, seconds is not None))
        store.enrol("a", device_of(1))
        store.open_round("a", new_round(1))
        with pytest.raises(Exception, match=r"(?i)unique"):
            store.open_round("a", new_round(1))
        store.accept("a", "1-publication", unsigned((1, b"\1a")))
        store.close_round("a", "1-publication", 9)
        store.tally("a", {"1-publication": SUPPORT})
        store.release("a", [release_of(1)], {}, 0)
        store.write_note("a", "mine", {})
        changes = ["accept", "close_round", "tally", "release", "write_note"]
        expected = [("enrol", True), ("open_round", True), ("open_round", False)]
        assert seen == [*expected, *((change, True) for change in changes)]
