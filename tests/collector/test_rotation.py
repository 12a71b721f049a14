"""Rotation of the master secret: no key is lost, no slot moves, and a crash leaves a whole one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from ldpstream.arrays import Bytes
from ldpstream.collector.api import metrics
from ldpstream.collector.api.app import build_app
from ldpstream.collector.clock import ManualClock
from ldpstream.collector.config import Config
from ldpstream.collector.credentials.device_keys import (
    SIDE_BY_SIDE,
    DeviceKeys,
    KeyStanding,
    StreamKeys,
)
from ldpstream.collector.credentials.masters import KeyRing, Masters
from ldpstream.collector.credentials.secrets import NEW_MASTER, MasterSource, Secrets
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.service import administration
from ldpstream.collector.service.opening import load_secrets
from ldpstream.collector.service.service import Service
from ldpstream.collector.store.admin_tables import AdminTables
from ldpstream.collector.store.database import Database
from ldpstream.errors import Mistake
from ldpstream.protocol.authentication import (
    device_key,
    message_mac,
    renew_message,
    report_mac,
    report_prefix_1,
)
from ldpstream.protocol.messages import DeviceProof, Enrol, RenewKey, SubmitReport
from ldpstream.protocol.notice import Notice
from ldpstream.protocol.slots import is_turn
from tests.collector.api import Api, assert_problem
from tests.collector.driving import Crash
from tests.collector.helpers import START_MS, config, device_of, report_of, secret_of
from tests.waiting import eventually


class KeyHolder:
    """A device as the protocol has it: a secret, a key and a slot key, and its notices."""

    def __init__(self, api: Rotating, number: int) -> None:
        self.api = api
        self.secret, self.number = secret_of(number), device_of(number)
        self.place = number
        told = api.send(Enrol("a", api.service.secrets.enrolment.decode(), self.secret))
        assert told.status_code == 201, told.text
        self._keep(told.json())

    def _keep(self, told: dict[str, Any]) -> None:
        self.key = bytes.fromhex(told["key"])
        self.slot_key = bytes.fromhex(told.get("slot_key", told["key"]))

    def report(self, asking: OpenRound) -> Any:
        report = report_of(asking, self.place)
        mac = report_mac(self.key, asking.prefix, report)
        return self.api.send(SubmitReport("a", asking.name, self.number, mac, report))

    def renew(self, secret: bytes | None = None, key: bytes | None = None) -> Any:
        proof = DeviceProof(self.number, message_mac(key or self.key, renew_message("a")))
        told = self.api.send(RenewKey("a", secret or self.secret, "", proof))
        if told.status_code == 201:
            self._keep(told.json())
        return told


class Rotating(Api):
    """A collector that has its secrets in files, and calls of its admin API."""

    def send(self, message: Enrol | RenewKey | SubmitReport) -> Any:
        form = message.http
        return self.client.request(
            form.method, form.path, content=form.body, headers=dict(form.headers)
        )

    def admin(self, path: str) -> Any:
        headers = {"Authorization": f"Bearer {self.service.secrets.admin.decode()}"}
        return self.client.post(f"/v1/admin/keys/{path}", headers=headers)

    def rotate(self) -> None:
        assert self.admin("rotate").status_code == 200

    def drop(self) -> None:
        assert self.admin("drop?anyway=true").status_code == 200


@contextmanager
def serving(settings: Config, clock: ManualClock | None = None) -> Iterator[Rotating]:
    clock = clock or ManualClock(START_MS)
    service = Service(settings, load_secrets(settings), clock)
    with TestClient(build_app(service), raise_server_exceptions=False) as client:
        yield Rotating(service, client, clock)


@pytest.fixture(params=["lbu", "slots"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Config:
    if request.param == "slots":
        return config(tmp_path, mechanism="lpu", selection="slots", window=1)
    return config(tmp_path, mechanism="lbu")


@pytest.fixture
def api(settings: Config) -> Iterator[Rotating]:
    with serving(settings) as found:
        yield found


def renewal(answer: Any) -> bool:
    return Notice.read(answer.json()).renew


def test_a_reload_beside_a_rotation_is_no_deadlock(api: Rotating) -> None:
    administration = api.service.administration
    with ThreadPoolExecutor() as pool:
        with api.service._changing:  # as a reload holds it, which then records what it did
            rotating = pool.submit(administration.rotate, "x", at_once=True)
            eventually(lambda: administration.log(0, 9) != [])
            pool.submit(administration.prepare, "x").result(10)
        assert rotating.result(10)["earlier_is_good"] is False


def test_a_device_reports_with_either_key_and_renews_the_old_one(api: Rotating) -> None:
    device, other = KeyHolder(api, 1), KeyHolder(api, 2)
    asking, old = api.asking(), device.key
    assert not renewal(device.report(asking))
    api.rotate()
    told = other.report(asking)
    assert (told.status_code, told.json()["status"], renewal(told)) == (202, "accepted", True)
    assert renewal(device.report(asking)), "a repeated report hears it, too"
    assert device.renew().status_code == 201
    assert device.key != old == device.slot_key
    told = device.report(asking)
    assert (told.status_code, renewal(told)) == (409, False), "the same report, signed anew"
    api.drop()
    assert_problem(other.report(asking), 401, "key-ended")
    assert_problem(other.renew(), 401, "key-ended")
    third = KeyHolder(api, 3)
    assert third.report(asking).status_code == 202
    assert third.slot_key == device_key(api.service.ring.masters.slots, "a", third.number)


def test_a_report_that_comes_too_late_hears_of_the_renewal(api: Rotating) -> None:
    device, asking = KeyHolder(api, 1), api.asking()
    api.rotate()
    api.clock.advance(9500)
    api.service.scheduler.wake()
    eventually(lambda: asking.name not in api.service.streams["a"].hub.open)
    told = device.report(asking)
    assert_problem(told, 410, "round-closed")
    assert renewal(told)


def test_a_stolen_master_secret_renews_no_key_without_the_secret_of_its_device(
    api: Rotating,
) -> None:
    device, stolen = KeyHolder(api, 1), api.service.ring.masters.current
    api.rotate()
    key = device_key(stolen, "a", device.number)
    assert_problem(device.renew(secret=secret_of(9), key=key), 401, "report-mac")
    assert_problem(device.renew(key=bytes(32)), 401, "report-mac")
    assert device.renew(key=key).status_code == 201, "the device itself can, and again"
    assert device.renew().status_code == 201, "if the answer to the first was lost"


@pytest.mark.parametrize("under_way", [False, True])
def test_a_rotation_at_once_lets_no_key_be_renewed(api: Rotating, under_way: bool) -> None:
    device, asking = KeyHolder(api, 1), api.asking()
    if under_way:
        api.rotate()
        assert device.renew().status_code == 201
    stolen = api.service.ring.masters.current
    assert api.admin("rotate?at_once=true").status_code == 200
    assert_problem(device.report(asking), 401, "key-ended")
    invented = device_key(stolen, "a", device.number)
    assert_problem(device.renew(key=invented), 401, "key-ended")
    again = KeyHolder(api, 1)
    assert again.slot_key == device.slot_key, "no slot moves"
    assert again.report(asking).status_code == 202
    assert api.service.administration.log(0, 9)[-1].details["at_once"]


def test_a_second_rotation_waits_for_the_end_of_the_first(api: Rotating) -> None:
    device = KeyHolder(api, 1)
    slots = device.key
    for _ in range(2):
        api.rotate()
        assert_problem(api.admin("rotate"), 409, "rotation-under-way")
        assert device.renew().status_code == 201
        assert device.slot_key == slots
        api.drop()
        assert_problem(api.admin("drop"), 409, "nothing-to-drop")
    assert api.service.administration.log(0, 9)[-1].action == "drop-master"


def test_a_drop_waits_until_no_device_uses_the_old_key(api: Rotating) -> None:
    device = KeyHolder(api, 1)
    asking = api.asking()
    api.rotate()
    assert_problem(api.admin("drop"), 409, "devices-left")
    assert device.report(asking).status_code == 202
    assert api.service.streams["a"].intake.earlier_since(0) == 1
    hub, window = api.service.streams["a"].hub, api.service.streams["a"].terms.window
    while hub.last_t < window + 1:
        last_t = hub.last_t
        api.clock.advance(10_000)
        api.service.scheduler.wake()
        eventually(lambda: hub.last_t > last_t)  # noqa: B023
    assert api.service.reports_with_earlier_keys() == {"a": 0}
    assert api.admin("drop").status_code == 200


def test_a_drop_does_not_wait_for_a_stream_that_has_ended(api: Rotating) -> None:
    stream = api.service.streams["a"]
    assert api.service.reports_with_earlier_keys() == {"a": None}
    stream.config = replace(stream.config, retired=True)
    assert api.service.reports_with_earlier_keys() == {"a": 0}


def test_metrics_show_who_is_left(api: Rotating, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "FRESH_SECONDS", 0.0)
    devices, asking = [KeyHolder(api, number) for number in range(1, 4)], api.asking()

    def shown() -> list[float]:
        headers = {"Authorization": f"Bearer {api.service.secrets.admin.decode()}"}
        lines = api.client.get("/metrics", headers=headers).text.splitlines()
        names = ("earlier_keys_good", "reports_with_earlier_keys", "keys_renewed_total")
        return [
            float(line.split()[-1])
            for name in names
            for line in lines
            if line.startswith(f"ldpstream_{name}{{")
        ]

    assert shown() == [0, 0, 0]
    api.rotate()
    for device in devices[:2]:
        device.report(asking)
    devices[0].renew()
    assert shown() == [1, 2, 1]


# A crash at any moment


@pytest.mark.parametrize("committed", [False, True])
def test_a_crash_leaves_a_master_secret_that_opens_the_store(
    settings: Config, committed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(settings) as api:
        device, before = KeyHolder(api, 1), api.service.ring.masters

        def crash(*_: object) -> None:
            raise Crash

        if committed:
            monkeypatch.setattr(MasterSource, "settle", crash)
        else:
            monkeypatch.setattr(AdminTables, "replace_masters", crash)
        assert api.admin("rotate").status_code == 500
        new = api.service.secrets.source.new
        monkeypatch.undo()
    secret = settings.folder / "master.secret"
    assert secret.read_text().strip() == before.current.decode()
    with serving(settings) as api:
        masters = api.service.ring.masters
        assert masters.current == (new if committed else before.current)
        device.api = api
        assert renewal(device.report(api.asking())) is committed
        if not committed:
            api.rotate()
            assert api.service.ring.masters.current == new, "the one that was drawn"
        assert device.renew().status_code == 201
    assert new is not None
    assert secret.read_text().strip() == new.decode()
    assert not secret.with_name("master.secret.new").exists()
    assert load_secrets(settings).master == new


def test_a_secret_whose_file_is_lost_is_rotated_by_the_collector_that_has_it(
    settings: Config,
) -> None:
    secret = settings.folder / "master.secret"
    with serving(settings) as api:
        device = KeyHolder(api, 1)
        secret.unlink()
        api.rotate()
    with serving(settings) as api:
        device.api = api
        assert secret.read_bytes().strip() == api.service.ring.masters.current
        assert renewal(device.report(api.asking()))


def test_a_secret_from_the_environment_is_rotated_by_another_one(tmp_path: Path) -> None:
    settings = config(tmp_path)
    given = {"LDPSTREAM_MASTER_SECRET": "the first master secret"}

    @contextmanager
    def opened(environment: dict[str, str]) -> Iterator[Service]:
        service = Service(settings, Secrets.load({}, tmp_path, environment), ManualClock(START_MS))
        yield service
        service.store.close()

    with opened(given) as service, pytest.raises(Mistake, match=NEW_MASTER):
        service.administration.rotate("the tests")
    both = given | {NEW_MASTER: "the second master secret"}
    with opened(both) as service:
        service.administration.rotate("the tests")
        assert service.ring.masters.good == (
            b"the second master secret",
            b"the first master secret",
        )
    for environment in (both, {"LDPSTREAM_MASTER_SECRET": "the second master secret"}):
        with opened(environment) as service:
            assert len(service.ring.masters.good) == 2
    with pytest.raises(Mistake, match="another master secret"), opened(given):
        pass
    assert not [*tmp_path.glob("master*")]


# Many reports at once

STANDINGS = (KeyStanding.CURRENT, KeyStanding.EARLIER, KeyStanding.NONE, KeyStanding.RELEASE_1)


@pytest.mark.parametrize("rows", [3, 4 * SIDE_BY_SIDE])
@pytest.mark.parametrize("valid", [True, False])
def test_a_batch_is_checked_with_one_more_key_for_who_needs_it(
    rows: int, valid: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    masters = Masters(b"current master", b"first master", b"earlier master", valid)
    stream = StreamKeys(KeyRing(masters), "a")
    of_old = DeviceKeys(b"first master", "a", b"ldpstream device key 1\na\n")
    prefix, prefix_1 = b"a prefix", report_prefix_1("a", "1-publication")
    rng = np.random.default_rng(rows)
    devices, reports = (rng.integers(0, 256, (rows, n), np.uint8) for n in (16, 2))
    expected = [STANDINGS[n % len(STANDINGS)] for n in range(rows)]
    keys = {
        KeyStanding.CURRENT: (DeviceKeys(masters.current, "a"), prefix),
        KeyStanding.EARLIER: (DeviceKeys(b"earlier master", "a"), prefix),
        KeyStanding.NONE: (DeviceKeys(b"a guess", "a"), prefix),
        KeyStanding.RELEASE_1: (of_old, prefix_1),
    }
    macs = b"".join(
        report_mac(keys[one][0].of(device.tobytes()), keys[one][1], report.tobytes())
        for one, device, report in zip(expected, devices, reports, strict=True)
    )
    derived: list[int] = []
    of_many = DeviceKeys.of_many

    def counting(self: DeviceKeys, devices: Bytes) -> Any:
        derived.append(len(devices))
        return of_many(self, devices)

    table = np.frombuffer(macs, np.uint8).reshape(-1, 16)
    stream.signatures(devices, table, reports, prefix, prefix_1)  # checks the hash itself first
    monkeypatch.setattr(DeviceKeys, "of_many", counting)
    found = stream.signatures(devices, table, reports, prefix, prefix_1)
    ended = KeyStanding.EARLIER if valid else KeyStanding.ENDED
    assert found.standings.tolist() == [
        ended if one is KeyStanding.EARLIER else one for one in expected
    ]
    assert found.good.sum() == expected.count(KeyStanding.CURRENT) + valid * expected.count(
        KeyStanding.EARLIER
    )
    assert found.earlier.any() == (valid and rows > 1)
    if rows >= SIDE_BY_SIDE:
        assert derived == [rows, rows * 3 // 4, rows // 2]
    for t in (1, 2, 3):
        turns = [is_turn(stream.slot_key(one.tobytes()), 3, t) for one in devices]
        assert found.in_turn.are_due(3, t).tolist() == turns


# Private streams


def test_a_device_of_a_private_stream_renews_without_a_token(tmp_path: Path) -> None:
    with serving(config(tmp_path, mechanism="lbu", public=False)) as api:
        device = KeyHolder(api, 1)
        hub = api.service.streams["a"].hub
        eventually(lambda: bool(hub.open))
        (asking,) = hub.open.values()
        api.rotate()
        assert renewal(device.report(asking))
        stranger = device.renew(key=bytes(32))
        assert_problem(stranger, 404, "stream-unknown")
        form = RenewKey("x", device.secret, "", DeviceProof(device.number, bytes(16))).http
        unknown = api.client.post(form.path, content=form.body, headers=dict(form.headers))
        assert unknown.text == stranger.text.replace("'a'", "'x'")
        assert device.renew().status_code == 201
        api.drop()
        assert device.renew().status_code == 201


# Several collectors of one store


def test_collectors_of_a_shared_store_take_up_a_rotation(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One without the new secret refuses no report that may be good, and is not ready."""
    monkeypatch.setattr(administration, "POLL_SECONDS", 0.02)
    folders = [tmp_path / "one", tmp_path / "two"]
    shared = []
    for folder in folders:
        folder.mkdir()
        for name in ("master", "enrolment", "admin"):
            (folder / f"{name}.secret").write_text(f"the {name} secret of both")
        settings = replace(config(folder, mechanism="lbu", interval="60s"), database=database)
        shared.append(settings)
    clock = ManualClock(START_MS)
    with serving(shared[0], clock) as one, serving(shared[1], clock) as two:
        device = KeyHolder(one, 1)
        old = device.key
        one.rotate()
        eventually(lambda: two.service.ring.is_behind)
        assert two.client.get("/v1/ready").status_code == 503
        assert device.renew().status_code == 201
        assert device.key == old, "the new one is not given out before all know it"
        clock.advance(administration.TAKE_UP_MS)
        assert device.renew().status_code == 201
        assert device.key != old
        device.api = two
        asking = one.asking()
        eventually(lambda: asking.name in two.service.streams["a"].hub.open)
        assert_problem(device.report(asking), 503, "unavailable")
        current = folders[0] / "master.secret"
        (folders[1] / "master.secret.new").write_text(current.read_text())
        eventually(lambda: not two.service.ring.is_behind)
        assert two.service.ring.masters == one.service.ring.masters
        assert (folders[1] / "master.secret").read_text() == current.read_text()
        assert device.report(asking).status_code == 202
        eventually(lambda: two.client.get("/v1/ready").status_code == 200)
