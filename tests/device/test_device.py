"""A device that is treated well: it enrols, answers, and says why when it does not."""

from __future__ import annotations

import hmac
import json
import sqlite3
import stat
from dataclasses import replace
from typing import Any

import pytest

from ldpstream.device import (
    LedgerUnusable,
    Refused,
    TermsRefused,
    Unreachable,
    read_status,
)
from ldpstream.device.exchange import Response
from ldpstream.device.rules import SilenceReason
from ldpstream.device.store import DeviceStore
from ldpstream.errors import Mistake, Problem
from ldpstream.numeric import BinnedRange, Numeric, Range
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.strata import Succession
from ldpstream.protocol.succession import objection
from ldpstream.protocol.terms import Terms
from tests.device.collectors import (
    ABSENT,
    BINNED,
    INTERVAL_MS,
    NANO,
    NUMBERS,
    START_MS,
    TOKEN,
    URL,
    Bench,
    a_round,
    device_key,
    failing_once,
    make_terms,
)

LEVEL = {"name": "more", "epsilon_nano": 1, "window": 9, "oracle": "square_wave"}
FOLLOWING = {"pin": "0" * 64, "version": 2, "from_t": 1, "until_t": 1}


def test_it_answers_a_round_with_one_report(bench: Bench) -> None:
    device = bench.enrolled()
    (sent,) = bench.ask(device, a_round(1))
    assert (sent.t, sent.nano, len(sent.report)) == (1, NANO, 2)
    assert bench.ask(device, a_round(1)) == []  # it has arrived
    assert bench.ask(device, a_round(1, "1-again")) == []  # nothing is left


def test_its_repr_names_the_file_and_the_streams(bench: Bench) -> None:
    device = bench.enrolled()
    assert device.terms is not None
    file = device.sessions.wallet.store.path.name
    assert repr(device) == f"{type(device).__name__}({file}: {device.terms.stream} at {URL})"


def test_a_reading_is_asked_for_when_a_report_is_drawn(bench: Bench) -> None:
    device, asked = bench.enrolled(), list[int]()

    def read() -> int:
        asked.append(device.t)
        return 2

    device.follow(read)
    bench.ask(device, a_round(1, rate=[0, 1]))
    bench.ask(device, a_round(1))
    bench.ask(device, a_round(1))
    assert asked == [1]


def test_the_file_is_for_its_owner_only(bench: Bench) -> None:
    bench.enrolled()
    assert stat.S_IMODE(bench.path.stat().st_mode) == 0o600
    assert [one.name for one in bench.path.parent.iterdir()] == [bench.path.name]


def test_enrolling_again_keeps_the_ledger(bench: Bench) -> None:
    device = bench.enrolled()
    bench.ask(device, a_round(1))
    device.enrol(URL, "regions", TOKEN)
    assert bench.ask(device, a_round(1, "1-again")) == []
    assert read_status(bench.path, bench.clock).left_nano == 0


@pytest.mark.parametrize("stream", ["é", "a/b", "", "regions\r\n", "..", "a" * 65])
def test_a_wrong_name_of_a_stream_is_a_mistake(bench: Bench, stream: str) -> None:
    with pytest.raises(Mistake, match="a stream's name"):
        bench.create().enrol(URL, stream, TOKEN)
    assert bench.collector.requests == []


@pytest.mark.parametrize("token", ["s3cret\n", "s3cret\r\nX: y", "s3cret→", "s3cret\0"])
def test_a_broken_token_is_a_mistake_that_does_not_show_it(bench: Bench, token: str) -> None:
    with pytest.raises(Mistake, match="the token is unprintable") as told:
        bench.create().enrol(URL, "regions", token)
    assert "s3cret" not in str(told.value)
    assert bench.collector.requests == []


def test_a_device_knows_its_terms(bench: Bench) -> None:
    assert bench.create().terms is None
    assert bench.enrolled().terms == bench.collector.terms


def test_an_unenrolled_device_says_so(bench: Bench) -> None:
    with bench.create() as device, pytest.raises(Mistake, match="not enrolled"):
        device.poll()
    assert read_status(bench.path).terms is None


