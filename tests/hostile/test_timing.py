"""What a device does takes the same steps whatever its value is, and whatever its coins say.

Steps are counted, not timed: the instructions of Python's bytecode that are executed, and the draws
that are made. So nothing here rests on chance. `benchmarks/timing.py` measures time itself.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest

from ldpstream.device.values import HeldValue
from ldpstream.numeric import Numeric, Range
from ldpstream.oracles import Oracle
from ldpstream.oracles.grr.device import Device as Grr
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.privacy.randomness import SystemSource
from ldpstream.vocabulary import Vocabulary
from tests.device.collectors import BINNED, NUMBERS, TEXTS, make_terms

LABELS = 20
HALVES = [*Oracle, *Numeric]


class Scripted:
    """Draws that are told beforehand: a coin by `heads`, a die by a fixed share of its bound."""

    def __init__(self, heads: bool, share: float) -> None:
        self._heads, self._share = heads, share
        self.draws: list[tuple[int, int]] = []

    def coin(self, favour: int, total: int) -> bool:
        self.draws.append((favour, total))
        return self._heads

    def below(self, bound: int) -> int:
        self.draws.append((0, bound))
        return int(self._share * bound)


def steps(work: Callable[[], object]) -> int:
    """How many bytecode instructions `work` executes."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        if "ldpstream" not in (name := frame.f_code.co_filename) and name != __file__:
            return None  # the collector of garbage may run its callbacks at any moment
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def answer(device: Any, value: int, source: Scripted) -> Callable[[], bytes]:
    return lambda: device.encode(device.perturb(value, source))


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("share", [0.0, 0.4, 0.99])
def test_an_answer_takes_the_same_steps_for_every_value_and_coin(
    half: Oracle | Numeric, share: float
) -> None:
    device = half.device(LABELS, Epsilon.of(1))
    seen, drawn = set(), set()
    for value in range(LABELS):
        for heads in (True, False):
            source = Scripted(heads, share)
            seen.add(steps(answer(device, value, source)))
            drawn.add(tuple(source.draws))
    assert len(seen) == 1, f"between {min(seen)} and {max(seen)} instructions"
    assert len(drawn) == 1


@pytest.mark.parametrize("length", [None, 2, 16])
def test_a_text_takes_the_same_steps_whatever_its_length(length: int | None) -> None:
    words = Vocabulary(salt=7, bits=24, prefixes=(2, 16))
    group = next(group for group in words.groups if group.length == length)
    texts = ["", "a", "12345678", "123456789", "ü" * 100, "x" * 256, "x" * 10_000]
    assert len({steps(partial(words.bucket, text, group)) for text in texts}) == 1


def test_a_number_takes_the_same_steps_beyond_its_range() -> None:
    celsius = Range(-20.0, 60.0)
    readings = [-math.inf, -99.5, -20.0, 21.34, 60.0, 99.0, math.inf]
    assert len({steps(partial(celsius.level, reading)) for reading in readings}) == 1


class Unread(str):
    """A text that must be neither hashed nor spelled as a whole."""

    def __hash__(self) -> int:
        raise AssertionError("hashed")

    def __format__(self, form: str = "") -> str:
        raise AssertionError("spelled")

    __repr__ = __str__ = __format__


class Unspelled(list[int]):
    """A value that no stream has, and that takes long to be spelled."""

    __format__ = Unread.__format__
    __repr__ = __str__ = __format__


@pytest.mark.parametrize("stream", [{}, NUMBERS, BINNED, TEXTS])
@pytest.mark.parametrize("value", [Unread("x" * 5000), Unspelled()])
def test_what_is_no_value_is_neither_hashed_nor_spelled(stream: Any, value: Any) -> None:
    held, warnings = HeldValue(lambda problem: warnings.append(str(problem))), list[str]()
    held.observe(value)
    held.place(make_terms(**stream), SystemSource())
    held.tell()
    assert [one for one in warnings if "raised" in one] == []
    assert len(warnings) == (stream is not TEXTS or type(value) is Unspelled)


def test_a_branch_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: what GRR looked like with a branch for its coin."""

    def branching(self: Grr, value: int, source: Any) -> int:
        if source.coin(self._favour, self._total):
            source.below(self.labels - 1)
            return value
        other: int = source.below(self.labels - 1)
        return other + (other >= value)

    monkeypatch.setattr(Grr, "_perturb", branching)
    with pytest.raises(AssertionError, match="instructions"):
        test_an_answer_takes_the_same_steps_for_every_value_and_coin(Oracle.GRR, 0.4)
