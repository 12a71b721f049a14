"""The contract of a store's admin tables, which both stores are held to."""

from __future__ import annotations

from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from ldpstream.collector.credentials.enrolment_tokens import EnrolmentToken, digest_of
from ldpstream.collector.credentials.masters import Masters
from ldpstream.collector.store.admin_tables import AdminLogEntry
from ldpstream.collector.store.contract import Store
from ldpstream.collector.store.statements import Execute
from ldpstream.errors import Mistake, Problem
from tests.collector.helpers import SECRETS, device_of

NEW = b"the next master secret"
FIRST = Masters.single(SECRETS.master)
ROTATED = FIRST.rotated(NEW, issued_ms=70)
TOKEN = EnrolmentToken("field", digest_of("a token"), "a", made_ms=5)


def entry(action: str = "test", at_ms: int = 100) -> AdminLogEntry:
    return AdminLogEntry(at_ms, "the tests", action, {"name": "x"})


DAMAGE = {
    "details": (2, """UPDATE admin_log SET details = '{"name":"y"}' WHERE id = 2"""),
    "who": (1, "UPDATE admin_log SET who = 'another' WHERE id = 1"),
    "a time": (3, "UPDATE admin_log SET at_ms = 1 WHERE id = 3"),
    "the first removed": (2, "DELETE FROM admin_log WHERE id = 1"),
    "the last removed": (3, "DELETE FROM admin_log WHERE id = 3"),
    "all removed": (1, "DELETE FROM admin_log"),
    "its end removed": (4, "DELETE FROM property WHERE name = 'admin-log'"),
}
"""What somebody may do to a log of three entries, and the first number that shows it."""


