"""The collector's half of an oracle, for a stream with given terms."""

from __future__ import annotations

from ldpstream.numeric.collector_half import NumericCollector
from ldpstream.oracles.collector_half import CollectorHalf
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.terms import Terms

Half = CollectorHalf | NumericCollector
"""The collector's half of an oracle, which decodes and counts the reports of a round."""


def half_of(terms: Terms, epsilon: Epsilon) -> Half:
    """Return the half that decodes and counts reports of this epsilon."""
    return terms.oracle.collector(len(terms.values), epsilon)
