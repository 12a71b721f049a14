"""FAST: a controller decides when to sample, and a Kalman filter what to release.

Fan and Xiong, "An Adaptive Approach to Real-Time Aggregate Monitoring with Differential Privacy",
TKDE 2014. The constants are those of a public benchmark (VLDB 2023).

Assumed, since the original has a trusted server and a finite stream: a window allows `samples` of
its timestamps to be sampled, each with an equal share; the noise of a sample is that of the tally;
the feedback error of a histogram is the sum of its bins' changes, which is their relative error
weighted by their shares.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, exp
from typing import Any, ClassVar

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.mechanisms.classic import sampler

ERRORS = 5
"""Feedback errors that the integral term averages."""
LARGEST_EXPONENT = 50.0


@dataclass(frozen=True)
class Memory(sampler.Memory):
    """What the controller remembers besides."""

    errors: Floats = field(default_factory=lambda: np.zeros(ERRORS))
    """Feedback errors, the newest last."""


class Fast(sampler.AdaptiveSampler):
    """PID control of the sampling interval, and a random walk that is measured at the samples."""

    @dataclass(frozen=True)
    class Parameters:
        """The constants of FAST."""

        theta: float = 5.0
        """How strongly the interval follows the controller, in timestamps."""
        xi: float = 0.1
        """The feedback error that leaves the interval as it is."""
        proportional: float = 0.9
        integral: float = 0.1
        derivative: float = 0.0
        samples: float = 0.25
        """The share of a window's timestamps that may be sampled."""
        drift: float = 0.1
        """The variance of a step of the walk, in units of a sample's."""

    parameters: Parameters
    default_parameters: ClassVar[Parameters] = Parameters()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        samples = min(ceil(self.parameters.samples * self.window), self.window)
        self.amount = self.division.share(max(1, samples))

    def first_memory(self) -> Memory:
        return Memory()

    def amount_at(self, t: int) -> int:
        fits = self.spent_before(t) + self.amount <= self.division.total
        return self.amount if fits else 0

    def controlled(self, change: Floats, noise: float, elapsed: int) -> Memory:
        """Return the memory with the next interval, which grows while predictions hold."""
        constants, memory = self.parameters, self.memory
        error = min(float(np.abs(change).sum()), 1.0)
        errors = np.append(memory.errors[1:], error)
        signal = constants.proportional * error + constants.integral * float(errors.mean())
        signal += constants.derivative * (error - memory.errors[-1]) / max(elapsed, 1)
        exponent = min((signal - constants.xi) / max(constants.xi, 1e-9), LARGEST_EXPONENT)
        interval = memory.interval + constants.theta * (1 - exp(exponent))
        return Memory(self.possible(interval), noise, errors)
