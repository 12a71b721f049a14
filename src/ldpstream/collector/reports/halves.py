"""The collector's half of an oracle, for a stream with given terms."""

from __future__ import annotations

from ldpstream.numeric.collector_half import NumericCollector
from ldpstream.oracles.collector_half import CollectorHalf
from ldpstream.oracles.tagged.collector import TaggedReader
from ldpstream.oracles.tagged.device import Tagged
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.terms import Terms
from ldpstream.vocabulary import Vocabulary
from ldpstream.vocabulary.collector import ColumnReader

Half = CollectorHalf | NumericCollector | TaggedReader
"""The collector's half of an oracle, which decodes and counts the reports of a round."""


def half_of(terms: Terms, epsilon: Epsilon) -> Half:
    """Return the half that decodes and counts reports of this epsilon."""
    inner = terms.oracle.collector(len(terms.values), epsilon)
    if isinstance(terms.values, Vocabulary):
        return ColumnReader(Tagged(inner.device, terms.tags), inner)
    return tagged(inner, terms.tags)


def tagged(inner: CollectorHalf | NumericCollector, tags: int) -> Half:
    """Return the reader of reports with so many tags; without any, the half itself."""
    return TaggedReader(Tagged(inner.device, tags), inner) if tags else inner
