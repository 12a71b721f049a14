"""Attributes beside reports: they cost no epsilon, whatever an application says and when."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ldpstream.audit.attacker import evidence
from ldpstream.audit.empirical import Trial, WorldSize
from ldpstream.audit.exact import check
from ldpstream.audit.hostile_collector import make_terms
from ldpstream.audit.life import Life
from ldpstream.audit.machine import Machine, TrueTime
from ldpstream.audit.world import ATTRIBUTES, World
from ldpstream.numeric import Numeric
from ldpstream.oracles import Oracle
from ldpstream.oracles.device_half import Randomiser
from ldpstream.oracles.tagged.device import Tagged
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.terms import SelectionMethod

SMALL = WorldSize(targets=12, crowd=40, windows=4)
TAGS = 3


@pytest.mark.parametrize("kind", [*Oracle, *Numeric])
def test_a_tag_costs_nothing(kind: Oracle | Numeric) -> None:
    """By the whole distribution of outputs, under every draw, where they are not too many."""
    inner: Randomiser[Any] = kind.device(3, Epsilon.of(1))
    plain = check(kind.value, inner)
    for tag in range(TAGS):
        found = check(kind.value, Tagged(inner, TAGS, tag))
        assert found.method is plain.method
        assert found.holds
        assert found.ratio == plain.ratio


def test_a_tag_that_told_the_value_would_be_seen() -> None:
    """The check can fail: a tag that follows the value gives it away."""

    class Telling(Tagged[int]):
        def _perturb(self, value: int, source: Any) -> int:
            self.tag = value
            return super()._perturb(value, source)

    told = Telling(Oracle.GRR.device(3, Epsilon.of(1)), TAGS)
    assert not check("telling", told).holds


def test_a_device_that_says_something_else_in_each_slot_spends_no_more(memory: Path) -> None:
    """Through the whole collector: both answers to a round are the same bytes, tag and all."""
    trial = Trial("lpf")
    number = next(
        n for n in range(9) if trial.scenario(SMALL, n).selection is SelectionMethod.SLOTS
    )
    world = World(trial.scenario(SMALL, number), memory)
    world.live()
    assert world.violations == []
    scores = [abs(one) for target in evidence(world.scenario, world.wire) for one in target]
    assert 0 < max(scores) <= float(world.scenario.epsilon) + 1e-9
    answers: dict[tuple[int, str], set[bytes]] = {}
    for one in world.wire:
        answers.setdefault((one.target, one.round), set()).add(one.report)
    assert all(len(sent) == 1 for sent in answers.values())
    assert {sent.pop()[-1] for sent in answers.values()} == set(range(ATTRIBUTES.combinations))


def test_a_life_of_changing_descriptions_keeps_the_promise(tmp_path: Path) -> None:
    """Described anew before each turn, restarted and rebooted, within windows and across them."""
    terms = make_terms(
        window=3,
        version=3,
        selection="slots",
        deadline_ms=50_000,
        attributes=[{"name": "country", "values": ["de", "fr"]}],
    )
    life = Life(tmp_path, Machine(TrueTime()), terms)
    life.install()
    tags: list[int] = []
    for turn in range(60):
        assert life.process is not None
        life.process.device.describe(country=["de", "fr", "elsewhere"][turn // 4 % 3])
        life.machine.wait(60)
        tags += [draw.report[-1] for draw in life.ask() if draw.report is not None]
        if turn % 5 == 4:
            life.start()
        if turn % 7 == 6:
            life.reboot(down_seconds=20)
    assert life.violations == []
    assert life.broken_vows == []
    assert set(tags) == {0, 1, 2}
