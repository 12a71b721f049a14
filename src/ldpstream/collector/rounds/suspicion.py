"""Rounds that do not look like the work of honest devices (`oracles/shape.py`) are recorded."""

from __future__ import annotations

from collections.abc import Iterable

from ldpstream.collector.config import Suspicion
from ldpstream.collector.reports.halves import Half
from ldpstream.collector.store.contract import Store
from ldpstream.oracles.shape import Shape, shape_of

NOTE = "suspects"
KEPT = 100
"""Names that are remembered: at least those of the rounds of an unreleased timestamp."""


class Suspects:
    """The suspect rounds of one stream. Each is on disk before its tally is."""

    def __init__(self, rule: Suspicion, stream: str, store: Store) -> None:
        self._rule, self._stream, self._store = rule, stream, store
        self._names: list[str] = (store.note(stream, NOTE) or {"rounds": []})["rounds"]

    def watch(self, collector: Half) -> Shape | None:
        """Return what must see all reports of a round, or None if there is no test for them."""
        return shape_of(collector.device) if self._rule.false_alarm > 0 else None

    def judge(self, round_name: str, shape: Shape | None) -> None:
        """Remember a round whose reports honest devices would hardly send."""
        if shape is not None and shape.p_value() < self._rule.false_alarm:
            self._names = [*self._names, round_name][-KEPT:]
            self._store.write_note(self._stream, NOTE, {"rounds": self._names})

    def among(self, round_names: Iterable[str]) -> list[str]:
        return [name for name in round_names if name in self._names]

    def discarded(self, round_name: str) -> bool:
        return self._rule.discard and round_name in self._names
