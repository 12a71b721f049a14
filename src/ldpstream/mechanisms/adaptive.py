"""Sub-mechanism M_{t,1}, which distribution and absorption share (paper, section 5.3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpstream.mechanisms.mechanism import Mechanism
from ldpstream.mechanisms.messages import Ask, Purpose, Tally
from ldpstream.mechanisms.noise import NoiseContext


class Adaptive(Mechanism):
    """An allocation that publishes only when the stream has moved further than that would err."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # Half of a window's units for dissimilarities, in w shares: eps/(2w) or floor(N/(2w)).
        self.unit = self.division.share(2 * self.window)

    def ask_dissimilarity(self) -> Ask:
        return self.division.ask(self.unit, Purpose.DISSIMILARITY)

    def worth_publishing(self, probe: Tally, amount: int) -> bool:
        """Return whether the dissimilarity exceeds the error of publishing with `amount` units."""
        if not probe or amount < 1:
            return False
        return self.dissimilarity(probe) > self.error(probe, amount)

    def dissimilarity(self, probe: Tally) -> float:
        """Return an unbiased estimate of mean (c_t - r_{t-1})^2; may be negative (paper, eq. 5)."""
        distance = float(np.mean((probe.estimate - self.state.release.values) ** 2))
        return distance - self._probe_variance(probe)

    def error(self, probe: Tally, amount: int) -> float:
        """Return the expected squared error of a publication (paper, eq. 7)."""
        ask = self.division.ask(amount, Purpose.PUBLICATION)
        error = self.noise.expected(ask.epsilon, ask.users, self._evidence(probe))
        if self.pool:
            return 1 / (1 / error + 1 / self._probe_variance(probe))
        return error

    def _probe_variance(self, probe: Tally) -> float:
        epsilon = self.ask_dissimilarity().epsilon
        return self.noise.expected(epsilon, probe.reports, self._evidence(probe))

    def _evidence(self, probe: Tally) -> NoiseContext:
        return NoiseContext(self.state.release, probe, self.ask_dissimilarity().epsilon)
