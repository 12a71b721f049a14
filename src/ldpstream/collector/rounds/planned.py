"""How many reports are planned at a timestamp.

With slots, a device of a level with the window w has one turn in w timestamps. How the fleet is
divided into levels is learnt from its reports: nobody has to say it.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import floor

from ldpstream.collector.rounds.group import RoundGroup
from ldpstream.collector.rounds.selection import Asked
from ldpstream.protocol.slots import turn_share
from ldpstream.protocol.strata import level_in
from ldpstream.protocol.terms import SelectionMethod, Terms


def turns_of(stratum: Terms, population: int, shares: Mapping[str, float], t: int) -> int:
    """Return how many devices of a level have their turn at t, in a fleet of this population.

    Until anybody is heard, all are taken to have chosen the stream's own level. Fractions add up to
    whole reports over time.
    """
    share = shares.get(stratum.level, 0.0) if shares else float(not stratum.level)
    expected = population * share * turn_share(stratum.window, t)
    return floor(t * expected) - floor((t - 1) * expected)


def reports_planned(group: RoundGroup, kind: SelectionMethod) -> int:
    """Return how many reports the rounds of one ask are planned to get.

    Each level has a plan of its own. The rounds of earlier terms have that of their level, too,
    since its devices answer in one of them.
    """
    if kind is SelectionMethod.ROSTER:
        return len(Asked.of(group.first))
    by_level: dict[str, int] = {}
    for one in group.rounds:
        by_level.setdefault(level_in(one.name), one.users)
    return sum(by_level.values())
