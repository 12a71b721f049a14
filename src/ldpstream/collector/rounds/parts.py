"""The reports of the whole fleet, or of a group of devices, in rounds that tell them apart."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from ldpstream.arrays import Counts
from ldpstream.collector.rounds.group import RoundGroup
from ldpstream.mechanisms.breakdown import Group
from ldpstream.oracles.collector_half import Support
from ldpstream.oracles.tagged.collector import together
from ldpstream.protocol.attributes import Attributes
from ldpstream.protocol.history import TermsHistory
from ldpstream.protocol.terms import Terms


def reports_of(
    part: Group | None, rounds: RoundGroup, supports: Mapping[str, Support], history: TermsHistory
) -> dict[str, Support]:
    """Return the supports of rounds, by name, for the reports of a group, or all if it is None.

    This is the one place that adds up what attributes tell apart. Rounds under earlier terms may
    have told more than the group is made by.
    """
    now, found = history.at(rounds.t).attributes, {}
    for name, terms in rounds.strata(history).items():
        told, support = terms.attributes, supports[name]
        if part is None or told is None:
            found[name] = whole(support, terms)
        else:
            assert now is not None
            found[name] = together(support, told.combinations, _members(now, part, told))
    return found


def whole(support: Support, terms: Terms) -> Support:
    """Return the support of the reports of all devices in a round under these terms."""
    told = terms.attributes
    if told is None:
        return support
    return together(support, told.combinations, range(told.combinations))


def whole_rows(counts: Counts, terms: Terms) -> Counts:
    """Return the counts of the reports of all devices, for many rounds under terms such as these.

    The last axis has the counts of a round as they are stored; all levels tell the same attributes.
    """
    told = terms.attributes
    if told is None:
        return counts
    by_tag = counts.reshape(*counts.shape[:-1], told.combinations, -1)
    summed: Counts = by_tag.sum(axis=-2)[..., :-1]
    return summed


@lru_cache(maxsize=1024)
def _members(now: Attributes, group: Group, told: Attributes) -> tuple[int, ...]:
    return now.matching(*group, told)
