"""Settings that change while a collector runs: by a reload of its file, or an administrator."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ldpstream.collector.api.app import build_app
from ldpstream.collector.clock import ManualClock
from ldpstream.collector.config import load
from ldpstream.collector.credentials.device_keys import DeviceKeys
from ldpstream.collector.rounds.announcement import OpenRound
from ldpstream.collector.service.administration import OPERATION
from ldpstream.collector.service.condition import StreamState
from ldpstream.collector.service.service import Service
from ldpstream.errors import Mistake, Problem
from tests.collector.api import ADMIN, ENROL, assert_problem
from tests.collector.helpers import SECRETS, START_MS, Signer, enrolment, report_of
from tests.waiting import eventually

HEAD = '[collector]\nlisten = "127.0.0.1:0"\nstore = "c.sqlite"\n'
STREAM = """
[[stream]]
name = "{name}"
labels = ["x", "y", "z"]
epsilon = 1
window = 4
interval = "10s"
mechanism = "lbu"
oracle = "grr"
selection = "open"
population = 40
"""
A, B = STREAM.format(name="a"), STREAM.format(name="b")


@dataclass
class Place:
    """A collector in this process, its file, and the time."""

    file: Path
    clock: ManualClock
    service: Service
    client: TestClient

    def reload(self, text: str) -> dict[str, Any]:
        self.file.write_text(HEAD + text)
        answer = self.client.post("/v1/admin/reload", headers=ADMIN)
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told

    def pass_timestamp(self, devices: int = 0, stream: str = "a") -> None:
        """Let one timestamp pass, in which so many devices report if they are asked."""
        found = self.service.streams[stream]
        hub, begun_t = found.hub, found.hub.announcement.t
        if found.config.halt is None:
            eventually(lambda: bool(hub.open))
        if hub.open:
            begun_t = next(iter(hub.open.values())).stored.t
        while hub.last_t < begun_t:  # some mechanisms ask twice
            eventually(lambda: bool(hub.open) or hub.last_t >= begun_t)
            for asking in [*hub.open.values()]:
                self._answer(asking, stream, devices)
        next_t = found.terms.timestamp_at(self.clock.now_ms()) + 1
        self.clock.advance_to(found.terms.start_of(next_t))
        self.service.scheduler.wake()

    def _answer(self, asking: OpenRound, stream: str, devices: int) -> None:
        """Let devices report in a round, and close it."""
        for number in range(1, devices + 1):
            report = report_of(asking, number)
            headers = Signer(number, DeviceKeys(SECRETS.master, stream)).headers(asking, report)
            path = f"/v1/streams/{stream}/rounds/{asking.name}/reports"
            assert self.client.post(path, content=report, headers=headers).status_code == 202
        self.clock.advance_to(asking.stored.deadline_ms)
        self.service.scheduler.wake()
        eventually(lambda: asking.name not in self.service.streams[stream].hub.open)

    def told(self, stream: str = "a") -> dict[str, Any]:
        answer = self.client.get(f"/v1/streams/{stream}/status").json()
        described = self.client.get(f"/v1/streams/{stream}").json()
        assert answer["state"] == described["state"]
        told: dict[str, Any] = answer
        return told

    def state(self, stream: str = "a") -> StreamState:
        return StreamState(self.told(stream)["state"])


@contextmanager
def operating(folder: Path, text: str) -> Iterator[Place]:
    file, clock = folder / "collector.toml", ManualClock(START_MS)
    file.write_text(HEAD + text)
    service = Service(load(file), SECRETS, clock)
    with TestClient(build_app(service), raise_server_exceptions=False) as client:
        yield Place(file, clock, service, client)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with operating(tmp_path, A) as found:
        yield found


# States


def test_a_stream_waits_is_live_and_falls_silent(place: Place) -> None:
    assert place.state() is StreamState.WAITING
    place.pass_timestamp()
    assert place.state() is StreamState.WAITING
    for _ in range(4):
        place.pass_timestamp(devices=40)
    assert place.state() in (
        StreamState.LIVE,
        StreamState.THIN,
    )  # at epsilon 1/4 intervals are wide
    place.pass_timestamp()
    place.pass_timestamp()
    assert place.state() is StreamState.SILENT
    assert place.client.get("/v1/ready").json()["states"] == {"a": "silent"}


def test_a_population_that_is_far_too_large_is_thin(tmp_path: Path) -> None:
    with operating(tmp_path, A.replace("population = 40", "population = 4000")) as place:
        for _ in range(3):
            place.pass_timestamp(devices=5)
        assert place.state() is StreamState.THIN
        assert place.told()["why"] == "15 reports came of 12000 that were planned"


def test_the_state_is_a_metric(place: Place) -> None:
    told = place.client.get("/metrics", headers=ADMIN).text
    assert 'ldpstream_stream_state{state="waiting",stream="a"} 1.0' in told
    assert 'ldpstream_stream_state{state="live",stream="a"} 0.0' in told
    assert 'ldpstream_behind_seconds{stream="a"} 0.0' in told


def test_a_change_of_state_is_logged_once(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.service.watch.tell()
    place.service.watch.tell()
    lines = [one for one in caplog.records if one.name.endswith("watch")]
    assert [one.getMessage() for one in lines] == ["stream waiting: no report has come yet"]


def test_a_store_that_is_late_is_told_and_makes_the_collector_unready(place: Place) -> None:
    place.pass_timestamp(devices=5)
    place.service.scheduler.stop()  # nothing is released any more, whatever the reason
    place.clock.advance(60_000)
    condition = place.service.condition("a")
    assert condition.state is StreamState.BEHIND
    assert condition.behind_ms >= 30_000
    answer = place.client.get("/v1/ready")
    assert answer.status_code == 503
    assert "late after t=1" in answer.json()["failures"]["a"]


# Pause and resume


def test_a_stream_is_paused_and_resumed_by_an_administrator(place: Place) -> None:
    place.pass_timestamp(devices=3)
    eventually(lambda: bool(place.service.streams["a"].hub.open))
    (asking,) = place.service.streams["a"].hub.open.values()
    told = place.client.post("/v1/admin/streams/a/pause", headers=ADMIN).json()
    assert (told["stream"], told["state"]) == ("a", "paused")
    place.pass_timestamp(devices=3)  # what was open takes reports until it closes
    assert place.service.streams["a"].hub.latest.received == 3  # type: ignore[union-attr]
    for _ in range(3):
        place.pass_timestamp()
    assert place.told()["last_release"] == asking.stored.t
    assert place.state() is StreamState.PAUSED
    told = place.client.post("/v1/admin/streams/a/resume", headers=ADMIN).json()
    assert (told["state"], told["behind_seconds"]) == ("thin", 0), "a pause is no lateness"
    place.pass_timestamp(devices=3)
    hub = place.service.streams["a"].hub
    assert hub.last_t == asking.stored.t + 4
    missed = [one.missed for one in place.service.store.releases("a", 1, 100)]
    assert missed == [False, False, True, True, True, False]
    actions = place.client.get("/v1/admin/log", headers=ADMIN).json()["entries"]
    assert [one["action"] for one in actions] == ["pause", "resume"]


@pytest.mark.parametrize("paused", [True, False])
def test_a_pause_that_cannot_be_logged_changes_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch, paused: bool
) -> None:
    service = place.service
    service.pause("the tests", "a", paused=not paused)
    before = place.state()

    def fail(run: object, entry: object) -> None:
        raise OSError("no more")

    monkeypatch.setattr(service.store.admin, "_append", fail)
    with pytest.raises(OSError, match="no more"):
        service.pause("the tests", "a", paused=paused)
    assert service.store.note("a", OPERATION) == {"paused": not paused}
    assert place.state() is before


def test_a_pause_outlives_the_collector(place: Place, tmp_path: Path) -> None:
    place.client.post("/v1/admin/streams/a/pause", headers=ADMIN)
    place.client.__exit__()
    with operating(tmp_path, A) as again:
        assert again.state() is StreamState.PAUSED
        again.client.post("/v1/admin/streams/a/resume", headers=ADMIN)
        assert again.state() is StreamState.WAITING


def test_what_the_file_pauses_only_the_file_resumes(tmp_path: Path) -> None:
    with operating(tmp_path, A + "paused = true\n") as place:
        answer = place.client.post("/v1/admin/streams/a/resume", headers=ADMIN)
        assert_problem(answer, 409, "paused-by-file")
        assert place.reload(A)["changes"] == ["a: paused = true -> false"]
        assert place.state() is StreamState.WAITING


def test_to_pause_takes_the_admin_token(place: Place) -> None:
    for path in ("streams/a/pause", "streams/a/resume", "reload"):
        assert_problem(place.client.post(f"/v1/admin/{path}"), 401, "token")
    assert_problem(
        place.client.post("/v1/admin/streams/q/pause", headers=ADMIN), 404, "stream-unknown"
    )


@pytest.mark.parametrize("halt", ["paused", "retired"])
def test_devices_hear_of_it_in_every_answer(tmp_path: Path, halt: str) -> None:
    with operating(tmp_path, A) as place:
        eventually(lambda: bool(place.service.streams["a"].hub.open))
        (asking,) = place.service.streams["a"].hub.open.values()
        place.reload(A + f"{halt} = true\n")
        place.pass_timestamp(devices=1)
        report = report_of(asking, 2)
        headers = Signer(2, DeviceKeys(SECRETS.master, "a")).headers(asking, report)
        path = f"/v1/streams/a/rounds/{asking.name}"
        for answer in (
            place.client.post(f"{path}/reports", content=report, headers=headers),
            place.client.post(f"{path}/batch", content=b""),
        ):
            assert_problem(answer, 410, f"stream-{halt}")
            assert answer.json()["halt"] == halt
        # A coordinator with the new settings takes over between two timestamps.
        hub = place.service.streams["a"].hub
        eventually(lambda: hub.announcement.halt is not None)
        told = place.client.get("/v1/streams/a/rounds").json()
        assert (told["halt"], told["rounds"]) == (halt, [])
        joined = place.client.post("/v1/streams/a/devices", json=enrolment(9), headers=ENROL)
        if halt == "retired":
            assert_problem(joined, 410, "stream-retired")
        else:
            assert joined.json()["halt"] == "paused"
        assert place.client.get("/v1/streams/a/releases").status_code == 200  # to be read for ever


# Reload


def test_a_file_that_was_not_changed_changes_nothing(place: Place) -> None:
    assert place.reload(A) == {"changed": False, "changes": [], "stays": [], "refused": []}


def test_a_stream_is_created_by_being_written(place: Place) -> None:
    place.pass_timestamp(devices=3)
    assert place.reload(A + B)["changes"] == ["b: begins"]
    place.pass_timestamp(devices=3, stream="b")
    place.pass_timestamp(devices=3, stream="b")
    assert place.told("b")["last_release"] > 0
    joined = place.client.post("/v1/streams/b/devices", json=enrolment(1), headers=ENROL)
    assert joined.status_code == 201


def test_a_stream_that_is_taken_out_goes_on_and_is_named(place: Place) -> None:
    place.reload(A + B)
    told = place.reload(A)
    assert told["stays"] == ["b: not in the file, and goes on; to end it, write it: retired = true"]
    assert place.state("b") is StreamState.WAITING


def test_a_population_is_changed_under_a_running_mechanism(tmp_path: Path) -> None:
    text = A.replace('"lbu"', '"lpu"').replace("selection", "# selection")
    with operating(tmp_path, text) as place:
        place.pass_timestamp()
        told = place.reload(text.replace("population = 40", "population = 90"))
        assert told["changes"] == ["a: population = 40 -> 90"]
        eventually(lambda: place.service.streams["a"].config.population == 90)
        for _ in range(2):
            place.pass_timestamp()
        assert place.service.streams["a"].hub.latest.asked == 90 // 4  # type: ignore[union-attr]


def test_a_population_that_was_given_is_followed_from_there(place: Place) -> None:
    place.pass_timestamp()
    told = place.reload(A.replace("population = 40", 'population = "auto"'))
    assert told["changes"] == ["a: population = 40 -> auto"]
    for _ in range(3):
        place.pass_timestamp()
    latest = place.service.streams["a"].hub.latest
    assert latest is not None
    assert latest.content["devices"]["expected"] == 40


def test_revised_figures_follow_a_reload(place: Place) -> None:
    for _ in range(6):
        place.pass_timestamp(devices=5)
    place.reload(A.replace('"lbu"', '"lpf"') + "suspicion = { discard = true }\n")
    for _ in range(2):
        place.pass_timestamp()
    found = place.service.streams["a"]
    assert found.config.mechanism == "lpf"
    assert found.revised._config == found.config


@pytest.mark.parametrize("when", ["between timestamps", "in the midst of one"])
def test_a_mechanism_is_changed_while_it_runs(place: Place, when: str) -> None:
    for _ in range(2):
        place.pass_timestamp(devices=5)
    if when == "in the midst of one":
        eventually(lambda: bool(place.service.streams["a"].hub.open))
    told = place.reload(A.replace('"lbu"', '"lba"'))
    (change,) = told["changes"]
    assert change.startswith("a: mechanism = lbu -> lba")
    for _ in range(3):
        place.pass_timestamp(devices=5)
    assert place.service.condition("a").state is not StreamState.FAILING
    purposes = {one.purpose for one in place.service.store.rounds("a", 3)}
    assert "dissimilarity" in purposes
    assert [one.missed for one in place.service.store.releases("a", 1, 9)].count(True) == 0


def test_a_timestamp_that_another_mechanism_began_is_begun_anew(
    place: Place, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A collector that was stopped in the midst of it, and started with another file."""
    place.pass_timestamp(devices=5)
    eventually(lambda: bool(place.service.streams["a"].hub.open))
    place.client.__exit__()
    with operating(tmp_path, A.replace('"lbu"', '"lba"')) as again:
        again.clock.advance_to(place.clock.now_ms())
        again.service.scheduler.wake()
        eventually(lambda: again.service.streams["a"].hub.announcement.t >= 2)
        for _ in range(2):
            again.pass_timestamp(devices=5)
        assert again.service.condition("a").state is not StreamState.FAILING
    assert "timestamp 2, which another mechanism had begun" in caplog.text


