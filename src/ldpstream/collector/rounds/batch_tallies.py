"""A batch computation of the tallies of similar rounds; `StrataTally` computes any single one."""

from __future__ import annotations

from collections.abc import Container, Mapping

import numpy as np

from ldpstream.collector.config import StreamConfig
from ldpstream.collector.rounds.combining import noise_of
from ldpstream.collector.rounds.parts import whole_rows
from ldpstream.collector.store.contract import StoredRelease, TalliedRounds
from ldpstream.mechanisms.noise import Noise, PureNoise
from ldpstream.mechanisms.strata import Stratum
from ldpstream.mechanisms.strata_history import combine_all
from ldpstream.mechanisms.tallies import Tallies
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.history import TermsHistory
from ldpstream.protocol.terms import SelectionMethod, Terms


def tallies_at_once(
    config: StreamConfig,
    history: TermsHistory,
    rounds: TalliedRounds,
    discarded: Container[str],
    releases: Mapping[int, StoredRelease],
    noise: Noise,
) -> Tallies | None:
    """Return the tallies of rounds, at least one; None if they have to be made one by one.

    Rounds whose names are discarded count as empty. `noise` is that of the terms in force at the
    first one. Variances are at the frequencies that were released.
    """
    strata = _strata_of_all(rounds, history)
    if not strata or not isinstance(noise, PureNoise):
        return None
    kept = np.array([name not in discarded for name in rounds.names])
    reports = np.where(kept, np.array(rounds.reports), 0).reshape(-1, len(strata))
    counts = np.frombuffer(b"".join(rounds.counts), "<i8").astype(np.int64)
    counts = whole_rows(counts.reshape(*reports.shape, -1), strata[0])
    times = np.array(rounds.times[:: len(strata)])
    if len(strata) > 1:
        known = [Stratum(s.level, s.epsilon, s.window, noise_of(config, s)) for s in strata]
        in_slots = strata[0].selection is SelectionMethod.SLOTS
        return combine_all(times, known, counts, reports) if in_slots else None
    epsilon, *others = set(rounds.epsilons_nano)
    if others or not releases.keys() >= set(rounds.times):
        return None
    released = np.array([releases[t].content["values"] for t in rounds.times])
    return Tallies.of(times, counts[:, 0], reports[:, 0], released, noise, Epsilon(epsilon))


def _strata_of_all(rounds: TalliedRounds, history: TermsHistory) -> list[Terms]:
    """Return the strata of each ask, if all have the same and each has a timestamp of its own."""
    times = np.array(rounds.times)
    first, last = history.at(rounds.times[0]), history.at(rounds.times[-1])
    asked = [history.stratum(name) for name in rounds.names[: rounds.times.count(times[0])]]
    strata = [one for one in asked if one is not None and one.version == first.version]
    if (
        first.version != last.version
        or len({one.level for one in strata}) != len(asked)
        or len(times) % len(asked)
    ):
        return []
    table = times.reshape(-1, len(asked))
    alike = (table == table[:, :1]).all() and (np.diff(table[:, 0]) > 0).all()
    return strata if alike else []