@pytest.mark.parametrize("url", ["collector", "ftp://x", "http://", "http://x:port"])
def test_a_wrong_address_is_a_mistake(bench: Bench, url: str) -> None:
    with pytest.raises(Mistake, match="http"):
        bench.create().enrol(url, "regions", TOKEN)


@pytest.mark.parametrize(
    "answer",
    [
        {"key": "00"},
        {"key": None},
        {"key": "zz" * 32},
        {"pin": "0" * 64},
        {"terms": None},
        {"terms": {"version": 1}},
    ],
)
def test_a_malformed_enrolment_is_refused(bench: Bench, answer: dict[str, Any]) -> None:
    bench.collector.enrolment = answer
    with pytest.raises((Refused, TermsRefused)):
        bench.enrolled()
    assert read_status(bench.path).terms is None


@pytest.mark.parametrize(
    "change",
    [
        {"version": 1},
        {"version": True},
        {"selection": "everyone"},
        {"selection": "slots"},
        {"selection": "slots", "deadline_ms": 0},
        {"deadline_ms": 60_000},
        {"query": "everything"},
        {"stream": "a/b"},
        {"labels": ["one"]},
        {"labels": ["a", "a"]},
        {"labels": "ab"},
        {"labels": ["a", "\ud800"]},
        {"labels": ["a", "b" * 1001]},
        {"epsilon_nano": 0},
        {"epsilon_nano": 33 * NANO},
        {"epsilon_nano": 1.0},
        {"window": 0},
        {"window": True},
        {"interval_ms": 0},
        {"start_ms": -1},
        {"oracle": "none"},
        {"oracle": ["grr"]},
        {"more": 1},
        {"other": None},
        {"other": "elsewhere"},
        {"other": 0},
        {"other": ["north"]},
    ],
)
def test_terms_that_make_no_sense_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(TermsRefused):
        make_terms(**change)


def test_the_other_label_is_pinned_and_kept_on_disk(bench: Bench) -> None:
    assert make_terms().other is None
    bench.collector.terms = make_terms(other="west")
    bench.enrolled().close()
    kept = bench.open().terms
    assert kept == make_terms(other="west")
    assert kept.other == "west"


@pytest.mark.parametrize(
    "change",
    [
        {"low": -20},
        {"low": "-20.0"},
        {"low": "1e3"},
        {"low": "nan"},
        {"low": "60"},
        {"high": "٦٠"},
        {"steps": 0},
        {"steps": True},
        {"steps": 1 << 17},
        {"oracle": "grr"},
        {"labels": ["a", "b"]},
        {"other": "mean"},
    ],
)
def test_terms_of_numbers_that_make_no_sense_are_refused(change: dict[str, Any]) -> None:
    assert make_terms(**NUMBERS).values == Range(-20, 60, 800)
    with pytest.raises(TermsRefused):
        make_terms(**NUMBERS | change)


@pytest.mark.parametrize(
    "change",
    [
        {"bins": ABSENT},
        {"bins": True},
        {"bins": "32"},
        {"bins": 1},
        {"bins": 0, "steps": 1},
        {"bins": -32},
        {"bins": 512, "steps": 511},
        {"bins": 31},
        {"steps": 1024},
        {"steps": 511},
        {"oracle": "hybrid"},
        {"query": "mean"},
        {"query": "quantiles"},
        {"version": 3, "levels": [LEVEL]},
        {"version": 3, "succeeds": FOLLOWING},
    ],
)
def test_terms_of_distributions_that_make_no_sense_are_refused(change: dict[str, Any]) -> None:
    """What shapes a report is pinned: range, levels and bins, and from them the wave's width."""
    terms = make_terms(**BINNED)
    assert terms.values == BinnedRange.of(-20, 60, 32)
    assert Terms.read(terms.to_json()) == terms
    with pytest.raises(TermsRefused):
        make_terms(**BINNED | change)