def test_deadlines_thresholds_limits_and_alerts_are_changed(place: Place) -> None:
    more = (
        "deadlines = { publication = 0.5 }\nthresholds = { x = 0.4 }\npublic = false\n"
        'retention = { releases = "30d", hourly = "365d" }\n'
        '[[stream.alert]]\nlabel = "x"\nabove = 0.4\n'
    )
    text = A + more + "[collector.limits]\nenrolments_per_second = 1\nwaiting_bytes = 9\n"
    place.file.write_text(HEAD + text)
    assert place.client.post("/v1/admin/reload", headers=ADMIN).json()["changes"] == [
        "limits: waiting_bytes = 67108864 -> 9",
        "limits: enrolments_per_second = 1000 -> 1",
        "a: deadlines = dissimilarity 0.45, publication 0.9 -> dissimilarity 0.45, publication 0.5",
        "a: thresholds = nothing -> x 0.4",
        "a: public = true -> false",
        "a: alerts = nothing -> x above 0.4",
        "a: retention = keep all -> releases 30d, hourly 365d",
    ]
    assert_problem(place.client.get("/v1/streams/a"), 404, "stream-unknown")
    rules = place.client.get("/v1/streams/a/alerts", headers=ADMIN).json()
    assert "x above 0.4" in json.dumps(rules)
    codes = [
        place.client.post("/v1/streams/a/devices", json=enrolment(n), headers=ENROL).status_code
        for n in range(3)
    ]
    assert codes == [201, 429, 429]


