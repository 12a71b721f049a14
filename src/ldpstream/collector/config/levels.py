"""The levels of privacy of a stream: its [[stream.level]] tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ldpstream.collector.config.table import ConfigTable
from ldpstream.durations import spelled
from ldpstream.numeric import Numeric
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.limits import LATEST_MS
from ldpstream.protocol.strata import LEVEL_NAME, MOST_LEVELS, STANDARD, is_level_name
from ldpstream.protocol.terms import SelectionMethod

ReadOracle = Callable[[ConfigTable, Epsilon], Oracle | Numeric | None]
"""Reads the oracle of a table, for reports of this epsilon, or None for the best one."""


@dataclass(frozen=True)
class LevelConfig:
    """A level of privacy, as the file describes it."""

    name: str
    epsilon: Epsilon
    window: int
    oracle: Oracle | Numeric | None
    """None stands for the best one for this epsilon."""


def read_levels(
    tables: list[ConfigTable], selection: SelectionMethod, interval_ms: int, oracle: ReadOracle
) -> tuple[LevelConfig, ...]:
    """Read the levels of a stream: only with slots has each device a window of its own."""
    for table in tables[MOST_LEVELS:]:
        table.refuse(None, f"there are {len(tables)} levels", f"give {MOST_LEVELS} at most")
    levels: list[LevelConfig] = []
    for table in tables:
        if selection is not SelectionMethod.SLOTS:
            fix = 'set selection = "slots", or leave levels out'
            table.refuse(None, f"levels need slots, and selection is {selection}", fix)
        level = _level(table, interval_ms, oracle)
        if level.name in {one.name for one in levels}:
            table.refuse("name", f"level {level.name!r} appears twice", "give it another name")
        levels.append(level)
    return tuple(levels)


def _level(table: ConfigTable, interval_ms: int, oracle: ReadOracle) -> LevelConfig:
    name = table.text("name")
    if not is_level_name(name):
        table.refuse("name", f"name is {name!r}", f"give {LEVEL_NAME}")
    if name == STANDARD:
        fix = "that is what the stream's own epsilon and window are called: choose another"
        table.refuse("name", f"name is {name!r}", fix)
    epsilon: Epsilon = table.attempt("epsilon", lambda: Epsilon.of(table.number("epsilon")))
    return LevelConfig(name, epsilon, read_window(table, interval_ms), oracle(table, epsilon))


def read_window(table: ConfigTable, interval_ms: int) -> int:
    """Read `window`, of a stream or of a level: devices refuse one that is too long to count."""
    window = table.whole("window", least=1)
    if window * interval_ms > LATEST_MS:
        what = f"window is {window}, with an interval of {spelled(interval_ms)}"
        table.refuse("window", what, f"give at most {LATEST_MS // interval_ms}")
    return window
