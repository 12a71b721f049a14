"""A lifetime cap by memoisation: every report is drawn from a permanent answer, not from the value.

L-GRR and LOLOHA (Arcolezi et al., EDBT 2023): for each value a user draws a permanent answer once,
and keeps it. Here a report randomises it again with all of epsilon, once in w timestamps: what
earlier reports reveal is the permanent answer, so that the w-event promise needs no more than that.
Whatever happens, a user's reports tell no more than all its permanent answers do.
"""

from __future__ import annotations

from math import exp

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.lab.roster import Roster
from tests.lab.promises.persistent_ranking import PersistentRanking

LABELS = 2


def memoised_releases(
    users: PersistentRanking,
    epsilon: float,
    window: int,
    permanent: float,
    rng: np.random.Generator,
) -> Floats:
    """Return the estimated share of label 1 at each timestamp, from N/w reports each."""
    kept = rng.random((LABELS, users.users)) < keeps(permanent)
    answers = np.stack([~kept[0], kept[1]])  # what a user says for good when it holds 0, or 1
    roster = Roster(users.users, window, rng)
    shares = []
    for t in range(1, users.timestamps + 1):
        asked = roster.sample(t, users.users // window)
        answer = answers[users.holds(t)[asked].astype(np.int64), asked]
        said = np.where(rng.random(len(asked)) < keeps(epsilon), answer, ~answer).mean()
        shares.append(undone(undone(said, epsilon), permanent))
    return np.array(shares)


def keeps(epsilon: float) -> float:
    """Return the probability that randomised response leaves a bit as it is."""
    return exp(epsilon) / (1 + exp(epsilon))


def undone(said: float, epsilon: float) -> float:
    """Return the share of ones before randomised response, given the share after it.

    >>> round(undone(keeps(1.0), 1.0), 9)
    1.0
    """
    return (said - (1 - keeps(epsilon))) / (2 * keeps(epsilon) - 1)


def lifetime(permanent: float) -> float:
    """Return the epsilon that all reports of a user cost together, for ever."""
    return LABELS * permanent
