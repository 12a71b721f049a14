"""`ldpstream device status`: the owner's view of a device's file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ldpstream.cli import run
from tests.device.collectors import NANO, Bench, a_round


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "device.ldp")


def test_it_tells_what_is_left_and_what_was_refused(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    device = bench.enrolled()
    bench.ask(device, a_round(1, epsilon_nano=NANO // 4), a_round(1, "1-more"))
    device.close()
    assert run(["device", "status", str(bench.path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (stream,) = told["streams"]
    assert (stream["stream"], stream["epsilon_nano"], stream["window"]) == ("regions", NANO, 4)
    assert told["limit"] is None
    assert [entry["spent_nano"] for entry in told["entries"]] == [NANO // 4]
    assert [(one["code"], one["times"]) for one in told["refusals"]] == [("budget-spent", 1)]
    assert run(["device", "status", str(bench.path)]) == 0
    assert "budget-spent" in capsys.readouterr().out


def test_after_leaving_it_says_what_is_left_of_the_account(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    device = bench.enrolled()
    bench.ask(device, a_round(1, epsilon_nano=NANO // 4))
    device.leave()
    device.close()
    for form in ([], ["--json"], ["--html"]):
        assert run(["device", "status", str(bench.path), *form]) == 0
        told = capsys.readouterr().out
        assert "1970" not in told
        assert ">None<" not in told
        assert "--html" in form or "(spent before leaving)" in told


def test_it_keeps_secrets(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    account = bench.enrolled().session.account
    run(["device", "status", str(bench.path), "--json"])
    told = capsys.readouterr().out
    for secret in (account._secret, account.enrolled.key):
        assert secret.hex() not in told


def test_looking_changes_nothing(bench: Bench) -> None:
    bench.enrolled().close()
    before = bench.path.stat().st_ctime_ns, bench.path.read_bytes()
    run(["device", "status", str(bench.path)])
    assert (bench.path.stat().st_ctime_ns, bench.path.read_bytes()) == before


@pytest.mark.parametrize("content", [None, b"not a database" * 100])
def test_a_file_that_is_no_device_is_named(
    tmp_path: Path, content: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "no-device.ldp"
    if content is not None:
        path.write_bytes(content)
    assert run(["device", "status", str(path)]) == 2
    assert "no-device.ldp" in capsys.readouterr().err
