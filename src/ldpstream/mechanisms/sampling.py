from __future__ import annotations

from ldpstream.mechanisms.mechanism import Mechanism, Step


class Sampling(Mechanism):
    """LSP: all of the window at one timestamp, nothing at the next w-1 (paper, section 5.2.2)."""

    def decide(self, t: int) -> Step:
        last = self.last_publication
        if last.amount and t - last.t < self.window:
            return self.approximate(t)
        fresh = yield self.ask_publication(t, self.division.total)
        return self.publish(t, fresh)
