"""Who leaves is forgotten, but for what was spent: joining again is no way around the ledger."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ldpstream.device import Device, read_status
from ldpstream.device.checking import check_ledger
from ldpstream.device.command_line import run
from ldpstream.device.store import DeviceStore
from ldpstream.errors import Mistake
from tests.device.collectors import (
    INTERVAL_MS,
    NANO,
    TOKEN,
    URL,
    Bench,
    a_round,
    make_terms,
    number_shown,
)


def secrets_in(path: Path) -> bytes:
    (enrolment,) = DeviceStore(path).load().enrolments
    return enrolment.secret


def numbers(bench: Bench) -> list[str]:
    """The numbers under which the device has enrolled."""
    shown = [
        json.loads(one.body)["secret"] for one in bench.collector.requests if one.body[:1] == b"{"
    ]
    return [number_shown(one) for one in shown]


def test_the_collector_is_told_and_everything_that_identifies_is_deleted(bench: Bench) -> None:
    device = bench.enrolled()
    (sent,) = bench.ask(device, a_round(1))
    secret, key = secrets_in(bench.path), device.session.account.enrolled.key
    assert device.leave() is True
    assert bench.collector.requests[-1].method == "DELETE"
    memory = DeviceStore(bench.path).load()
    assert memory.enrolments == ()
    assert [(one.nano, one.report) for one in memory.entries] == [(NANO, None)]
    device.close()
    left = bench.path.read_bytes()
    assert secret not in left
    assert key not in left
    assert sent.report not in [one.report for one in memory.entries]


def test_who_has_left_sends_nothing(bench: Bench) -> None:
    device = bench.enrolled()
    device.leave()
    with pytest.raises(Mistake, match="not enrolled"):
        device.poll()
    with pytest.raises(Mistake, match="not enrolled"):
        bench.open().leave()


def test_joining_again_finds_the_debits_and_gets_another_number(bench: Bench) -> None:
    device = bench.enrolled()
    bench.ask(device, a_round(1))
    device.leave()
    device = bench.enrolled()
    first, second = numbers(bench)
    assert first != second
    bench.clock.pass_timestamps(3)
    assert bench.ask(device, a_round(4)) == []  # the window is not over
    bench.clock.pass_ms(INTERVAL_MS + 1)
    assert [one.t for one in bench.ask(device, a_round(5))] == [5]


def test_joining_again_needs_no_silence(bench: Bench) -> None:
    """The debits are all there, so the past is known."""
    device = bench.enrolled()
    bench.ask(device, a_round(1, epsilon_nano=NANO // 4))
    device.leave()
    device = bench.enrolled()
    assert bench.ask(device, a_round(1, epsilon_nano=NANO // 2, name="1-b")) != []
    assert bench.ask(device, a_round(1, epsilon_nano=NANO // 2, name="1-c")) == []


def test_the_same_round_is_not_answered_twice_beyond_epsilon(bench: Bench) -> None:
    device = bench.enrolled()
    bench.ask(device, a_round(1))
    device.leave()
    device = bench.enrolled()
    assert bench.ask(device, a_round(1)) == []


def test_an_ended_promise_binds_until_its_span_has_passed(bench: Bench) -> None:
    """Left under (1, 4 timestamps), joined under (1, 1 timestamp): the longer one still binds."""
    device = bench.enrolled()
    bench.ask(device, a_round(1))
    device.leave()
    bench.collector.terms = make_terms(window=1)
    device = bench.enrolled()
    bench.clock.pass_timestamps(2)
    assert bench.ask(device, a_round(3)) == []
    bench.clock.pass_timestamps(2)
    bench.clock.pass_ms(1)
    assert len(bench.ask(device, a_round(5))) == 1
    bench.clock.pass_timestamps(1)
    bench.clock.pass_ms(1)
    assert len(bench.ask(device, a_round(6))) == 1
    assert check_ledger(bench.path).faults == ()


def test_a_longer_window_counts_what_was_spent_before(bench: Bench) -> None:
    device = bench.enrolled()
    bench.ask(device, a_round(1))
    device.leave()
    bench.collector.terms = make_terms(window=8)
    device = bench.enrolled()
    bench.clock.pass_timestamps(6)
    assert bench.ask(device, a_round(7)) == []
    bench.clock.pass_timestamps(2)
    bench.clock.pass_ms(1)
    assert len(bench.ask(device, a_round(9))) == 1


def test_a_copy_from_before_leaving_is_silent(bench: Bench) -> None:
    device = bench.enrolled()
    bench.ask(device, a_round(1))
    kept = bench.path.read_bytes()
    device.leave()
    bench.path.write_bytes(kept)
    bench.witness.trusts = False  # type: ignore[attr-defined]
    bench.clock.pass_timestamps(1)
    assert bench.ask(bench.open(), a_round(2)) == []


def test_without_a_network_it_has_left_all_the_same(bench: Bench) -> None:
    device = bench.enrolled()
    bench.collector.loses = lambda request: True
    assert device.leave() is False
    assert read_status(bench.path).terms is None


def test_a_disk_that_fails_keeps_the_device_in_and_sends_nothing(bench: Bench) -> None:
    device = bench.enrolled()
    bench.path.chmod(0o400)
    sent = len(bench.collector.requests)
    bench.path.rename(bench.path.with_name("moved"))
    with pytest.raises(Exception, match="device"):
        device.leave()
    assert len(bench.collector.requests) == sent


def test_the_command_leaves_and_says_whether_the_collector_was_told(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.enrolled().close()
    with closing(sqlite3.connect(bench.path)) as connection:
        connection.execute("UPDATE enrolment SET url = 'http://127.0.0.1:9'")
        connection.commit()
    assert run(["leave", str(bench.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"stream": "regions", "left": True, "told": False}
    assert run(["leave", str(bench.path)]) == 2
    assert "is not enrolled" in capsys.readouterr().err


# Identity


def test_a_number_is_another_at_every_collector_and_stream(bench: Bench) -> None:
    device = bench.create()
    secret = device.session.account.enrolment_secret
    shown = {
        secret(origin, stream)
        for origin in ("https://a.example", "https://b.example")
        for stream in ("one", "two")
    }
    assert len(shown) == 4


@pytest.mark.parametrize("url", ["http://stats.example", "http://10.0.0.1", "http://[fd00::1]:80"])
def test_plain_http_is_refused_before_anything_is_sent(bench: Bench, url: str) -> None:
    device = bench.create()
    with pytest.raises(Mistake, match="not encrypted"):
        device.enrol(url, "regions", TOKEN)
    assert bench.collector.requests == []
    device.enrol(url, "regions", TOKEN, plain_http=True)


@pytest.mark.parametrize("url", [URL, "http://localhost:1", "http://127.0.0.9:1", "http://[::1]:1"])
def test_within_the_machine_and_over_tls_it_is_allowed(bench: Bench, url: str) -> None:
    bench.create().enrol(url, "regions", TOKEN)


def test_an_answer_for_another_device_is_refused(bench: Bench) -> None:
    bench.collector.enrolment = {"device": "0" * 32}
    with pytest.raises(Exception, match="device"):
        bench.enrolled()
    assert Device.open(bench.path, **bench.parts).terms is None


# What was seen from outside


def restored(bench: Bench, kept: bytes) -> Device:
    """The device after a copy of its file was put back, which the witness notices."""
    bench.path.write_bytes(kept)
    bench.witness.trusts = False  # type: ignore[attr-defined]
    device = bench.open()
    device.observe("south")
    device.session.account.refresh()
    return device


SMALL = make_terms(epsilon_nano=NANO // 100, window=1)
LARGE = make_terms(window=8)


def test_an_unknown_past_binds_promises_that_have_ended(bench: Bench) -> None:
    """A copy from after leaving: all of the larger promise counts as spent, not the smaller."""
    bench.collector.terms = LARGE
    device = bench.enrolled()
    bench.ask(device, a_round(1, epsilon_nano=1))
    device.leave()
    bench.collector.terms = SMALL
    device = bench.enrolled()
    device = restored(bench, bench.path.read_bytes())
    bench.witness.trusts = True  # type: ignore[attr-defined]
    bench.clock.pass_timestamps(3)
    assert bench.ask(device, a_round(4, epsilon_nano=NANO // 100)) == []
    bench.clock.pass_timestamps(6)
    assert len(bench.ask(device, a_round(10, epsilon_nano=NANO // 100))) == 1


def test_leaving_does_not_make_an_unknown_past_known(bench: Bench) -> None:
    bench.collector.terms = SMALL
    device = bench.enrolled()
    device = restored(bench, bench.path.read_bytes())
    bench.witness.trusts = True  # type: ignore[attr-defined]
    device.leave()
    bench.collector.terms = LARGE
    device = bench.enrolled()
    bench.clock.pass_timestamps(7)
    assert bench.ask(device, a_round(8)) == []
    bench.clock.pass_timestamps(2)
    assert len(bench.ask(device, a_round(10))) == 1


def test_a_file_that_is_no_first_install_is_silent_after_leaving_too(bench: Bench) -> None:
    bench.collector.terms = SMALL
    device = bench.enrolled(first_install=False)
    device.leave()
    bench.collector.terms = LARGE
    device = bench.enrolled()
    bench.clock.pass_timestamps(7)
    assert bench.ask(device, a_round(8)) == []


def test_an_ended_promise_is_kept_while_another_process_reads_under_it(bench: Bench) -> None:
    """Both readings begin before it runs out: together they get what it allows."""
    device = bench.enrolled()
    bench.ask(device, a_round(1))
    device.leave()
    bench.collector.terms = make_terms(window=1)
    first, second = bench.enrolled(), bench.open()
    bench.clock.pass_ms(4 * INTERVAL_MS - 1)  # the debit is free, the promise binds for 1 ms

    def slow() -> str:
        bench.clock.pass_ms(5)
        bench.collector.rounds = [a_round(4, "4-second", epsilon_nano=NANO)]
        second.observe("north")
        second.poll()
        return "south"

    before = len(bench.collector.sent)
    bench.clock.pass_ms(1)
    first.follow(slow)
    bench.ask(first, a_round(bench.t, "4-first"))
    assert len(bench.collector.sent) - before <= 1


def test_a_promise_under_which_nothing_was_sent_ends_at_once(bench: Bench) -> None:
    """Else terms that allow nothing for ages would silence the device in every other stream."""
    bench.collector.terms = make_terms(epsilon_nano=1, window=1 << 31)
    device = bench.enrolled()
    device.leave()
    bench.collector.terms = make_terms()
    assert len(bench.ask(bench.enrolled(), a_round(1))) == 1


def test_ended_promises_do_not_pile_up(bench: Bench) -> None:
    bench.collector.terms = make_terms(window=1)
    for _ in range(5):
        device = bench.enrolled()
        bench.clock.pass_timestamps(2)
        bench.ask(device, a_round(bench.t))
        bench.clock.pass_timestamps(2)
        device.leave()
    assert len(DeviceStore(bench.path).load().ended) <= 1


def test_nothing_of_the_old_enrolment_is_told_under_the_new_one(bench: Bench) -> None:
    """A serial that one collector hands out would tell another one who has come."""
    bench.collector.serial = 10**12
    device = bench.enrolled()
    bench.ask(device, a_round(1))
    device.leave()
    bench.enrolled()
    device.enrol("https://another.invalid", "regions", TOKEN, moved_from=URL)
    bench.ask(device)
    assert "after=0" in bench.collector.requests[-1].path


def test_enrolled_at_another_address_it_does_not_repeat_its_bytes(bench: Bench) -> None:
    device = bench.enrolled()
    bench.ask(device, a_round(1))
    device.enrol("https://another.invalid", "regions", TOKEN, moved_from=URL)
    assert bench.ask(device, a_round(1)) == []


def test_a_process_notices_that_another_one_has_left(bench: Bench) -> None:
    device, other = bench.enrolled(), bench.open()
    other.leave()
    with pytest.raises(Mistake, match="not enrolled"):
        device.poll()
    with pytest.raises(Mistake, match="not enrolled"):
        device.run()


def test_an_unusable_value_is_told_after_the_report_has_left(bench: Bench) -> None:
    device, seen = bench.enrolled(), list[int]()
    device.session.value._warn = lambda problem: seen.append(len(bench.collector.sent))
    device.observe(None)
    bench.ask(device, a_round(1))
    assert seen == [1]


def test_secrets_are_in_no_repr(bench: Bench) -> None:
    device = bench.enrolled()
    secret = json.loads(bench.collector.requests[0].body)["secret"]
    assert secret not in repr(bench.collector.requests)
    account = device.session.account
    assert account._secret.hex() not in repr(vars(account))


@pytest.mark.parametrize(
    "url",
    ["https://fleet:pass@stats.example", "https://stäts.example", "https://127.1", "https://a:0"],
)
def test_addresses_that_a_browser_would_spell_otherwise_are_refused(bench: Bench, url: str) -> None:
    with pytest.raises(Mistake, match="the collector is") as refused:
        bench.create().enrol(url, "regions", TOKEN)
    assert "pass@" not in str(refused.value)


def test_the_audit_knows_promises_that_have_ended(bench: Bench) -> None:
    device = bench.enrolled()
    bench.ask(device, a_round(1))
    device.leave()
    bench.collector.terms = make_terms(window=1, epsilon_nano=2 * NANO)
    bench.enrolled()
    with closing(sqlite3.connect(bench.path)) as connection:
        connection.execute(
            "INSERT INTO ledger VALUES (2, '2-x', ?, x'0100', 70000, 0, 2, 2)", (NANO,)
        )
        connection.commit()
    assert any("the stream that was left" in fault for fault in check_ledger(bench.path).faults)


def test_moved_and_then_left_the_promise_still_binds(bench: Bench) -> None:
    """The bytes are deleted when it enrols at another address; the report was made all the same."""
    device = bench.enrolled()
    bench.ask(device, a_round(1))
    device.enrol("https://another.invalid", "regions", TOKEN, moved_from=URL)
    device.leave()
    assert len(DeviceStore(bench.path).load().ended) == 1


def test_a_copy_that_is_left_keeps_the_promise(bench: Bench) -> None:
    """Reports that the copy does not know of may have been made under it."""
    device = bench.enrolled()
    kept = bench.path.read_bytes()
    bench.ask(device, a_round(1))
    restored(bench, kept).leave()
    assert len(DeviceStore(bench.path).load().ended) == 1