def test_no_distribution_can_follow_a_mean() -> None:
    """A finer query is a looser promise: it has to be agreed to anew."""
    old = make_terms(**NUMBERS)
    new = replace(old, values=BinnedRange.of(-20, 60, 32), oracle=Numeric.SQUARE_WAVE)
    following = replace(new, succeeds=Succession(old.pin, 2, 5, 1, None))
    assert objection(old, following) == "query would change"


@pytest.mark.parametrize("changes", [NUMBERS, BINNED], ids=["mean", "distribution"])
def test_a_value_of_a_stream_of_numbers_is_a_number(bench: Bench, changes: dict[str, Any]) -> None:
    bench.collector.terms = make_terms(**changes)
    device = bench.create()
    device.enrol(URL, "regions", TOKEN)
    device.observe(21.34)
    (sent,) = bench.ask(device, a_round(1))
    assert len(sent.report) == bench.collector.terms.randomiser(Epsilon(NANO)).report_bytes


def test_an_outage_is_sat_out_with_growing_pauses(bench: Bench) -> None:
    """Offline for hours and back: nothing is lost but the rounds in between."""
    device = bench.enrolled()
    back_ms = START_MS + 5 * 60 * INTERVAL_MS
    bench.collector.loses = lambda request: bench.clock.wall < back_ms
    bench.collector.rounds = []

    def stop() -> bool:
        bench.collector.rounds = [a_round(bench.t)]
        return len(bench.collector.sent) > 0

    device.run(stop)
    assert len(bench.collector.sent) == 1
    assert bench.slept[:4] == [1.0, 2.0, 4.0, 8.0]
    assert max(bench.slept) == 300.0
    device.close()
    counts = {one.code: one.times for one in read_status(bench.path).refusals}
    assert counts["unreachable"] > 50


def test_a_busy_collector_is_given_the_time_it_asks_for(bench: Bench) -> None:
    device = bench.enrolled()
    bench.collector.status, bench.collector.headers = 429, {"retry-after": "7"}
    bench.ask(device, a_round(1))
    assert bench.slept[0] == 8.0
    assert len({sent.report for sent in bench.collector.sent}) == 1


def test_a_refused_report_is_not_sent_again(bench: Bench) -> None:
    device = bench.enrolled()
    bench.collector.status = 410
    assert len(bench.ask(device, a_round(1))) == 1
    (told,) = read_status(bench.path).refusals
    assert told.code == "collector-refused"
    assert "410 round-closed; late" in told.detail


def test_a_collector_that_answers_at_once_is_not_asked_in_a_frenzy(bench: Bench) -> None:
    device = bench.enrolled()
    bench.collector.serial = -1

    def stop() -> bool:
        bench.collector.serial = -1  # so that it answers 0, which is not news
        return len(bench.slept) == 5

    device.run(stop)
    assert bench.slept == [2.0] * 5


def test_a_late_round_costs_nothing(bench: Bench) -> None:
    device = bench.enrolled()
    late = a_round(1, deadline_ms=bench.clock.wall)
    bench.collector.rounds = [late]
    assert device.poll().silences == [SilenceReason.TOO_LATE]
    assert read_status(bench.path, bench.clock).left_nano == NANO


def test_who_listens_to_a_public_stream_is_nobodys_business(bench: Bench) -> None:
    device = bench.enrolled()
    bench.ask(device)
    assert bench.collector.requests[-1].headers == {}


@pytest.mark.parametrize("selection", ["open", "roster"])
def test_a_question_for_rounds_is_signed_with_its_serial(bench: Bench, selection: str) -> None:
    """By whoever is asked by number; and where a stream is unknown to those that do not sign."""
    bench.collector.enrolment = {"selection": selection}
    bench.collector.private = True
    device = bench.enrolled()
    number = device.session.account.number.hex()
    bench.ask(device)
    bench.ask(device)
    for after, question in enumerate(bench.collector.requests[-2:]):
        message = f"ldpstream rounds 2\n/v1/streams/regions/rounds\n{after}\n".encode()
        mac = hmac.digest(device_key("regions", number), message, "sha256")[:16].hex()
        assert question.headers == {"Ldp-Device": number, "Ldp-Mac": mac}