def test_a_feed_ends_when_its_stream_is_made_private(place: Place) -> None:
    with _asking(place, "/v1/streams/a/feed") as asking:
        asking.begun.wait(10)
        place.reload(A + "public = false\n")
        place.pass_timestamp()
        asking.answered.result(10)
    assert asking.body == b"retry: 1000\n\n"


def test_a_long_poll_hears_nothing_of_a_stream_that_is_made_private(place: Place) -> None:
    eventually(lambda: bool(place.service.streams["a"].hub.open))
    hub = place.service.streams["a"].hub
    query = f"after={hub.announcement.serial}&wait=30"
    with _asking(place, "/v1/streams/a/rounds", query) as asking:
        eventually(lambda: hub.waiting == 1)
        place.reload(A + "public = false\n")
        place.pass_timestamp()
        asking.answered.result(10)
    assert b"stream-unknown" in asking.body


@dataclass
class Asking:
    """A request of nobody in particular, which may have no end."""

    begun: threading.Event
    answered: Future[None]
    parts: list[bytes]

    @property
    def body(self) -> bytes:
        return b"".join(self.parts)


@contextmanager
def _asking(place: Place, path: str, query: str = "") -> Iterator[Asking]:
    begun, parts = threading.Event(), list[bytes]()
    scope = {
        "type": "http", "http_version": "1.1", "method": "GET", "scheme": "http", "path": path,
        "raw_path": path.encode(), "root_path": "", "query_string": query.encode(),
        "headers": [(b"host", b"testserver")], "client": ("test", 1), "server": ("testserver", 80),
    }  # fmt: skip

    async def receive() -> Any:
        return await asyncio.Event().wait()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            parts.append(message["body"])
            begun.set()

    assert place.client.portal is not None
    answered = place.client.portal.start_task_soon(place.client.app, scope, receive, send)
    try:
        yield Asking(begun, answered, parts)
    finally:
        answered.cancel()


