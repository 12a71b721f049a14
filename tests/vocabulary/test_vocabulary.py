"""An open vocabulary: buckets are the same everywhere, figures hold, and heavy texts are found."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ldpstream.errors import Mistake
from ldpstream.lab.vocabulary import Goal, TextFleet, follow
from ldpstream.mechanisms.following import MOST_FOLLOWED, Following
from ldpstream.mechanisms.messages import Release
from ldpstream.oracles.kernels.labels import drawn_columns
from ldpstream.oracles.lab_half import ALWAYS
from ldpstream.oracles.walsh import walsh
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.refine.intervals import QUANTILE
from ldpstream.refine.selected import selected_interval, shown_interval
from ldpstream.streams.words import random_texts, shares_of, zipf_holders
from ldpstream.vocabulary import Vocabulary, evidence
from ldpstream.vocabulary.collector import without_flood
from ldpstream.vocabulary.device import LONGEST_COMPOSED, LONGEST_TEXT, bucket_of, encoded
from ldpstream.vocabulary.discovery import discover, extended
from ldpstream.vocabulary.evidence import ColumnCounts, TextEvidence
from ldpstream.vocabulary.kernels import Texts, transformed
from tests.hostile.poisoning.texts import TextAttack, poison

WORDS = Vocabulary(salt=0xC0FFEE, bits=16, prefixes=(2, 4))


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(0, 2**64 - 1))
def test_the_kernel_hashes_as_a_device_does(texts: list[bytes], seed: int) -> None:
    packed = Texts.of(texts)
    for length in (None, 3, 16):
        expected = [bucket_of(text[:length], seed, WORDS.buckets) for text in texts]
        assert packed.buckets(seed, WORDS.buckets, length).tolist() == expected


@given(st.text())
def test_every_text_has_a_bucket_in_every_group(text: str) -> None:
    assert len(encoded(text)) <= LONGEST_TEXT
    for group in WORDS.groups:
        assert 0 <= WORDS.bucket(text, group) < WORDS.buckets


def test_a_lone_surrogate_is_text_too() -> None:
    assert encoded("\ud800") == encoded("?")


def test_what_is_composed_of_a_text_is_limited() -> None:
    """Composing 100,000 marks in a row takes 20 s: a device that is late tells of its text."""
    marks = "a" + "\u0301" * LONGEST_COMPOSED
    assert encoded(marks + "\u0323") == encoded(marks)  # it would have come first
    shortest = "u\u0308\u0304" * (LONGEST_COMPOSED // 3)  # three code points for two bytes
    assert len(encoded(shortest)) == LONGEST_TEXT
    assert encoded(shortest * 2) == encoded(shortest)


def test_groups_differ_by_length_and_hash() -> None:
    assert [group.length for group in WORDS.groups] == [2, 2, 4, 4, None, None]
    assert len({WORDS.bucket("ab", group) for group in WORDS.groups}) == len(WORDS.groups)


@pytest.mark.parametrize(
    ("salt", "bits", "prefixes", "named"),
    [
        (0, 15, (), "bits"),
        (0, 25, (), "bits"),
        (-1, 16, (), "salt"),
        (0, 16, (4, 2), "prefixes"),
        (0, 16, (0, 2), "prefixes"),
        (0, 16, (2, 32), "prefixes"),
    ],
)
def test_impossible_vocabularies_are_refused(
    salt: int, bits: int, prefixes: tuple[int, ...], named: str
) -> None:
    with pytest.raises(Mistake, match=f"{named} of the vocabulary"):
        Vocabulary(salt, bits, prefixes)


def test_the_transform_in_place_is_that_of_walsh() -> None:
    columns = np.random.default_rng(1).integers(100, size=1 << 10)
    assert transformed(columns).tolist() == walsh(columns).tolist()


def test_sparse_columns_support_what_dense_ones_do() -> None:
    rng = np.random.default_rng(2)
    columns = ColumnCounts.of(rng.integers(1 << 10, size=500).astype(np.uint32))
    rows = rng.integers(1 << 10, size=7).astype(np.uint32)
    excess = transformed(columns.dense(1 << 10))[rows]
    assert columns.support(rows).counts.tolist() == ((500 + excess) // 2).tolist()


def _fleet(
    seed: int, users: int, vocabulary: Vocabulary
) -> tuple[TextFleet, list[bytes], NDArray[np.uint32]]:
    rng = np.random.default_rng(seed)
    words = random_texts(500, 6, rng)
    holders = zipf_holders(500, users, 1.0, rng)
    fleet = TextFleet(Texts.of(words), holders, vocabulary, Epsilon.of(3), 5, rng)
    return fleet, words, holders


def test_figures_are_unbiased_with_the_stated_error() -> None:
    """50 texts, each with an error below 5.6 standard errors but for chance 1e-6."""
    fleet, words, holders = _fleet(3, 20_000, WORDS)
    truth = shares_of(words, holders)
    rounds = [fleet.report(t) for t in range(5)]
    pooled = [ColumnCounts.summed(part) for part in zip(*rounds, strict=True)]
    figures = TextEvidence(WORDS, Epsilon.of(3), pooled).figures(Texts.of(words[:50]))
    shares = np.array([truth[word] for word in words[:50]])
    # Who is in the groups of whole texts is a sample of the fleet: its variance comes on top.
    errors = np.sqrt(figures.errors**2 + shares / (20_000 / 3))
    assert np.abs((figures.shares - shares) / errors).max() < 5.6


def test_a_question_about_few_texts_needs_no_transform(monkeypatch: pytest.MonkeyPatch) -> None:
    """At b = 24 with 7 prefixes it would hold 1 GB, and take many seconds."""
    rng, texts = np.random.default_rng(8), Texts.of([b"a", b"rome", b""])
    reports = [rng.integers(1, 1 << 16, 500).astype(np.uint32) for _ in WORDS.groups]
    groups = [ColumnCounts.of(one) for one in reports]
    asked, transforms = (
        TextEvidence(WORDS, Epsilon.of(2), groups),
        TextEvidence(WORDS, Epsilon.of(2), groups),
    )
    transforms.figures(Texts.of([b"%d" % number for number in range(3000)]))
    expected, _ = transforms.measured(texts, 1, 1000)
    monkeypatch.setattr(evidence, "transformed", None)
    assert asked.measured(texts, 1, 1000)[0] == pytest.approx(expected)


def test_heavy_texts_are_found_from_an_empty_list() -> None:
    fleet, words, holders = _fleet(4, 100_000, WORDS)
    following = Following(WORDS, Epsilon.of(3), 5, 100_000)
    truth = shares_of(words, holders)
    found = follow(fleet, following, 15, truth, Goal(heavy=0.03, light=0.005, longest=6))
    assert (found.missed, found.false) == (0, 0)
    assert found.found >= 3


def test_a_candidate_is_followed_without_discovery() -> None:
    vocabulary = Vocabulary(salt=5, bits=16)
    fleet, words, _ = _fleet(5, 50_000, vocabulary)
    following = Following(vocabulary, Epsilon.of(3), 5, 50_000, candidates=[*words[:5], b"nobody"])
    for t in range(1, 11):
        listed = following.step(t, fleet.report(t))
    assert words[0] in listed.texts
    assert b"nobody" not in listed.texts
    assert 0 < listed.rest < 1


def test_what_only_shares_a_bucket_is_let_go_when_the_hash_functions_disagree() -> None:
    """While reports were few it could not be told from a text of half that share."""
    vocabulary, rng = Vocabulary(5, 16, (2, 4)), np.random.default_rng(12)
    held, group = b"rome", vocabulary.groups[-1]
    bucket = bucket_of(held, group.seed, vocabulary.buckets)
    others = Texts.of([b"%06d" % number for number in range(300_000)])
    shared = others[np.flatnonzero(others.buckets(group.seed, vocabulary.buckets) == bucket)[0]]
    holders = np.zeros(20_000, np.uint32)
    fleet = TextFleet(Texts.of([held]), holders, vocabulary, Epsilon.of(4), 4, rng)
    following = Following(vocabulary, Epsilon.of(4), 4, 20_000)
    for t in range(1, 9):
        following.step(t, fleet.report(t))
    following._follow((b"", shared, held))
    assert set(following.step(9, fleet.report(9)).texts) == {held}
    assert shared.hex() not in following.save()["texts"]


@pytest.mark.parametrize("above", [0.0, 0.02, 0.06, 0.5, 9.0])
def test_an_interval_for_readers_contains_its_figure(above: float) -> None:
    value, error = np.array([0.04 + above * 0.01]), np.array([0.01])
    low, high = shown_interval(value, error, np.array([0.04]))
    assert low <= value <= high
    narrow = selected_interval(value, error, np.array([0.04]))
    assert (narrow[1] < value) == (above < 0.065)  # as much as it is widened by


def test_the_interval_of_a_text_far_above_the_level_is_that_of_the_filter() -> None:
    """A variance that counts tails beyond the interval decides what is listed, and no more."""
    following = Following(WORDS, Epsilon.of(1), 5, 1000)
    following._follow((b"", b"a", b"b"))
    mechanism, values, reach = following._mechanism, np.array([0.0, 0.5, 0.05]), 0.01 * QUANTILE
    assert mechanism is not None
    bounds = values - reach, values + reach
    heavy_tailed = Release(1, values, np.full(3, 0.02**2), fresh=True, bounds=bounds)
    mechanism.state = replace(mechanism.state, release=heavy_tailed)
    listed = following._listed(1, fresh=True)
    assert listed.texts == (b"a",)  # b is above 4.5 of one error, and below 4.5 of the other
    assert np.allclose(listed.low, 0.5 - reach)
    assert np.allclose(listed.high, 0.5 + reach)


def test_without_reports_nothing_is_listed() -> None:
    following = Following(WORDS, Epsilon.of(1), 5, 1000, candidates=[b"a"])
    for t in range(1, 8):
        listed = following.step(t, [ColumnCounts.none()] * len(WORDS.groups))
    assert listed.texts == ()
    assert listed.rest == 1


def test_extensions_are_what_utf8_allows() -> None:
    texts = extended(["ü".encode()[:1]])
    found = {texts[place] for place in range(len(texts))}
    assert "ü".encode() in found
    assert "üx".encode() in found
    assert b"\xc3x" not in found


@pytest.mark.slow
@pytest.mark.parametrize("truth", [0.006, 0.01, 0.02])
def test_intervals_hold_among_the_shown(truth: float) -> None:
    """20,000 shown estimates: the share inside is within .9 +- .015, 7 standard deviations."""
    rng = np.random.default_rng(6)
    errors = np.full(20_000, 0.002)
    shown = np.concatenate([rng.normal(truth, 0.002, 400_000) for _ in range(40)])
    shown = shown[shown > 4.5 * 0.002][:20_000]
    low, high = selected_interval(shown, errors[: len(shown)], 4.5 * errors[: len(shown)])
    assert len(shown) == 20_000
    assert abs(np.mean((low <= truth) & (truth <= high)) - 0.9) < 0.015


@pytest.mark.parametrize("column", [0, 77], ids=["all texts", "half of all texts"])
def test_fakes_cannot_raise_many_texts_at_once(column: int) -> None:
    """Column 0 supports every text; 5 % of fakes would raise each by more than 5 %."""
    rng = np.random.default_rng(6)
    honest = rng.integers(1 << 16, size=100_000).astype(np.uint32)
    flooded = ColumnCounts.of(np.append(honest, np.full(5_000, column, np.uint32)))
    texts = Texts.of([b"nobody", b"has", b"these"])
    vocabulary = Vocabulary(salt=5, bits=16)
    raised, kept = (
        TextEvidence(vocabulary, Epsilon.of(2), [one] * 2).figures(texts).shares
        for one in (flooded, without_flood(flooded, 1 << 16))
    )
    assert (np.abs(raised) > 0.04).any()
    assert (np.abs(kept) < 0.02).all()  # 7 standard errors


def test_honest_reports_are_no_flood() -> None:
    """All hold one text, so that its columns are reported as often as any ever are."""
    reports = drawn_columns(np.full(50_000, 7, np.uint32), 1 << 16, ALWAYS, np.uint64(3))
    honest = ColumnCounts.of(reports[reports != 0].astype(np.uint32))
    kept = without_flood(honest, 1 << 16)
    assert (kept.places.tolist(), kept.counts.tolist()) == (
        honest.places.tolist(),
        honest.counts.tolist(),
    )


@pytest.mark.parametrize("named", [False, True], ids=["found", "named"])
def test_fakes_that_agree_on_a_column_do_not_have_every_other_text_followed(named: bool) -> None:
    """Any column supports half of all texts, and one in each hash function a quarter."""
    candidates = [b"%05d" % number for number in range(20_000)] if named else []
    vocabulary = Vocabulary(salt=5, bits=16, prefixes=() if named else (2,))
    following = Following(vocabulary, Epsilon.of(2), 4, 1000, candidates)
    columns = [np.full(200, 77 + group.number, np.uint32) for group in vocabulary.groups]
    following.step(1, [ColumnCounts.of(one) for one in columns])
    assert 100 < len(following.save()["texts"]) <= 1 + MOST_FOLLOWED


def test_what_only_fakes_report_since_it_is_no_text_is_not_found() -> None:
    """It would be shown as the same three marks each time, under one name."""
    rng, vocabulary = np.random.default_rng(7), Vocabulary(5, 16, (1,))
    held = [b"\xe0\x80\x80", b"\xe0\x80\x81", b"\xed\xa0\x80", b"\xc2\x9b", "€".encode()]
    holders = rng.integers(len(held), size=100_000).astype(np.uint32)
    fleet = TextFleet(Texts.of(held), holders, vocabulary, Epsilon.of(4), 1, rng)
    assert discover(TextEvidence(vocabulary, Epsilon.of(4), fleet.report(1))) == ["€".encode()]


@pytest.mark.parametrize("half", [0, 1])
def test_fakes_in_one_group_cannot_hide_what_many_hold(half: int) -> None:
    """With 4 % of fakes there, the hash functions differ by 9 standard errors; each sees 40 %."""
    rng, epsilon, vocabulary = np.random.default_rng(4), Epsilon.of(2), Vocabulary(5, 16)
    holders = rng.choice(2, p=[0.4, 0.6], size=200_000).astype(np.uint32)
    held = Texts.of([b"rome", b"paris"])
    groups = TextFleet(held, holders, vocabulary, epsilon, 1, rng).report(1)
    row = bucket_of(b"rome", vocabulary.groups[half].seed, vocabulary.buckets) + 1
    columns = rng.integers(1, 1 << 16, size=8000).astype(np.uint32)
    fakes = columns[np.bitwise_count(columns & np.uint32(row)) % 2 == 0]
    groups[half] += ColumnCounts.of(fakes)
    figures = TextEvidence(vocabulary, epsilon, groups).figures(held)
    assert figures.agree.all()
    assert (figures.scores > 50).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("attack", "moved"),
    [(TextAttack.LIE, True), (TextAttack.SUPPORT, True), (TextAttack.FLOOD, False)],
)
def test_a_fake_has_the_gain_of_its_oracle_and_no_more(attack: TextAttack, moved: bool) -> None:
    found = poison(attack, 0.1, users=30_000, epsilon="3", window=4, seed=9)
    assert (found.expected > 0.09) == moved
    # 5 standard errors of three windows of a third of the fleet, and of who is in the groups
    assert abs(found.figure - found.expected) < 0.04
    assert found.listed == moved
    assert found.false == 0


@pytest.mark.parametrize(("first", "expected"), [(4, None), (8, 40_000)])
def test_a_following_that_is_saved_and_recalled_goes_on_as_it_was(
    first: int, expected: int | None
) -> None:
    """Also with another population, which is expected in the one and in the other."""
    fleet, *_ = _fleet(8, 30_000, WORDS)
    rounds = [(t, fleet.report(t)) for t in range(1, 12)]
    whole = Following(WORDS, Epsilon.of(3), 5, 30_000)
    for t, groups in rounds[:first]:
        whole.step(t, groups)
    again = Following(WORDS, Epsilon.of(3), 5, 30_000)
    again.restore(json.loads(json.dumps(whole.save())))
    again.recall(rounds[max(first - whole.reach, 0) : first])
    for one in (whole, again):
        if expected is not None:
            one.expect(expected)
    for t, groups in rounds[first:]:
        left, right = whole.step(t, groups), again.step(t, groups)
        assert left.texts == right.texts
        assert left.shares.tolist() == right.shares.tolist()
        assert left.rest_interval == right.rest_interval