class AdminContract:
    """One test for each promise; `StoreContract` has the fixture and the other methods."""

    @abstractmethod
    def create(self, master: bytes = SECRETS.master) -> Store: ...
    @abstractmethod
    def reopened(self) -> Store: ...
    @abstractmethod
    def tamper(self, statements: str) -> None: ...

    current: Store

    # The log

    def test_what_administrators_did_is_logged_in_order(self, store: Store) -> None:
        assert (store.admin.serial(), store.admin.log(0, 10)) == (0, [])
        for at_ms in (100, 90):
            store.admin.record(entry(at_ms=at_ms))
        store = self.reopened()
        assert store.admin.serial() == 2
        first, second = store.admin.log(0, 10)
        assert (first, second) == (
            replace(entry(), number=1),
            replace(entry(at_ms=90), number=2),
        )
        assert store.admin.log(1, 10) == [second]
        assert store.admin.log(0, 1) == [first]
        assert store.admin.check_log().damage is None

    @pytest.mark.parametrize(
        "statement", ["UPDATE admin_log SET who = 'nobody'", "DELETE FROM admin_log"]
    )
    def test_the_log_can_only_be_appended_to(self, store: Store, statement: str) -> None:
        store.admin.record(entry())
        with pytest.raises(Exception, match="the admin log"):
            store.admin._tables.change(lambda run: run(statement))
        assert store.admin.log(0, 10) == [replace(entry(), number=1)]

    @pytest.mark.parametrize("what", DAMAGE)
    def test_a_log_that_was_changed_behind_our_back_is_found(self, store: Store, what: str) -> None:
        for _ in range(3):
            store.admin.record(entry())
        number, statement = DAMAGE[what]
        self.tamper(statement)
        damage = store.admin.check_log().damage
        assert damage is not None
        assert damage.t == number

    def test_a_log_that_was_removed_with_its_end_is_missed(self, store: Store) -> None:
        assert store.admin.check_log().damage is None
        store.admin.add_token(TOKEN, entry())
        self.tamper("DELETE FROM admin_log; DELETE FROM property WHERE name = 'admin-log'")
        damage = store.admin.check_log().damage
        assert damage is not None
        assert damage.t == 1
        with pytest.raises(Mistake, match="admin log was changed"):
            store.admin.deny("a", [device_of(1)], entry())
        assert store.admin.denied() == {}

    def test_a_log_that_was_removed_with_all_that_it_tells_of_is_missed(self, store: Store) -> None:
        """As if nothing had ever been done: but the sealed key says that a log was begun."""
        assert store.admin.check_log().damage is None
        store.admin.add_token(TOKEN, entry())
        self.tamper(
            "DELETE FROM admin_log; DELETE FROM property WHERE name = 'admin-log';"
            " DELETE FROM enrolment_token"
        )
        damage = store.admin.check_log().damage
        assert damage is not None
        assert self.reopened().admin.check_log().damage == damage

    def test_a_log_whose_end_was_changed_takes_no_more(self, store: Store) -> None:
        for _ in range(3):
            store.admin.record(entry())
        self.tamper("DELETE FROM admin_log WHERE id = 3")
        with pytest.raises(Mistake, match="admin log was changed") as refused:
            store.admin.record(entry())
        assert refused.value.problem is Problem.CHAIN_BROKEN
        store.admin.accept_log(entry("accept"))
        assert store.admin.check_log().damage is None
        assert [one.action for one in self.reopened().admin.log(0, 9)] == ["test", "test", "accept"]

    # Master secrets

    def test_a_rotation_seals_everything_anew_at_once(self, store: Store) -> None:
        assert store.admin.masters([NEW, SECRETS.master]) == FIRST
        store.admin.replace_masters(FIRST, ROTATED, entry("rotate"))
        assert store.admin.masters([SECRETS.master]) is None
        self.current.close()
        with pytest.raises(Mistake, match="another master secret"):
            self.create(SECRETS.master)
        self.current = store = self.create(NEW)
        assert store.admin.masters([SECRETS.master, NEW]) == ROTATED
        assert store.admin.check_log().damage is None
        assert store.check_releases("a").damage is None
        store.admin.replace_masters(ROTATED, ROTATED.dropped(), entry("drop"))
        assert store.admin.masters([NEW]) == ROTATED.dropped()
        assert [one.action for one in store.admin.log(0, 9)] == ["rotate", "drop"]

    def test_of_two_rotations_at_once_one_is_refused(self, store: Store) -> None:
        store.admin.replace_masters(FIRST, ROTATED, entry())
        with pytest.raises(Mistake, match="try again"):
            store.admin.replace_masters(FIRST, FIRST.rotated(b"a third one", 0), entry())
        assert store.admin.masters([NEW]) == ROTATED
        assert store.admin.serial() == 1

    # Enrolment tokens

    def test_tokens_are_kept_with_their_limits(self, store: Store) -> None:
        other = EnrolmentToken("all", digest_of("another"), None, 6, 90, 3)
        store.admin.add_token(TOKEN, entry())
        store.admin.add_token(other, entry())
        assert self.reopened().admin.tokens() == [TOKEN, other]
        with pytest.raises(Mistake) as refused:
            self.current.admin.add_token(replace(TOKEN, digest=digest_of("third")), entry())
        assert refused.value.problem is Problem.TOKEN_EXISTS
        assert self.current.admin.serial() == 2, "what was refused is not in the log"

    def test_a_device_that_enrols_again_does_not_use_a_token_twice(self, store: Store) -> None:
        store.admin.add_token(replace(TOKEN, most_uses=2), entry())
        for number in (1, 1, 2, 1, 2):
            store.admin.use_token("field", "a", device_of(number), now_ms=6)
        store = self.reopened()
        assert [one.uses for one in store.admin.tokens()] == [2]
        with pytest.raises(Mistake, match="'field' is used up"):
            store.admin.use_token("field", "a", device_of(3), now_ms=6)
        store.admin.use_token("field", "a", device_of(2), now_ms=6)
        assert [one.uses for one in store.admin.tokens()] == [2]

    def test_each_level_of_a_device_is_a_use(self, store: Store) -> None:
        store.admin.add_token(replace(TOKEN, most_uses=2), entry())
        for level in ("", "careful", "", "careful"):
            store.admin.use_token("field", "a", device_of(1), 6, level)
        with pytest.raises(Mistake, match="'field' is used up"):
            store.admin.use_token("field", "a", device_of(1), 6, "bold")
        assert [one.uses for one in store.admin.tokens()] == [2]

    def test_a_token_is_never_used_too_often(self, store: Store) -> None:
        store.admin.add_token(replace(TOKEN, most_uses=7), entry())

        def use(number: int) -> bool:
            try:
                store.admin.use_token("field", "a", device_of(number // 2), now_ms=6)
            except Mistake:
                return False
            return True

        with ThreadPoolExecutor(8) as threads:
            done = list(threads.map(use, range(40)))
        assert len({number // 2 for number, used in enumerate(done) if used}) == 7
        assert [one.uses for one in store.admin.tokens()] == [7]

    def test_a_token_that_has_ended_is_refused(self, store: Store) -> None:
        store.admin.add_token(replace(TOKEN, expires_ms=50), entry())
        store.admin.use_token("field", "a", device_of(1), now_ms=49)
        with pytest.raises(Mistake, match="'field' has expired"):
            store.admin.use_token("field", "a", device_of(1), now_ms=50)
        store.admin.revoke_token("field", entry(at_ms=60))
        with pytest.raises(Mistake, match="'field' was revoked"):
            store.admin.use_token("field", "a", device_of(1), now_ms=40)
        for name in ("field", "unknown"):
            with pytest.raises(Mistake) as refused:
                store.admin.revoke_token(name, entry())
            assert refused.value.problem is Problem.TOKEN_UNKNOWN
        assert [(one.uses, one.revoked_ms) for one in store.admin.tokens()] == [(1, 60)]

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE enrolment_token SET revoked_ms = NULL",
            "UPDATE enrolment_token SET uses = 0",
            "DELETE FROM enrolment_token",
        ],
    )
    def test_a_token_never_gets_better(self, store: Store, statement: str) -> None:
        store.admin.add_token(TOKEN, entry())
        store.admin.use_token("field", "a", device_of(1), now_ms=6)
        store.admin.revoke_token("field", entry())
        with pytest.raises(Exception, match="token"):
            store.admin._tables.change(lambda run: run(statement))

    # The deny list

    def test_devices_are_denied_by_stream(self, store: Store) -> None:
        store.create_stream("b", {"stream": "b"})
        one, two = device_of(1), device_of(2)
        store.admin.deny("a", [one, two], entry())
        store.admin.deny("b", [two], entry())
        store.admin.deny("a", [one], entry())
        found = self.reopened().admin.denied()
        assert {stream: {*devices} for stream, devices in found.items()} == {
            "a": {one, two},
            "b": {two},
        }
        self.current.admin.allow("a", [one, device_of(9)], entry())
        assert self.current.admin.denied() == {"a": [two], "b": [two]}
        assert self.current.admin.serial() == 4

    # Settings

    def test_a_setting_and_its_entry_are_stored_together(self, store: Store) -> None:
        for number in (1, 2):
            store.admin.set_note("a", "set", {"n": number}, entry())
        store = self.reopened()
        assert (store.note("a", "set"), store.admin.serial()) == ({"n": 2}, 2)
        assert store.admin.check_log().damage is None
        with pytest.raises(Exception, match=r"(?i)not.null"):
            store.admin.set_note("unknown", "set", {}, entry())
        assert store.admin.serial() == 2, "no entry without its setting"

    def test_a_setting_whose_entry_cannot_be_written_stays(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store.admin.set_note("a", "set", {"n": 1}, entry())
        append = store.admin._append

        def fail(run: Execute, entry: AdminLogEntry) -> None:
            append(run, entry)
            raise OSError("no more")

        monkeypatch.setattr(store.admin, "_append", fail)
        with pytest.raises(OSError, match="no more"):
            store.admin.set_note("a", "set", {"n": 2}, entry())
        store = self.reopened()
        assert (store.note("a", "set"), store.admin.serial()) == ({"n": 1}, 1)

    # Silences

    def test_rules_are_silenced_until_a_moment(self, store: Store) -> None:
        store.create_stream("b", {"stream": "b"})
        one, two = "0" * 16, "f" * 16
        store.admin.silence("a", one, 1000, entry())
        store.admin.silence("b", one, 2000, entry())
        store.admin.silence("a", two, 3000, entry())
        store.admin.silence("a", one, 4000, entry())  # in place of the first one
        found = self.reopened().admin
        assert found.silences() == {"a": {one: 4000, two: 3000}, "b": {one: 2000}}
        found.end_silence("a", one, entry())
        found.end_silence("a", "e" * 16, entry())  # there was none
        assert found.silences() == {"a": {two: 3000}, "b": {one: 2000}}
        found.silence("a", one, 9000, entry(at_ms=2500))
        assert found.silences() == {"a": {one: 9000, two: 3000}}, "one has ended"
        assert found.serial() == 7
        assert found.check_log().damage is None
