"""Reports and batches: what is accepted, and every refusal."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ldpstream.collector.api.limits import read_body
from ldpstream.collector.credentials.device_keys import DeviceKeys, Signers
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.errors import MalformedReport, Mistake
from tests.collector.api import (
    ADMIN,
    BLANKS,
    ENROL,
    STREAM,
    Api,
    assert_problem,
    device_header,
    running,
)
from tests.collector.helpers import (
    SECRETS,
    START_MS,
    device_of,
    report_of,
)


def test_a_report_is_accepted_and_counted_once(api: Api) -> None:
    asking = api.asking()
    for status in ("accepted", "repeated", "repeated"):
        answer = api.post(asking, 1, b"\1\0")
        assert (answer.status_code, answer.json()) == (202, {"status": status, "now_ms": START_MS})
    assert_problem(api.post(asking, 1, b"\1\1"), 409, "report-conflict")
    api.pass_time(9000)
    released = api.client.get(f"{STREAM}/releases").json()["releases"]
    assert [release["received"] for release in released] == [1]
    assert api.refused() == {"report-conflict": 1}


def test_refusals_of_a_report(api: Api) -> None:
    asking = api.asking()
    assert_problem(api.post(asking, 1, b"\1\0", **{"Ldp-Mac": "00" * 16}), 401, "report-mac")
    assert_problem(api.post(asking, 1, b"\1\0", **{"Ldp-Mac": "no hex"}), 401, "report-mac")
    assert_problem(api.post(asking, 1, b"\1\0", **device_header(2)), 401, "report-mac")
    assert_problem(api.post(asking, 1, b"\1\0", **{"Ldp-Device": "00"}), 400, "device-number")
    assert_problem(api.post(asking, 1, b"\1"), 400, "report-length")
    assert_problem(api.post(asking, 1, b"\1\0\0"), 400, "report-length")
    assert_problem(api.post(asking, 1, b""), 400, "report-length")
    assert_problem(api.post(asking, 1, b"\2\0"), 400, "report-version")
    assert_problem(api.post(asking, 1, b"\1\3"), 400, "report-range")
    bare = api.client.post(f"{STREAM}/rounds/{asking.name}/reports", content=b"\1\0")
    assert_problem(bare, 400, "device-number")
    assert api.refused() == {
        "report-mac": 3,
        "device-number": 2,
        "report-length": 3,
        "report-version": 1,
        "report-range": 1,
    }
    assert api.service.store.received("a", asking.name) == 0


def test_a_number_with_blanks_in_it_is_refused_and_shifts_nobody(api: Api) -> None:
    asking = api.asking()
    assert_problem(api.post(asking, 1, b"\1\0", **{"Ldp-Device": BLANKS}), 400, "device-number")
    with pytest.raises(MalformedReport):
        api.service.intake.submit(asking, bytes(asking.record_bytes - 5), 1)
    assert api.service.intake.waiting == 0
    assert api.post(asking, 1, b"\1\0").status_code == 202


def test_a_code_holds_for_one_round_only(api: Api) -> None:
    first = api.asking()
    old = api.signer(1).headers(first, b"\1\0")
    api.pass_time(9000)
    api.pass_time(1000)
    path = f"{STREAM}/rounds/2-publication/reports"
    assert_problem(api.client.post(path, content=b"\1\0", headers=old), 401, "report-mac")


def record_of_0_1_0(api: Api, asking: OpenRound, number: int) -> bytes:
    """A report as a device of release 0.1.0 signs it."""
    device, report = device_of(number), report_of(asking, number)
    message = f"POST\n{STREAM}/rounds/{asking.name}/reports\n{asking.name}\n".encode() + report
    key = hmac.digest(
        SECRETS.master, f"ldpstream device key 1\na\n{device.hex()}".encode(), "sha256"
    )
    return device + hmac.digest(key, message, "sha256")[:16] + report


def test_the_message_under_a_code(api: Api) -> None:
    """The MAC is spelled out here, as another program would have to."""
    asking = api.asking()
    pin = api.client.get(STREAM).json()["pin"]
    message = f"ldpstream report 2\na\n{pin}\n1-publication\n\n\n\n".encode() + b"\1\0"
    mac = hmac.digest(DeviceKeys(SECRETS.master, "a").of(device_of(1)), message, "sha256")[:16]
    assert api.post(asking, 1, b"\1\0", **{"Ldp-Mac": mac.hex()}).status_code == 202


def test_a_report_of_a_device_of_0_1_0_is_refused_as_such(api: Api) -> None:
    asking = api.asking()
    record = record_of_0_1_0(api, asking, 1)
    answer = api.post(asking, 1, record[32:], **{"Ldp-Mac": record[16:32].hex()})
    assert_problem(answer, 403, "device-version")
    assert "; update the program on the device" in answer.json()["detail"]
    assert api.refused() == {"device-version": 1}
    assert api.service.store.received("a", asking.name) == 0
    updated = api.post(asking, 1, record[32:])
    assert updated.json()["status"] == "accepted", "once updated, it reports in the same round"


@pytest.mark.parametrize("good", [2, 40])
@pytest.mark.parametrize("old", [1, 20])
def test_a_batch_with_records_of_devices_of_0_1_0(api: Api, good: int, old: int) -> None:
    """Few records and many are checked by different code, good and bad ones separately."""
    asking = api.asking()
    records = [api.signer(n).record(asking, report_of(asking, n)) for n in range(1, good + 1)]
    outdated = [record_of_0_1_0(api, asking, n) for n in range(101, 101 + old)]
    forged = [record[:31] + bytes([record[31] ^ 1]) + record[32:] for record in outdated[:1]]
    mixed = outdated[: old // 2] + records[: good // 2] + forged + outdated[old // 2 :]
    answer = api.post_batch(asking, b"".join(mixed + records[good // 2 :]))
    assert (answer.status_code, answer.json()) == (
        200,
        {
            "accepted": good,
            "repeated": 0,
            "refused": {"report-mac": 1, "device-version": old},
            "now_ms": api.clock.now_ms(),
        },
    )
    assert api.service.store.received("a", asking.name) == good


def test_of_a_good_batch_no_code_is_looked_at_twice(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking, checked = api.asking(), []

    honest = Signers.authentic

    def counting(signers: Signers, prefix: bytes, macs: Any, reports: Any) -> Any:
        checked.append((prefix.split(b"\n")[0], len(macs)))
        return honest(signers, prefix, macs, reports)

    monkeypatch.setattr(Signers, "authentic", counting)
    good = [api.signer(n).record(asking, report_of(asking, n)) for n in range(1, 31)]
    api.post_batch(asking, b"".join(good))
    assert checked == [(b"ldpstream report 2", 30)]
    api.post_batch(asking, b"".join([*good, record_of_0_1_0(api, asking, 31)]))
    assert checked[1:] == [(b"ldpstream report 2", 31), (b"POST", 1)]


def test_unknown_and_closed_rounds_are_told_apart(api: Api) -> None:
    asking = api.asking()
    other = replace(asking, stored=replace(asking.stored, name="9-x"))
    assert_problem(api.post(other, 1, b"\1\0"), 404, "round-unknown")
    forged = api.signer(1).headers(asking, b"\1\0")
    unsigned = api.client.post(f"{STREAM}/rounds/9-x/reports", content=b"\1\0", headers=forged)
    assert_problem(unsigned, 401, "report-mac")
    api.pass_time(9000)
    assert_problem(api.post(asking, 1, b"\1\0"), 410, "round-closed")
    assert_problem(api.post_batch(asking, b"x"), 410, "round-closed")


def test_a_round_that_closes_while_a_report_waits_refuses_it(api: Api) -> None:
    asking = api.asking()
    api.service.store.close_round("a", asking.name, START_MS)
    assert_problem(api.post(asking, 1, b"\1\0"), 410, "round-closed")


@pytest.mark.parametrize(
    ("method", "path", "token"),
    [
        ("POST", "rounds/{round}/reports", {}),
        ("POST", "rounds/{round}/batch", {}),
        ("POST", "devices", ENROL),
        ("POST", "alerts/rules", ADMIN),
        ("PUT", "alerts/rules/0", ADMIN),
    ],
)
def test_bodies_have_a_limit_on_every_route(
    tmp_path: Path, method: str, path: str, token: dict[str, str]
) -> None:
    """Told in advance or not; and where a token is needed, no body is read without."""
    with running(tmp_path, limits="body_bytes = 100") as api:
        path = f"{STREAM}/{path.format(round=api.asking().name)}"
        for body in (bytes(20_000), (bytes(10_000) for _ in range(2))):
            answer = api.client.request(method, path, content=body, headers=token)
            assert_problem(answer, 413, "too-large")
        assert api.refused() | api.refused_requests() == {"too-large": 2}
        within = api.client.request(method, path, content=bytes(100), headers=token)
        assert within.status_code == 400
        if token:
            assert_problem(api.client.request(method, path, content=bytes(20_000)), 401, "token")


def test_a_body_beyond_the_limit_is_not_read() -> None:
    async def read(length: bytes, parts: int) -> int:
        """Return how many parts of a body, of 1 byte each, are read."""
        taken = 0

        async def receive() -> dict[str, Any]:
            nonlocal taken
            taken += 1
            return {"type": "http.request", "body": b"x", "more_body": taken < parts}

        with contextlib.suppress(Mistake):
            await read_body(receive, 5, length)
        return taken

    assert asyncio.run(read(b"5", 5)) == 5
    assert asyncio.run(read(b"6", 6)) == 0
    assert asyncio.run(read(b"0", 1000)) == 6


def test_a_get_with_a_body_is_answered(tmp_path: Path) -> None:
    with running(tmp_path, limits="body_bytes = 100") as api:
        answer = api.client.request("GET", f"{STREAM}/releases", content=bytes(1000))
        assert answer.status_code == 200


@pytest.mark.parametrize("number", [3, 40])
def test_a_batch_is_judged_record_by_record(api: Api, number: int) -> None:
    """Few records are checked one by one, many side by side: the verdicts are the same."""
    asking = api.asking()
    good = [api.signer(n).record(asking, report_of(asking, n)) for n in range(1, number + 1)]
    forged = good[0][:31] + bytes([good[0][31] ^ 1]) + good[0][32:]
    swapped = good[0][:16] + good[1][16:32] + good[0][32:]
    bad = [
        forged,
        swapped,
        api.signer(90).record(asking, b"\2\0"),
        api.signer(91).record(asking, b"\1\7"),
        good[1],
    ]
    answer = api.post_batch(asking, b"".join(good + bad))
    assert (answer.status_code, answer.json()) == (
        200,
        {
            "accepted": number,
            "repeated": 1,
            "refused": {"report-mac": 2, "report-version": 1, "report-range": 1},
            "now_ms": START_MS,
        },
    )
    api.pass_time(9000)
    (released,) = api.client.get(f"{STREAM}/releases").json()["releases"]
    assert released["received"] == number


@pytest.mark.parametrize("body", [b"", b"x", bytes(35)])
def test_a_batch_that_is_no_whole_number_of_records(api: Api, body: bytes) -> None:
    assert_problem(api.post_batch(api.asking(), body), 400, "report-length")


def test_a_batch_has_a_limit(tmp_path: Path) -> None:
    with running(tmp_path, limits="batch = 2") as api:
        asking = api.asking()
        records = [api.signer(n).record(asking, b"\1\0") for n in range(3)]
        assert api.post_batch(asking, b"".join(records[:2])).json()["accepted"] == 2
        assert_problem(api.post_batch(asking, b"".join(records)), 413, "too-large")


def test_a_collector_that_is_behind_says_so(tmp_path: Path) -> None:
    with running(tmp_path, limits="waiting_bytes = 80") as api:
        asking = api.asking()
        records = [api.signer(n).record(asking, b"\1\0") for n in range(2)]  # one address has half
        refused = api.post_batch(asking, b"".join(records))
        assert_problem(refused, 429, "rate-limited")
        assert refused.headers["Retry-After"] == "1"
        assert api.post_batch(asking, records[0]).json()["accepted"] == 1
        assert api.service.intake.waiting == 0


def test_reports_that_cannot_be_stored_are_not_accepted(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = api.asking()
    with monkeypatch.context() as patch:
        patch.setattr(type(api.service.store), "accept", None)
        refused = api.post(asking, 1, b"\1\0")
        assert_problem(refused, 503, "unavailable")
        assert refused.headers["Retry-After"] == "1"
    assert api.post(asking, 1, b"\1\0").json()["status"] == "accepted"
