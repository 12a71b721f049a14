"""The attack: the wire it reads, and what a device does when only the collector is broken."""

from __future__ import annotations

import ast
from collections import defaultdict
from contextlib import nullcontext
from pathlib import Path

import pytest

import ldpstream
from ldpstream.audit.attacker import evidence, ratios
from ldpstream.audit.empirical import AttackSeries, Trial, WorldSize, all_trials
from ldpstream.audit.machine import START_MS
from ldpstream.audit.planted import BUGS
from ldpstream.audit.planted.bug import Bug
from ldpstream.audit.planted.mechanisms import MECHANISMS
from ldpstream.audit.world import INTERVAL_MS, Scenario, SentReport, World
from ldpstream.collector.config import SelectionMethod
from ldpstream.collector.rounds import coordinator
from ldpstream.collector.rounds import loading as starting
from ldpstream.collector.rounds.selection import RosterSelection
from ldpstream.device import account, rules
from ldpstream.device.account import Account
from ldpstream.device.clock import OwnTime
from ldpstream.device.session import Session
from ldpstream.device.values import HeldValue
from ldpstream.device.witness import ChangeTime
from ldpstream.mechanisms.registry import names
from ldpstream.oracles import Oracle
from ldpstream.oracles.unary.device import OueDevice as Oue
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.privacy.ledger import Ledger

SMALL = WorldSize(targets=12, crowd=40, windows=4)
RECYCLED, *_, DOUBLED = (bug for bug in MECHANISMS if bug.drill is None)


def live(trial: Trial, folder: Path, number: int, *, device_too: bool) -> World:
    """A small world with a bug in the collector, and perhaps in the devices."""
    assert trial.bug is not None
    scenario = trial.scenario(SMALL, number)
    with trial.bug.on_collector(), trial.bug.on_device() if device_too else nullcontext():
        world = World(scenario, folder)
        world.live()
    return world


def most_in_a_window(world: World) -> int:
    """Nano-epsilon on the wire, of one device, in the fullest span of w intervals of true time."""
    readings: defaultdict[int, dict[tuple[int, str, bytes], tuple[int, int]]] = defaultdict(dict)
    for one in world.wire:
        readings[one.target][one.read_ms, one.round, one.report] = one.read_ms, one.epsilon_nano
    span = world.scenario.window * INTERVAL_MS
    return max(
        sum(nano for at, nano in ours.values() if start <= at < start + span)
        for ours in readings.values()
        for start, _ in ours.values()
    )


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("bug", [RECYCLED, DOUBLED], ids=lambda bug: bug.name)
def test_a_broken_collector_alone_gets_no_more_than_epsilon(
    bug: Bug, number: int, memory: Path
) -> None:
    """And it does get more from devices that are broken in the same way."""
    trial = Trial(bug.mechanism, bug)
    (memory / "honest").mkdir()
    (memory / "broken").mkdir()
    honest = live(trial, memory / "honest", number, device_too=False)
    assert most_in_a_window(honest) <= trial.epsilon.nano
    assert honest.violations == []
    broken = live(trial, memory / "broken", number, device_too=True)
    assert most_in_a_window(broken) > trial.epsilon.nano
    assert broken.violations


def test_the_wire_has_every_answer_twice_and_in_the_same_bytes(memory: Path) -> None:
    world = World(Trial("lpa").scenario(SMALL, 1), memory)
    world.live()
    sent: defaultdict[tuple[int, str], list[bytes]] = defaultdict(list)
    for one in world.wire:
        sent[one.target, one.round].append(one.report)
    assert len(sent) > SMALL.targets
    assert all(first == again for first, again in sent.values())
    assert most_in_a_window(world) <= world.scenario.epsilon.nano
    assert world.coordinator.last_t == world.scenario.timestamps


def test_evidence_is_worth_epsilon_and_falls_into_its_window() -> None:
    scenario = Scenario(
        "lpu", Oracle.GRR, Epsilon.of(1), 2, SelectionMethod.OPEN, 1, targets=2, crowd=0, windows=2
    )
    yes, no = sorted(ratios(Oracle.GRR, 10**9), reverse=True)
    wire = [
        SentReport(0, 1, "1-publication", 10**9, yes, moment(0)),  # before any secret
        SentReport(0, 2, "2-publication", 10**9, yes, moment(1)),
        SentReport(0, 2, "2-publication", 10**9, yes, moment(1)),  # the same bytes say nothing new
        SentReport(1, 2, "5-publication", 10**9, no, moment(4)),  # whatever t it was asked for
        SentReport(1, 5, "6-publication", 10**9, no, moment(5)),  # after all secrets
    ]
    assert evidence(scenario, wire) == [
        [pytest.approx(1.0), 0.0],
        [0.0, pytest.approx(-1.0)],
    ]


def moment(interval: int) -> int:
    return START_MS + interval * INTERVAL_MS


def test_time_runs_out_and_says_so() -> None:
    campaign = AttackSeries(all_trials(), SMALL)
    campaign.run_for(0.001)
    assert len(campaign.unfinished) == len(all_trials()) - len(campaign.findings())
    assert campaign.unfinished
    assert not campaign.stopped


def test_it_can_be_stopped_and_keeps_what_it_has() -> None:
    campaign = AttackSeries((Trial("lsp"), Trial("lpu")), SMALL)

    def stop_at_third(stage: str, done: int, total: int) -> None:
        if done == 2:
            campaign._attack = _interrupted  # type: ignore[method-assign]

    campaign.run(stop_at_third)
    assert campaign.stopped
    assert [one.trial.name for one in campaign.findings()] == ["lsp"]
    assert campaign.unfinished == ["lpu"]


def _interrupted(trial: Trial) -> None:
    raise KeyboardInterrupt


def test_bugs_are_gone_when_their_world_is() -> None:
    def now() -> list[object]:
        honest = (RosterSelection, Account, Session, Oue, OwnTime, ChangeTime, HeldValue)
        return [dict(vars(one)) for one in honest]

    before = now()
    for bug in BUGS:
        with bug.planted():
            pass
    assert vars(account)["Ledger"] is Ledger
    assert vars(account)["decide"] is rules.decide
    assert now() == before
    assert vars(coordinator)["selection_of"] is starting.selection_of
    assert DOUBLED.mechanism not in names()


def test_nothing_but_the_audit_can_reach_planted_bugs() -> None:
    package = Path(ldpstream.__file__).parent
    importers = {
        file.relative_to(package).parts[0]
        for file in package.rglob("*.py")
        if file.parent.name != "planted"
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom) and "planted" in ast.unparse(node)
    }
    assert importers == {"audit"}