def test_a_stream_whose_releases_are_damaged_is_not_begun(tmp_path: Path) -> None:
    with operating(tmp_path, A + B) as place:
        place.pass_timestamp(stream="b")
    with closing(sqlite3.connect(tmp_path / "c.sqlite")) as disk, disk:
        disk.execute("UPDATE stream SET last_t = 9 WHERE name = 'b'")
    with operating(tmp_path, A) as place:
        (why,) = place.reload(A.replace("40", "41") + B)["refused"]
        assert "stored data of stream b differs from what was released" in why
        assert place.service.streams["a"].config.population == 40  # all of it or nothing
        assert place.reload(A.replace("40", "42"))["changes"] == ["a: population = 40 -> 42"]
        assert list(place.service.streams) == ["a"]


def test_a_stream_that_cannot_begin_changes_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(evaluator: object) -> None:
        raise Mistake(Problem.UNAVAILABLE, seconds=1)

    with monkeypatch.context() as failing:
        failing.setattr(place.service.alerts, "add", fail)
        told = place.reload(A.replace("40", "41") + B)
    assert (told["changed"], len(told["refused"])) == (False, 1)
    assert list(place.service.streams) == list(place.service.scheduler.drivers) == ["a"]
    assert place.service.streams["a"].config.population == 40
    assert place.client.get("/v1/admin/log", headers=ADMIN).json()["entries"] == []
    told = place.reload(A.replace("40", "41") + B)
    assert told["changes"] == ["a: population = 40 -> 41", "b: goes on"]
    place.pass_timestamp(devices=3, stream="b")


