"""The tallies of many rounds at once, where they are alike. `StrataTally` makes any, one by one."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import numpy as np

from ldpstream.collector.config import StreamConfig
from ldpstream.collector.rounds.combining import noise_of
from ldpstream.collector.rounds.parts import whole
from ldpstream.collector.store.contract import Release, Round
from ldpstream.mechanisms.noise import Noise, PureNoise
from ldpstream.mechanisms.strata import Stratum
from ldpstream.mechanisms.strata_history import combine_all
from ldpstream.mechanisms.tallies import Tallies
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.history import TermsHistory
from ldpstream.protocol.terms import Selection, Terms


def tallies_at_once(
    config: StreamConfig,
    history: TermsHistory,
    rounds: Sequence[Round],
    discarded: Container[str],
    releases: Mapping[int, Release],
    noise: Noise,
) -> Tallies | None:
    """Return the tallies of counted rounds; None if they have to be made one by one.

    Rounds whose names are discarded count as empty. `noise` is that of the terms in force at the
    first one. Variances are at the frequencies that were released.
    """
    strata = _strata_of_all(rounds, history)
    if not strata or not isinstance(noise, PureNoise):
        return None
    told = strata[0]  # all levels tell the same attributes
    supports = [whole(one.support, told) for one in rounds if one.support is not None]
    kept = np.array([one.name not in discarded for one in rounds])
    reports = (kept * [one.reports for one in supports]).reshape(-1, len(strata))
    counts = np.concatenate([one.counts for one in supports]).reshape(*reports.shape, -1)
    first, times = rounds[0], np.array([one.t for one in rounds[:: len(strata)]])
    if len(strata) > 1:
        known = [Stratum(s.level, s.epsilon, s.window, noise_of(config, s)) for s in strata]
        in_slots = strata[0].selection is Selection.SLOTS
        return combine_all(times, known, counts, reports) if in_slots else None
    if any(one.epsilon_nano != first.epsilon_nano or one.t not in releases for one in rounds):
        return None
    released = np.array([releases[one.t].content["values"] for one in rounds])
    epsilon = Epsilon(first.epsilon_nano)
    return Tallies.of(times, counts[:, 0], reports[:, 0], released, noise, epsilon)


def _strata_of_all(rounds: Sequence[Round], history: TermsHistory) -> list[Terms]:
    """Return the strata of each ask, if all have the same and each has a timestamp of its own."""
    if not rounds:
        return []
    first, last = history.at(rounds[0].t), history.at(rounds[-1].t)
    asked = [history.stratum(one.name) for one in rounds if one.t == rounds[0].t]
    strata = [one for one in asked if one is not None and one.version == first.version]
    times = np.array([one.t for one in rounds])
    if (
        first.version != last.version
        or len({one.level for one in strata}) != len(asked)
        or len(times) % len(asked)
    ):
        return []
    table = times.reshape(-1, len(asked))
    alike = (table == table[:, :1]).all() and (np.diff(table[:, 0]) > 0).all()
    return strata if alike else []
