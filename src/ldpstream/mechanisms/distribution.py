from __future__ import annotations

from ldpstream.mechanisms.adaptive import Adaptive
from ldpstream.mechanisms.mechanism import Step


class Distribution(Adaptive):
    """LBD (Algorithm 1), LPD (Algorithm 3): each publication takes half of what is left."""

    def decide(self, t: int) -> Step:
        probe = yield self.ask_dissimilarity()
        remaining = self.division.total // 2 - self.spent_before(t)
        potential = remaining // 2
        if self.worth_publishing(probe, potential):
            fresh = yield self.ask_publication(t, potential)
            return self.publish(t, fresh, probe)
        return self.approximate(t)
