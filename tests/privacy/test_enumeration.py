"""The enumeration that exact tests of privacy rest on, against distributions known otherwise."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import permutations
from math import comb

from hypothesis import given
from hypothesis import strategies as st

from ldpstream.privacy.enumeration import distribution
from ldpstream.privacy.randomness import Source, SystemSource

coins = st.integers(1, 50).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total)))


@given(coins)
def test_a_coin_has_its_probability(coin: tuple[int, int]) -> None:
    favour, total = coin
    outcomes = distribution(lambda source: source.coin(favour, total))
    assert sum(outcomes.values()) == 1
    assert outcomes.get(True, Fraction(0)) == Fraction(favour, total)


@given(st.integers(1, 40))
def test_a_die_is_fair(bound: int) -> None:
    outcomes = distribution(lambda source: source.below(bound))
    assert outcomes == {face: Fraction(1, bound) for face in range(bound)}


@given(coins, st.integers(0, 7))
def test_independent_coins_sum_to_a_binomial(coin: tuple[int, int], tosses: int) -> None:
    favour, total = coin
    p = Fraction(favour, total)
    outcomes = distribution(lambda source: sum(source.coin(favour, total) for _ in range(tosses)))
    for heads in range(tosses + 1):
        expected = comb(tosses, heads) * p**heads * (1 - p) ** (tosses - heads)
        assert outcomes.get(heads, Fraction(0)) == expected


def test_draws_may_depend_on_draws() -> None:
    """Rejection, in effect: a second die only after a six."""

    def draw(source: Source) -> int:
        first = source.below(6)
        return first if first < 5 else 5 + source.below(2)

    sixth, twelfth = Fraction(1, 6), Fraction(1, 12)
    assert distribution(draw) == {**dict.fromkeys(range(5), sixth), 5: twelfth, 6: twelfth}


def test_a_shuffle_is_uniform() -> None:
    def shuffle(source: Source) -> tuple[int, ...]:
        cards = [0, 1, 2, 3]
        return tuple(cards.pop(source.below(len(cards))) for _ in range(4))

    assert distribution(shuffle) == dict.fromkeys(permutations(range(4)), Fraction(1, 24))


def test_the_system_source_follows_the_enumeration() -> None:
    """1,000 tosses; beyond 6.5 standard deviations a fair system falls once in 10^10 runs."""
    source = SystemSource()
    tosses = Counter(source.coin(1, 4) + 2 * source.below(3) for _ in range(1000))
    outcomes = distribution(lambda source: source.coin(1, 4) + 2 * source.below(3))
    for outcome, share in outcomes.items():
        spread = float(1000 * share * (1 - share)) ** 0.5
        assert abs(tosses[outcome] - 1000 * share) < 6.5 * spread