def test_what_takes_a_restart_is_told(place: Place) -> None:
    place.file.write_text((HEAD + A).replace("127.0.0.1:0", "127.0.0.1:1"))
    told = place.client.post("/v1/admin/reload", headers=ADMIN).json()
    assert told["stays"] == ["listen: takes a restart"]


def test_labels_change_by_a_successor_and_by_nothing_else(place: Place) -> None:
    place.pass_timestamp(devices=3)
    text = A.replace('"z"]', '"z", "new"]')
    told = place.reload(text + "paused = true\n")
    (why,) = told["refused"]
    assert "labels = x, y, z, but the file says x, y, z, new" in why
    assert "Domain(" not in json.dumps(told)
    assert place.service.streams["a"].config.halt is None  # all of it or nothing
    told = place.reload(text + "\n[stream.successor]\nversion = 2\n")
    assert told["refused"] == []
    assert any("version 2 of its terms" in line for line in told["changes"])
    place.pass_timestamp()  # what was begun is ended under the settings that it was begun with
    eventually(lambda: len(place.service.streams["a"].history.versions) == 2)


@pytest.mark.parametrize(
    ("new", "told"),
    [
        ("range = [0, 1000001]", "0 to 10 in 32 bins, but the file says 0 to 1000001 in 32 bins"),
        ("bins = 64\nrange = [0, 10]", "32 bins, but the file says 0 to 10 in 64 bins"),
    ],
)
def test_two_ranges_are_told_apart_and_not_in_python(tmp_path: Path, new: str, told: str) -> None:
    old = "range = [0, 10]"
    text = A.replace('labels = ["x", "y", "z"]', f'query = "distribution"\n{old}')
    text = text.replace('"grr"', '"auto"').replace('"lbu"', '"lpu"')
    with operating(tmp_path, text) as place:
        (why,) = place.reload(text.replace(old, new))["refused"]
        assert "Range(" not in why
        assert told in why


def test_a_file_that_is_no_file_of_ours_changes_nothing(place: Place) -> None:
    place.file.write_text("nonsense = [")
    assert_problem(place.client.post("/v1/admin/reload", headers=ADMIN), 400, "config-file")
    assert place.state() is StreamState.WAITING


# What the store has


def test_a_stream_that_is_in_the_store_alone_is_named(tmp_path: Path) -> None:
    with operating(tmp_path, A + B) as place:
        assert place.service.unserved == []
    with operating(tmp_path, A) as place:
        assert place.service.unserved == ["b"]
