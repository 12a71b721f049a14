"""The population that the quantiles of a number are planned on, where there is no sample.

How far off a quantile is depends on the density around it, and a fitted density is biased besides:
no variance of a report says it. So the real mechanism is simulated on a stream that is stated.
"""

from __future__ import annotations

from ldpstream.lab.planning.outcome import OutcomeSource
from ldpstream.lab.planning.sample import Sample
from ldpstream.streams.synthetic import latency

MOST_TIMESTAMPS = 300
"""Timestamps of a plan unless it names their number: a release is fitted in some 5 ms."""
ASSUMED = (
    "This assumes numbers like those of the stream latency: log-normal, with a median of 0.1 of "
    "the range, a cycle of 96 timestamps, and a jump by 1.4 in the middle. If yours differ, give a "
    "sample (--counts, --data)."
)


def on_reference(levels: int, timestamps: int, repeats: int, seed: int) -> Sample:
    """Return a judge that simulates mechanisms on the stream `latency`, scaled to the range."""
    stream = latency(timestamps=timestamps, steps=levels - 1)
    return Sample(stream, repeats, seed, how=OutcomeSource.REFERENCE)
