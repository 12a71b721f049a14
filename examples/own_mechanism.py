"""A mechanism of your own, next to the seven of the paper.

ldpstream compare --stream sin --plugin examples/own_mechanism.py --out compared
"""

from ldpstream.mechanisms.division import PopulationDivision
from ldpstream.mechanisms.mechanism import Mechanism, Step
from ldpstream.mechanisms.registry import register

PUBLICATIONS = 4


class Periodic(Mechanism):
    """A few publications in each window, at fixed intervals: between LSP (one) and LPU (w)."""

    def decide(self, t: int) -> Step:
        every = max(self.window // PUBLICATIONS, 1)
        if (t - 1) % every:
            return self.approximate(t)
        # Any w timestamps hold at most w / every publications, rounded up: they share a window.
        amount = self.division.share(-(-self.window // every))
        fresh = yield self.ask_publication(t, amount)
        return self.publish(t, fresh)


register("periodic", Periodic, PopulationDivision)
