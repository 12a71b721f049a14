from __future__ import annotations

from typing import Any

from ldpstream.mechanisms.division import PopulationDivision
from ldpstream.mechanisms.mechanism import Mechanism, Step


class Uniform(Mechanism):
    """LBU, LPU: an equal share at every timestamp (paper, sections 5.2.1 and 6.1)."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.division.share(self.window)

    @property
    def returns_after(self) -> int | None:
        return self.window if isinstance(self.division, PopulationDivision) else None

    def decide(self, t: int) -> Step:
        # Shares differ by at most one unit, and any w consecutive ones sum to the total exactly.
        total, window = self.division.total, self.window
        amount = total * t // window - total * (t - 1) // window
        fresh = yield self.ask_publication(t, amount)
        return self.publish(t, fresh)
