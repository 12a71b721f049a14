"""What reads and counts the reports of a stream with these terms."""

from __future__ import annotations

from ldpstream.numeric.collector_half import NumericCollector
from ldpstream.oracles.collector_half import CollectorHalf
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.terms import Terms

Half = CollectorHalf | NumericCollector
"""What reads and counts the reports of a round."""


def half_of(terms: Terms, epsilon: Epsilon) -> Half:
    """Return what reads and counts reports of this epsilon."""
    return terms.oracle.collector(len(terms.values), epsilon)
