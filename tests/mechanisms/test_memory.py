"""A mechanism's own memory is saved, restored and checked without a line of its own for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from ldpstream.arrays import Floats
from ldpstream.errors import Mistake
from ldpstream.mechanisms.division import PopulationDivision
from ldpstream.mechanisms.filtered import Filtered
from ldpstream.mechanisms.mechanism import Mechanism, Step
from ldpstream.mechanisms.registry import register, unregister
from tests.mechanisms.driving import Case, noisy_answers, restored, take

NAME = "remembering"


@dataclass(frozen=True)
class Memory:
    """One field of every kind."""

    seen: int = 0
    mean: float = 0.0
    mood: str = "calm"
    odd: bool = False
    sums: Floats = field(default_factory=lambda: np.zeros(2))


class Remembering(Mechanism):
    """Asks, sums up what it is told, and lets the sum decide when to ask again."""

    def first_memory(self) -> Memory:
        return Memory(sums=np.zeros(self.noise.labels))

    def decide(self, t: int) -> Step:
        if self.memory.odd:
            self.memory = replace(self.memory, odd=False)
            return self.approximate(t)
        fresh = yield self.ask_publication(t, self.division.share(self.window))
        sums = self.memory.sums + fresh.estimate
        self.memory = Memory(
            self.memory.seen + 1, float(sums.mean()), "moved", bool(sums[0] > sums[1]), sums
        )
        return self.publish(t, fresh)


@pytest.fixture(params=[False, True], ids=["plain", "filtered"])
def filtered(request: pytest.FixtureRequest) -> Iterator[bool]:
    register(NAME, Remembering, PopulationDivision, filtered=request.param)
    yield request.param
    unregister(NAME)


CASE = Case(NAME, labels=3, users=300, window=5)


def test_a_registered_mechanism_can_ask_for_a_filter(filtered: bool) -> None:
    assert isinstance(CASE.build(), Filtered) == filtered


def test_a_restored_memory_goes_on(filtered: bool) -> None:
    answers = noisy_answers(CASE, seed=5)
    whole, restarted = CASE.build(), CASE.build()
    for t in range(1, 40):
        releases = [take(one.step(t), t, answers(t)).release for one in (whole, restarted)]
        assert releases[0] is not None
        assert releases[1] is not None
        assert releases[0].to_json() == releases[1].to_json()
        restarted = restored(restarted, CASE.build())
        memories = [getattr(one, "inner", one).save()["memory"] for one in (whole, restarted)]
        assert memories[0] == memories[1]


@pytest.mark.parametrize(
    "change",
    [
        {"seen": 1.5},
        {"seen": True},
        {"seen": None},
        {"mean": "0.5"},
        {"mean": float("nan")},
        {"mood": 3},
        {"odd": 1},
        {"sums": [0.0, 0.0]},
        {"sums": [0.0, 0.0, None]},
        {"sums": 0.0},
        {"sums": "AAAA"},
        {"more": 1},
    ],
)
def test_a_memory_of_another_kind_is_refused(change: dict[str, Any]) -> None:
    mechanism = Remembering(*_parts())
    saved = mechanism.save()
    before = json.dumps(saved)
    with pytest.raises(Mistake, match="restore it with the settings"):
        mechanism.restore(saved | {"memory": saved["memory"] | change})
    with pytest.raises(Mistake, match="restore it with the settings"):
        mechanism.restore({name: part for name, part in saved.items() if name != "memory"})
    assert json.dumps(mechanism.save()) == before


def test_a_memory_that_could_not_be_restored_is_not_saved() -> None:
    mechanism = Remembering(*_parts())
    mechanism.memory = replace(mechanism.memory, sums=np.zeros(7))
    with pytest.raises(Mistake, match="sums"):
        mechanism.save()
    mechanism.memory = {"seen": 1}
    with pytest.raises(TypeError, match="became"):
        mechanism.save()


@dataclass
class Thawed:
    """Could be changed in place, behind the back of who saves it."""

    seen: int = 0


@dataclass(frozen=True)
class Unsaveable:
    """Holds what JSON cannot."""

    seen: tuple[int, ...] = ()


@pytest.mark.parametrize("memory", [Thawed(), Unsaveable(), {"seen": 1}])
def test_what_cannot_be_a_memory_is_refused_at_once(memory: object) -> None:
    class Wrong(Remembering):
        def first_memory(self) -> Any:
            return memory

    with pytest.raises(TypeError, match="memory"):
        Wrong(*_parts())


def _parts() -> tuple[Any, Any]:
    built = replace(CASE, name="lpu").build()
    return built.division, built.noise
