"""What a round would promise behind a shuffler, stated beside the local promise."""

from __future__ import annotations

from ldpstream.lab.planning.shuffling import Shuffled

EPSILONS = (0.5, 1.0, 2.0)
ROUNDS = (1_000, 10_000, 100_000)
"""Numbers of reports."""

CONDITION = (
    "On condition that nobody can link a report to its device, or two reports of one device to"
    " each other, a round of n reports would hide each of them among the others: it would be"
    " (epsilon, delta)-DP to whoever reads it, with the central epsilon of the table. That takes a"
    " shuffler that strips and mixes reports before the collector sees them. There is none here"
    " today: a report carries its device's number and MAC, and who may report in a round is known."
    " So this is no promise of this system, whose promise is the local one."
)


def shuffled_rounds() -> list[Shuffled]:
    """Return rounds in which each report has all of epsilon, as in population division."""
    return [Shuffled(epsilon, reports) for epsilon in EPSILONS for reports in ROUNDS]
