"""What a breakdown remembers, merges and shows; its tallies are made in tests of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.mechanisms.breakdown import Breakdown, Group, merged
from ldpstream.mechanisms.mechanism import Mechanism
from ldpstream.mechanisms.messages import Release, Tally
from ldpstream.mechanisms.queries import HISTOGRAM
from ldpstream.mechanisms.registry import build
from ldpstream.mechanisms.settings import Settings
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.attributes import OTHER, Attribute, Attributes

ATTRIBUTES = Attributes((Attribute("country", ("de", "fr")),))
DE, FR, REST = ATTRIBUTES.groups


def make(population: int) -> Mechanism:
    return build("lpf", Settings(2, max(population, 20), Epsilon.of(1), 10, intervals=True))


def breakdown() -> Breakdown:
    return Breakdown(ATTRIBUTES, HISTOGRAM, 10_000, make)


def tally(share: float, reports: int = 500) -> Tally:
    return Tally(np.array([share, 1 - share]), np.full(2, 1e-3), reports)


def lived(parts: Breakdown, until: int, heard: dict[Group, int], since: int = 1) -> None:
    parts.expect(heard)
    for t in range(since, until + 1):
        parts.step(t, {group: tally(0.2 + 0.001 * t) for group in heard})


def test_a_state_comes_back_as_it_was() -> None:
    heard = {DE: 6000, FR: 4000}
    whole, before, after = breakdown(), breakdown(), breakdown()
    lived(whole, 20, heard)
    lived(before, 9, heard)
    after.adopt(before.save())
    lived(after, 20, heard, since=10)
    total = Release(20, np.array([0.3, 0.7]), np.full(2, 1e-5), fresh=True)
    one, other = whole.shown(total, heard), after.shown(total, heard)
    assert [part.to_json() for part in one] == [part.to_json() for part in other]


def test_a_population_follows_the_group_when_it_is_far_off() -> None:
    parts = breakdown()
    sizes: list[int] = []
    for german in (6000, 6300, 8000, 8100):
        parts.expect({DE: german, FR: 10_000 - german})
        sizes.append(parts.noise_of(DE).population)
    assert sizes == [6000, 6000, 8000, 8000]


def test_groups_that_were_never_heard_are_not_there() -> None:
    parts = breakdown()
    lived(parts, 3, {DE: 100})
    assert DE in parts
    assert FR not in parts
    total = Release(3, np.array([0.3, 0.7]), np.full(2, 1e-5), fresh=True)
    assert [part.value for part in parts.shown(total, {DE: 100})] == ["de"]


def test_groups_do_not_add_up_without_one_that_was_heard_and_not_tallied() -> None:
    """After terms that tell less, and until the first tally under them, the others are unknown."""
    parts = breakdown()
    lived(parts, 3, {DE: 100})
    total = Release(3, np.array([0.3, 0.7]), np.full(2, 1e-5), fresh=True)
    assert parts.shown(total, {DE: 100, REST: 100}) == []


def test_what_is_merged_is_the_mean_of_what_was_shown() -> None:
    parts = breakdown()
    heard = {DE: 600, FR: 300, REST: 100}
    parts.expect(heard)
    for t in range(1, 30):
        parts.step(t, {DE: tally(0.1), FR: tally(0.5), REST: tally(0.9)})
    total = Release(29, np.array([0.3, 0.7]), np.full(2, 1e-5), fresh=True)
    one_by_one = {part.value: part for part in parts.shown(total, heard)}
    german, rest = parts.shown(total, heard, least=400)
    assert (rest.value, rest.merged, rest.devices) == (OTHER, ("fr", OTHER), 400)
    assert german.release.values.tolist() == one_by_one["de"].release.values.tolist()
    mean: Any = (3 * one_by_one["fr"].release.values + one_by_one[OTHER].release.values) / 4
    assert rest.release.values == pytest.approx(mean)
    for release in (german.release, rest.release):
        low, high = release.interval
        assert ((low <= release.values) & (release.values <= high)).all()


@given(
    st.dictionaries(st.sampled_from(["a", "b", "c", "d", OTHER]), st.integers(1, 1000), min_size=1),
    st.integers(1, 2000),
)
def test_no_group_is_shown_that_is_too_small(sizes: dict[str, int], least: int) -> None:
    together = merged(sizes, least)
    alone = [sizes[value] for value in sizes if value not in together]
    assert all(size >= least for size in alone)
    if together:
        assert sum(sizes[value] for value in together) >= least or not alone
        assert OTHER not in sizes or OTHER in together
    else:
        assert min(sizes.values()) >= least