def test_a_clock_that_is_wrong_is_corrected_by_each_announcement(bench: Bench) -> None:
    bench.clock.wall -= 10**10
    bench.collector.now_ms = lambda: START_MS + bench.clock.steady - 5_000_000
    device = bench.enrolled()
    assert len(bench.ask(device, a_round(1))) == 1
    bench.clock.wall += 10**11
    bench.clock.pass_timestamps(4)
    assert len(bench.ask(device, a_round(5))) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"no",
        b"[" * 100_000,
        b'{"serial": 1}',
        b'{"serial": -1, "pin": "", "rounds": []}',
    ],
)
def test_an_answer_that_is_none_is_refused(bench: Bench, body: bytes) -> None:
    device = bench.enrolled()
    bench.collector._respond = lambda request: Response(200, {}, body)  # type: ignore[method-assign]
    with pytest.raises(Refused, match="check that the address"):
        device.poll()


def test_a_lost_poll_is_an_error_of_its_own(bench: Bench) -> None:
    device = bench.enrolled()
    bench.collector.loses = lambda request: True
    with pytest.raises(Unreachable):
        device.poll()


def test_what_a_fault_of_the_disk_left_unanswered_is_asked_for_again(bench: Bench) -> None:
    device = bench.enrolled()
    bench.collector.rounds = [a_round(1)]
    with failing_once():
        device.run(stop=lambda: len(bench.collector.requests) > 3)
    questions = [one.path for one in bench.collector.requests if one.method == "GET"]
    assert [path.split("?")[1].split("&")[0] for path in questions] == ["after=0", "after=0"]
    assert len(bench.collector.sent) == 1


def test_a_serial_is_an_integer_that_javascript_holds(bench: Bench) -> None:
    device = bench.enrolled()
    bench.collector.serial = 2**53 - 2
    assert device.poll().serial == 2**53 - 1
    with pytest.raises(Refused, match="9007199254740992"):
        device.poll()


@pytest.mark.parametrize(
    ("status", "after"), [(400, 0), (404, 0), (429, 1), (500, 1), (503, 1), (302, 1)]
)
def test_a_refused_question_is_asked_from_the_beginning(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, status: int, after: int
) -> None:
    """A serial that the collector does not take must not keep a device from its rounds."""
    device = bench.enrolled()
    device.poll()
    with monkeypatch.context() as patch:
        patch.setattr(bench.collector, "send", lambda url, request: Response(status, {}, b"{}"))
        with pytest.raises(Refused):
            device.poll()
    device.poll()
    assert f"after={after}&" in bench.collector.requests[-1].path


def test_a_refusal_is_shown_with_what_to_do(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {"stream": "regions", "given": "'carefull'", "known": "standard, careful"}
    told = str(Mistake(Problem.LEVEL_UNKNOWN, **facts))
    body = json.dumps({"type": "urn:ldpstream:level-unknown", "detail": told}).encode()
    monkeypatch.setattr(bench.collector, "send", lambda url, request: Response(400, {}, body))
    with pytest.raises(Refused) as refused:
        bench.enrolled()
    assert str(refused.value).endswith(told)


def test_a_file_without_a_device_says_so(bench: Bench) -> None:
    bench.enrolled().close()
    with sqlite3.connect(bench.path) as connection:
        connection.execute("DELETE FROM device")
    connection.close()
    with pytest.raises(LedgerUnusable, match=r"device\.ldp: has no device in it; "):
        bench.open()


def test_what_leaves_the_window_leaves_the_memory(bench: Bench) -> None:
    device = bench.enrolled()
    for _ in range(12):
        bench.ask(device, a_round(bench.t, epsilon_nano=NANO // 4))
        bench.clock.pass_timestamps(1)
    assert len(bench.collector.sent) == 12
    account = device.session.account
    on_disk = DeviceStore(bench.path, bench.witness).load().entries
    assert account._known.ledger.debits == tuple((one.own_ms, one.nano) for one in on_disk)
    assert [one.t for one in on_disk] == [9, 10, 11, 12]
