from __future__ import annotations

from ldpstream.mechanisms.adaptive import Adaptive
from ldpstream.mechanisms.mechanism import Step


class Absorption(Adaptive):
    """LBA (Algorithm 2), LPA (Algorithm 4): a publication takes the units that were not used
    before it, and as many timestamps after it go without.

    At t = 1 it absorbs one imaginary slot, as the pseudocode has it (docs/paper-corrections.md, 4).
    """

    def decide(self, t: int) -> Step:
        probe = yield self.ask_dissimilarity()
        last = self.last_publication
        nullified = last.amount // self.unit - 1
        if t - last.t <= nullified:
            return self.approximate(t)
        absorbed = t - (last.t + nullified)
        potential = self.unit * min(absorbed, self.window)
        if self.worth_publishing(probe, potential):
            fresh = yield self.ask_publication(t, potential)
            return self.publish(t, fresh, probe)
        return self.approximate(t)
