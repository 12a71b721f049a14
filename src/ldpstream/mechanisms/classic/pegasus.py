"""PeGaSus: perturb every timestamp, group those that are alike, release the group's median.

Chen et al., "PeGaSus: Data-Adaptive Differentially Private Stream Processing", CCS 2017: four
fifths of the resource perturb, one fifth groups.

Assumed, since a trusted server tests deviations of true counts with Laplace noise: under local
reports the grouper has tallies of its own, whose noise takes the place of that. A bin's group goes
on while the sum of squared deviations of its grouping tallies, less what their noise accounts for,
stays below threshold^2 of their variance. No group is longer than a window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.mechanisms.mechanism import Mechanism, Step
from ldpstream.mechanisms.messages import Purpose, Release, Tally

PARTS = 5
"""One part of five groups, the others perturb."""


@dataclass(frozen=True)
class Memory:
    """The current group of each bin."""

    perturbed: Floats
    """The perturbed tallies of the last w timestamps with any, a row for each, the newest last."""
    length: Floats
    """How many of them are in a bin's group."""
    total: Floats
    """The sum of the group's grouping tallies, and of their squares."""
    squares: Floats


class Pegasus(Mechanism):
    """A group of timestamps for each bin; all of them are estimates of one value."""

    @dataclass(frozen=True)
    class Parameters:
        """The constants of PeGaSus."""

        threshold: float = 3.5
        """The deviation that ends a group, in standard errors of a grouping tally: 5/eps_g against
        Laplace noise of scale 1/eps_g."""

    parameters: Parameters
    default_parameters: ClassVar[Parameters] = Parameters()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.unit = self.division.share(PARTS * self.window)

    def first_memory(self) -> Memory:
        bins = self.noise.labels
        return Memory(np.zeros((self.window, bins)), *(np.zeros(bins) for _ in range(3)))

    def decide(self, t: int) -> Step:
        probe = yield self.division.ask(self.unit, Purpose.DISSIMILARITY)
        tally = yield self.ask_publication(t, (PARTS - 1) * self.unit)
        if not probe or not tally:
            return self.approximate(t)
        memory = self.memory = self._grouped(self.memory, probe, tally)
        values = _medians(memory.perturbed, memory.length)
        # The median of n normal values has pi/2 times the variance of their mean; up to 2 it is it.
        loss = np.where(memory.length > 2, np.pi / 2, 1.0)
        return Release(t, values, loss * tally.variance / memory.length, fresh=True)

    def _grouped(self, memory: Memory, probe: Tally, tally: Tally) -> Memory:
        """Return the memory with this timestamp in the group of each bin, or in a new one."""
        perturbed = np.vstack([memory.perturbed[1:], tally.estimate])
        length = np.minimum(memory.length + 1, self.window)
        total, squares = memory.total + probe.estimate, memory.squares + probe.estimate**2
        joined = memory.length + 1
        deviation = squares - total**2 / joined - (joined - 1) * probe.variance
        goes_on = (deviation < self.parameters.threshold**2 * probe.variance) & (
            joined <= self.window
        )
        return Memory(
            perturbed,
            np.where(goes_on, length, 1.0),
            np.where(goes_on, total, probe.estimate),
            np.where(goes_on, squares, probe.estimate**2),
        )


def _medians(perturbed: Floats, length: Floats) -> Floats:
    """Return the median of the last `length` values of each column."""
    medians = np.empty(len(length))
    for one in np.unique(length):
        bins = length == one
        medians[bins] = np.median(perturbed[-int(one) :, bins], axis=0)
    return medians
