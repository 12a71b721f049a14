"""A fleet: its users, its faults, and what a real collector sees of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from scipy.stats import chi2

from ldpstream.cli import run
from ldpstream.device import AsyncDevice, Refused, Unreachable, session
from ldpstream.device.account import CommittedReport
from ldpstream.device.exchange import Connect, Request, Response, unreachable
from ldpstream.device.memory import StoredEnrolment
from ldpstream.device.rules import TooEarly
from ldpstream.device.status import read_status
from ldpstream.errors import Mistake, Problem
from ldpstream.fleet.fault_injection import FaultRates, FaultyTransport
from ldpstream.fleet.fleet import (
    Fleet,
    FleetOutcome,
    FleetPlan,
    Progress,
    StoppedEarly,
    _Member,
    file_name,
    run_fleet,
)
from ldpstream.fleet.folders import memory_folder
from ldpstream.fleet.gateway import Gateway
from ldpstream.fleet.reader import JudgedRelease, ReleaseReader
from ldpstream.fleet.users import REMEMBERED, Users
from ldpstream.lab.simulation import simulate
from ldpstream.numeric import BinnedRange, Numeric
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.answers import Announcement, Round
from ldpstream.protocol.identity import number_of
from ldpstream.protocol.messages import SubmitReport
from ldpstream.protocol.terms import Terms
from ldpstream.streams.synthetic import constant, sin
from tests.device.collectors import make_terms
from tests.serving import LATE, TOKEN, serving, stream_table, token_of

DEVICES, WINDOW, TIMESTAMPS = 100, 5, 16
PATIENCE = 120.0
KINDS = ("open", "roster")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(dir=memory_folder()))
    yield made
    shutil.rmtree(made)


def test_users_hold_what_the_stream_says() -> None:
    stream = sin(users=50, timestamps=4)
    users = Users(stream, devices=50, seed=3)
    for t in range(100, 110):  # the stream starts again after four timestamps
        held = sum(users.value(user, t) or 0 for user in range(50))
        assert held == stream.table[(t - 100) % 4][1]
        counts = users.counts(t)
        assert counts is not None
        assert counts.tolist() == [50 - held, held]
    assert users.value(0, 109 - REMEMBERED) is None
    assert users.counts(99) is None


def test_users_who_were_not_asked_for_a_while_have_moved_on() -> None:
    stream = sin(users=50, timestamps=10)
    users = Users(stream, devices=50, seed=3)
    users.value(0, 1)
    assert sum(users.value(user, 7) or 0 for user in range(50)) == stream.table[6][1]
    assert users.counts(4) is not None


def test_a_timestamp_in_which_nobody_answered_has_a_truth_too() -> None:
    stream = sin(users=50, timestamps=10)
    users = Users(stream, devices=50, seed=3)
    assert users.counts(5) is None  # nobody has begun
    users.value(0, 5)
    counts = users.counts(7)
    assert counts is not None
    assert counts.tolist() == stream.table[2].tolist()
    assert sum(users.value(user, 6) or 0 for user in range(50)) == stream.table[1][1]


class OldCollector:
    """A transport to a stream that is long under way, and gives ten releases at once."""

    async def send(self, url: str, request: Request) -> Response:
        since = int(parse_qs(urlsplit(request.path).query)["since"][0])
        figures = {"values": [0.5, 0.5], "low": [0, 0], "high": [1, 1], "fresh": True}
        told = [{"t": t, "received": 9, **figures} for t in range(max(since, 1), 1010)][:10]
        return Response(200, {}, json.dumps({"releases": told}).encode())


def test_a_reader_begins_where_the_fleet_does() -> None:
    users = Users(sin(users=50, timestamps=10), devices=50, seed=3)
    reader = ReleaseReader(OldCollector(), "http://127.0.0.1:1", "sin", users)  # type: ignore[arg-type]
    assert asyncio.run(reader.read()) == []
    users.value(0, 1007)
    assert [one.t for one in asyncio.run(reader.read())] == [1007, 1008, 1009]


def test_a_distribution_needs_as_many_labels_as_bins() -> None:
    plan = FleetPlan("http://127.0.0.1:1", "a", TOKEN, sin(users=2, timestamps=9), 2, 1.0)
    values, oracle = BinnedRange.of(0, 5, 8), Numeric.SQUARE_WAVE
    terms = Terms("a", values, Epsilon.of(1), 20, 1000, 0, oracle)
    with pytest.raises(Mistake, match="at least as many as there are bins, 8"):
        Fleet(plan)._map_labels(terms)


def test_more_devices_than_users_is_a_mistake() -> None:
    with pytest.raises(Mistake, match="at most 50"):
        Users(sin(users=50, timestamps=4), devices=51, seed=0)


@pytest.mark.parametrize("wrong", [{"offline": 1.0}, {"loss": -0.1}, {"join": 2}, {"latency": -1}])
def test_impossible_weather_is_a_mistake(wrong: dict[str, float]) -> None:
    with pytest.raises(Mistake, match=next(iter(wrong))):
        FaultRates(**wrong)


class Counting:
    """A transport that always works, and counts."""

    def __init__(self) -> None:
        self.arrived = 0

    async def send(self, url: str, request: Request) -> Response:
        self.arrived += 1
        return Response(200, {}, b"")

    async def connect(self, url: str, step: Connect) -> None: ...

    async def close(self) -> None: ...


def test_weather_loses_requests_and_responses() -> None:
    transport = Counting()
    line = FaultyTransport(transport, FaultRates(loss=0.2), Random(5))

    async def count() -> int:
        answered = 0
        for _ in range(2000):
            try:
                await line.send("http://x", Request("GET", "/"))
                answered += 1
            except Unreachable:
                pass
        line.offline = True
        with pytest.raises(Unreachable):
            await line.send("http://x", Request("GET", "/"))
        return answered

    answered = asyncio.run(count())
    # 2000 tries at 0.8 and at 0.64; 6 standard deviations are 107 and 129: failure below 1e-8
    assert abs(transport.arrived - 1600) < 107
    assert abs(answered - 1280) < 129


class Down(Counting):
    """A network without a collector."""

    async def send(self, url: str, request: Request) -> Response:
        await super().send(url, request)
        assert self.arrived < 500, "the fleet asks for ever"
        raise unreachable(url, "refused")


class Strange(Counting):
    """A collector that knows no such stream."""

    async def send(self, url: str, request: Request) -> Response:
        await super().send(url, request)
        return Response(404, {}, b"{}")


def two_devices(loss: float) -> FleetPlan:
    source = sin(users=2, timestamps=9)
    return FleetPlan("http://127.0.0.1:9", "sin", TOKEN, source, 2, 1.0, FaultRates(loss=loss))


def test_a_fleet_whose_collector_is_down_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "FIRST_PAUSE", 0.0)
    with pytest.raises(Unreachable, match="refused"):
        asyncio.run(Fleet(two_devices(loss=0.3), transport=Down()).run())


def test_a_fleet_enrols_in_any_weather(monkeypatch: pytest.MonkeyPatch) -> None:
    """More requests are lost in a row than a device retries, and one is answered in the end."""
    monkeypatch.setattr(session, "FIRST_PAUSE", 0.0)
    transport = Strange()
    with pytest.raises(Refused, match="404"):
        asyncio.run(Fleet(two_devices(loss=0.9), transport=transport).run())
    assert transport.arrived >= 1


def test_a_fleet_that_is_stopped_while_it_enrols_has_no_results() -> None:
    fleet = Fleet(two_devices(loss=0.0), transport=Down())
    fleet.stop()
    with pytest.raises(StoppedEarly):
        asyncio.run(fleet.run())


@pytest.mark.parametrize("loss", ["0", "0.3"])
def test_ctrl_c_ends_a_fleet_that_enrols(loss: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute, contextlib.ExitStack() as stack:
        mute.settimeout(60)
        url = f"http://127.0.0.1:{mute.getsockname()[1]}"
        options = ["--collector", url, "--token", "x", "--devices", "2", "--loss", loss]
        fleet = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-m", "ldpstream", "fleet", *options],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        stack.callback(fleet.kill)
        stack.enter_context(mute.accept()[0])  # the first device asks, and gets no answer
        fleet.send_signal(signal.SIGINT)
        said = fleet.communicate(timeout=240)
    assert (fleet.returncode, *said) == (130, "", "")


class Losing(Counting):
    """Every other request gets no answer; the others are told that all is well."""

    async def send(self, url: str, request: Request) -> Response:
        self.bodies.append(request.body)
        await super().send(url, request)
        if self.arrived % 2:
            raise unreachable(url, "lost")
        return Response(200, {}, b'{"accepted": 1, "repeated": 0, "refused": {}}')

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[bytes] = []


def enrolled(path: Path, transport: Counting, terms: Terms) -> AsyncDevice:
    device = AsyncDevice.create(path, first_install=True, transport=transport)
    account = device.session.account
    number = number_of(account.enrolment_secret("http://x", terms.stream))
    key = bytes(32)
    offered = StoredEnrolment("http://x", terms, number, key, key, b"", 0, 0)
    account.bind(account.wallet.enrol(offered))
    return device


def submission(device: AsyncDevice, asked: Round) -> CommittedReport:
    number = device.session.account.number
    return CommittedReport(asked, SubmitReport("s", asked.name, number, bytes(16), b"AB"))


def test_a_gateway_sends_the_same_bytes_again(tmp_path: Path) -> None:
    transport = Losing()
    device = enrolled(tmp_path / "one.ldp", transport, make_terms())
    gateway = Gateway(transport, "http://x", "s", lambda: [device])
    deadline_ms = device.session.account.label.now_ms() + 60_000
    asked = Round("1-publication", 1, 10**9, deadline_ms, (1, 1))
    report = submission(device, asked)
    asyncio.run(gateway.pass_on([(device, report)]))
    assert transport.bodies == 2 * [device.session.account.number + bytes(16) + b"AB"]
    assert (gateway.delivered, gateway.undelivered) == (1, 0)


def test_a_gateway_gives_up_when_the_round_is_over(tmp_path: Path) -> None:
    transport = Losing()
    device = enrolled(tmp_path / "one.ldp", transport, make_terms())
    gateway = Gateway(transport, "http://x", "s", lambda: [device])
    over = Round("1-publication", 1, 10**9, 0, (1, 1))
    report = submission(device, over)
    asyncio.run(gateway.pass_on([(device, report)]))
    assert len(transport.bodies) == 1
    assert (gateway.delivered, gateway.undelivered) == (0, 1)


class Narrow(Counting):
    """Takes one record of 34 bytes at a time."""

    async def send(self, url: str, request: Request) -> Response:
        await super().send(url, request)
        if len(request.body) > 34:
            return Response(413, {}, b"{}")
        return Response(200, {}, b'{"accepted": 1, "repeated": 0, "refused": {}}')


def test_a_gateway_sends_apart_what_is_too_large_together(tmp_path: Path) -> None:
    transport = Narrow()
    device = enrolled(tmp_path / "one.ldp", transport, make_terms())
    gateway = Gateway(transport, "http://x", "s", lambda: [device])
    asked = Round("1-publication", 1, 10**9, 0, (1, 1))
    report = submission(device, asked)
    asyncio.run(gateway.pass_on([(device, report)] * 5))
    assert (gateway.delivered, gateway.undelivered) == (5, 0)
    assert transport.arrived == 7  # 5 and 2 are too many


def test_a_gateway_lets_nobody_decide_when_it_may_be_too_late(tmp_path: Path) -> None:
    terms = make_terms(interval_ms=60_000, window=1)
    asked = Round("1-publication", 1, terms.epsilon_nano, terms.start_ms + 54_000, (1, 1))

    def reports_at(ms: int) -> int:
        transport = Narrow()
        device = enrolled(tmp_path / f"{ms}.ldp", transport, terms)
        gateway = Gateway(transport, "http://x", terms.stream, lambda: [device])
        heard = Announcement(1, terms.pin, (asked,), now_ms=terms.start_ms + ms)
        asyncio.run(gateway._answer(heard, gateway.clock.steady_ms()))
        return gateway.delivered

    assert [reports_at(0), reports_at(37_000), reports_at(53_999)] == [1, 0, 0]


def test_a_gateway_lets_go_of_devices_that_leave_while_they_wait(tmp_path: Path) -> None:
    terms = make_terms()
    asked = Round("1-publication", 1, terms.epsilon_nano, terms.start_ms + 10**9, (1, 1))
    files = [tmp_path / "stays.ldp", tmp_path / "leaves.ldp"]
    here = [enrolled(file, Counting(), terms) for file in files]
    decided = []

    class Early(Gateway):
        def _decision(  # type: ignore[override]
            self, device: AsyncDevice, pin: str, asked: Round | Refused
        ) -> TooEarly | Refused:
            assert isinstance(asked, Round)
            decided.append(device)
            if len(decided) == 2:
                here.pop()
            return TooEarly(asked, 1) if len(decided) <= 2 else Refused(Problem.NO_REPORTS)

    gateway = Early(Counting(), "http://x", terms.stream, lambda: here)
    heard = Announcement(1, terms.pin, (asked,), now_ms=terms.start_ms)
    stays, leaves = here
    asyncio.run(gateway._answer(heard, gateway.clock.steady_ms()))
    assert decided == [stays, leaves, stays]


def test_a_device_that_leaves_a_fleet_is_used_by_nobody(tmp_path: Path) -> None:
    """Neither by its own task nor by a gateway that is in the middle of its devices."""
    fleet = Fleet(two_devices(loss=0.0))

    async def leave() -> None:
        for user in range(2):
            line = FaultyTransport(Counting(), FaultRates(), Random(5))
            fleet._members[user] = _Member(tmp_path / file_name(user), line)
        leaving = fleet._members[1]
        leaving.task = asyncio.create_task(asyncio.Event().wait())  # type: ignore[arg-type]
        held = iter(fleet._online())
        assert next(held) is fleet._members[0].device
        await leaving.leave()
        assert leaving.task.done()
        assert list(held) == []

    asyncio.run(leave())


def test_a_collector_compiles_nothing_after_it_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a cold cache too: what is compiled later would keep the first reports waiting."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))  # for the collector: ours is read already
    now = datetime.now(UTC)
    given: dict[str, object] = {"mechanism": '"lpf"', "window": 1, "population": 30}
    tables = [stream_table(kind, now, selection=f'"{kind}"', **given) for kind in KINDS]
    source = sin(users=30, timestamps=50)
    with serving(tmp_path, *tables) as url:
        compiled = sorted(cache.rglob("*.nbc"))
        plans = [
            FleetPlan(url, kind, TOKEN, source, 30, PATIENCE, gateway=kind == "open")
            for kind in KINDS
        ]
        for outcome in asyncio.run(_until_judged(plans, 2)):
            assert outcome.delivered > 0
    assert sorted(cache.rglob("*.nbc")) == compiled


def test_devices_report_while_others_enrol(collector: str) -> None:
    """A gateway need not wait for all; whoever is there at the start is heard."""
    enrolled: list[int] = []
    source = sin(users=60, timestamps=50)
    plan = FleetPlan(collector, "sin", TOKEN, source, 60, PATIENCE, gateway=True, gradual=True)

    def enough(seen: list[JudgedRelease]) -> bool:
        return 60 in enrolled and _received(seen) > 10

    outcome = asyncio.run(_until(plan, enough, lambda stage, done, _: enrolled.append(done)))
    assert 60 in enrolled
    assert outcome.delivered > 5


@pytest.mark.slow
def test_open_and_roster_selection_err_as_the_simulation_does(folder: Path) -> None:
    """LPU: each release is fresh, so its squared error over its variance is chi-squared.

    What counts is how many reports each release was made of, not how many were asked for: a busy
    machine, where reports come late, takes longer and finds the same.
    """
    source = constant(users=DEVICES, timestamps=TIMESTAMPS, p=0.3)
    simulated = simulate(source, "lpu", epsilon=1, window=WINDOW, oracle="grr", repeats=100)
    soon = datetime.now(UTC) + timedelta(seconds=3)
    streams = [
        stream_table(
            kind, soon, selection=f'"{kind}"', population=DEVICES, window=WINDOW, interval='"1s"'
        )
        for kind in KINDS
    ]
    with serving(folder, *streams) as url:
        plans = [
            FleetPlan(
                url, kind, TOKEN, source, DEVICES, PATIENCE, gateway=kind == "open", seed=seed
            )
            for seed, kind in enumerate(KINDS)
        ]
        outcomes = asyncio.run(_until_judged(plans, TIMESTAMPS))
    half = Oracle.GRR.collector(2, Epsilon.of(1))
    concentration = 0.3**2 + 0.7**2
    expected = half.mean_variance(DEVICES // WINDOW, DEVICES, concentration)
    # 1600 timestamps: a relative deviation of sqrt(2 / 1600) = 0.036, five of which are 0.18
    assert simulated.mean("mse") == pytest.approx(expected, rel=0.18)
    for outcome in outcomes:
        whole = [one for one in outcome.judged if _is_whole(one)]
        assert len(whole) >= TIMESTAMPS
        ratios = [
            np.mean((one.values - one.truth) ** 2)
            / half.mean_variance(one.received, DEVICES, concentration)
            for one in whole
        ]
        low, high = (chi2.ppf(q, len(whole)) / len(whole) for q in (2e-7, 1 - 2e-7))
        assert low < np.mean(ratios) < high
        assert outcome.metrics is not None
        assert outcome.metrics.cfpu <= 1 / WINDOW * (1 + WINDOW / len(outcome.judged))


def _is_whole(judged: JudgedRelease) -> bool:
    return judged.fresh and judged.received >= 5


async def _until_judged(plans: list[FleetPlan], number: int) -> list[FleetOutcome]:
    """Run each fleet until there are so many releases of so many reports."""

    def enough(seen: list[JudgedRelease]) -> bool:
        return sum(map(_is_whole, seen)) >= number

    return list(await asyncio.gather(*(_until(plan, enough) for plan in plans)))


async def _until(
    plan: FleetPlan,
    enough: Callable[[list[JudgedRelease]], bool],
    progress: Progress = lambda *_: None,
) -> FleetOutcome:
    """Run a fleet until these releases are enough."""
    seen: list[JudgedRelease] = []

    def watch(judged: JudgedRelease) -> None:
        seen.append(judged)
        if enough(seen):
            fleet.stop()

    fleet = Fleet(plan, progress, watch)
    return await fleet.run()


def _received(seen: list[JudgedRelease]) -> int:
    return sum(one.received for one in seen)


@pytest.fixture(scope="module")
def collector(folder: Path) -> Iterator[str]:
    own = folder / "one"
    own.mkdir()
    soon = datetime.now(UTC) + timedelta(seconds=1)
    open_one = stream_table("sin", soon, population=60)
    roster = stream_table("roster", soon, population=60, selection='"roster"')
    with serving(own, open_one, roster) as url:
        yield url


@pytest.mark.parametrize("gateway", [False, True])
def test_a_fleet_lives_through_bad_weather(collector: str, gateway: bool) -> None:
    rough = FaultRates(offline=0.2, join=0.05, loss=0.1, latency=0.01)
    source = sin(users=60, timestamps=50)
    plan = FleetPlan(collector, "sin", TOKEN, source, 60, PATIENCE, rough, gateway)
    outcome = asyncio.run(_until(plan, lambda seen: len(seen) >= 6 and _received(seen) > 20))
    assert outcome.delivered > 10
    assert set(outcome.refused) <= {"budget-spent", *LATE}


@pytest.mark.parametrize("gateway", [False, True])
def test_a_fleet_takes_part_in_a_private_stream(tmp_path: Path, gateway: bool) -> None:
    """The gateway has no token: it speaks by the keys of its devices."""
    table = stream_table("sin", datetime.now(UTC), population=20, window=1, public="false")
    with serving(tmp_path, table) as url:
        plan = FleetPlan(
            url,
            "sin",
            TOKEN,
            sin(users=20, timestamps=50),
            20,
            PATIENCE,
            gateway=gateway,
            read_token=token_of(tmp_path, "sin"),
        )
        (outcome,) = asyncio.run(_until_judged([plan], 2))
    assert outcome.delivered >= 10  # a busy machine may send others too late


def test_a_fleet_can_leave_its_ledgers(collector: str, tmp_path: Path) -> None:
    source = sin(users=3, timestamps=50)
    leaving = FaultRates(join=0.5)
    plan = FleetPlan(collector, "sin", TOKEN, source, 3, PATIENCE, leaving, folder=tmp_path)
    asyncio.run(_until(plan, lambda _: (tmp_path / file_name(4)).exists()))
    first = [tmp_path / file_name(number) for number in (1, 2, 3)]
    assert all(read_status(file).terms is not None for file in first)  # also of those who left


def test_a_gateway_cannot_speak_for_a_roster(collector: str) -> None:
    plan = FleetPlan(collector, "roster", TOKEN, sin(users=2, timestamps=9), 2, 1.0, gateway=True)
    with pytest.raises(Mistake, match="open selection"):
        run_fleet(plan)


def test_the_command_says_what_is_wrong(collector: str, capsys: pytest.CaptureFixture[str]) -> None:
    fleet = ["fleet", "--collector", collector, "--token", TOKEN, "--devices", "5"]
    assert run([*fleet, "--stream", "zipf:labels=4", "--name", "sin"]) == 2
    assert "in order: --stream zipf:labels=2" in capsys.readouterr().err
    assert run([*fleet, "--loss", "2"]) == 2
    assert run(["fleet", "--collector", "nowhere", "--token", "x", "--devices", "5"]) == 2
    assert run([*fleet, "--name", "none"]) == 2
    assert "stream-unknown" in capsys.readouterr().err
    assert run([*fleet, "--name", "sin", "--token", "wrong"]) == 2
    assert "401 token" in capsys.readouterr().err
