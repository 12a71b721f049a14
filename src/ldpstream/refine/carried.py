"""An earlier publication carried forward: where the truth is while nothing is published."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.refine.filter import Filter
from ldpstream.refine.intervals import normal_variance
from ldpstream.refine.packing import pack, unpack
from ldpstream.refine.relabelling import Relabelling


@dataclass(frozen=True)
class Carried:
    """A tally that was published, and the filter's estimate just after it took the tally in.

    The tally says, without bias, where the truth was; the filter says how far it has moved since. A
    filter alone has a smaller variance but is wrong for longer: where labels that stood still begin
    to move, it clings to the past for several tallies, and so do its intervals. The tallies with
    which a mechanism decided not to publish would not do either: they are selected for having
    fallen close, and are better than their variance says.

    >>> smooth = Filter(labels=2)
    >>> for share in (0.30, 0.34, 0.27, 0.33):
    ...     tally = np.array([1 - share, share]), np.full(2, 1e-4)
    ...     smooth.update(*tally)
    ...     smooth.pass_time(9)
    >>> smooth.update(*tally)
    >>> last = Carried.of(*tally, smooth)
    >>> smooth.pass_time(9)
    >>> values, variance = last.now(smooth)
    >>> bool(abs(values[1] - 0.33) < 0.03), bool(variance[1] > 1e-4)
    (True, True)
    """

    values: Floats
    variance: Floats
    estimate: Floats
    """The filter's estimate at the time."""
    spread: Floats
    """The variance of that estimate: that of a normal with the filter's interval."""

    @classmethod
    def of(cls, values: Floats, variance: Floats, smooth: Filter) -> Carried:
        """Make one from a tally that `smooth` has just taken in."""
        return cls(values, variance, smooth.estimate, normal_variance(*smooth.interval()))

    def now(self, smooth: Filter) -> tuple[Floats, Floats]:
        """Return the estimate of the truth by now, and its variance."""
        spread = normal_variance(*smooth.interval())
        grown = np.maximum(spread - self.spread, 0.0)
        return self.values + smooth.estimate - self.estimate, self.variance + grown

    def save(self) -> dict[str, Any]:
        return {name: pack(array) for name, array in asdict(self).items()}

    @classmethod
    def restored(cls, saved: dict[str, Any]) -> Carried:
        return cls(**{name: unpack(array) for name, array in saved.items()})

    def relabelled(self, move: Relabelling, smooth: Filter) -> Carried:
        """Return it by other labels, which `smooth` has already; nothing is known of new ones."""
        return Carried(
            move.summed(self.values, smooth.estimate),
            move.summed(self.variance, 1.0),
            move.summed(self.estimate, smooth.estimate),
            move.summed(self.spread, 1.0),
        )
