"""A sampler like FAST: ldpstream compare --plugin examples/fast_like.py --stream sin --out out."""

from dataclasses import dataclass
from math import exp

from ldpstream.mechanisms.division import PopulationDivision
from ldpstream.mechanisms.mechanism import Mechanism, Release, Step
from ldpstream.mechanisms.registry import register

SAMPLES, DRIFT, CP, CI, CD, STEP, SET_POINT = 4, 1e-4, 0.8, 0.1, 0.1, 5.0, 0.1


@dataclass(frozen=True)
class Memory:
    interval: float = 0.0
    error: float = 0.0


class FastLike(Mechanism):
    """PID control of when to sample, a Kalman filter over samples (Fan and Xiong, TKDE 2014)."""

    def first_memory(self) -> Memory:
        return Memory()

    def decide(self, t: int) -> Step:
        prior, last, elapsed = self.state.release, self.memory, t - self.last_publication.t
        amount = self.division.share(min(SAMPLES, self.window))  # so many in any window
        waits = elapsed < last.interval or self.spent_before(t) + amount > self.division.total
        if waits or not (tally := (yield self.ask_publication(t, amount))):
            return self.approximate(t)
        gain = 1 / (1 + tally.variance / (prior.variance + DRIFT * elapsed))
        posterior = prior.values + gain * (tally.estimate - prior.values)
        error = min(float(abs(posterior - prior.values).sum()), 1.0)
        pid = CP * error + CI * (error + last.error) / 2 + CD * (error - last.error) / elapsed
        interval = last.interval + STEP * (1 - exp(pid / SET_POINT - 1))
        self.memory = Memory(min(max(interval, 1.0), 2.0 * self.window / SAMPLES), error)
        return Release(t, posterior, gain * tally.variance, fresh=True)


register("fast-like", FastLike, PopulationDivision)
