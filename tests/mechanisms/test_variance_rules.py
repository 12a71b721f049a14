"""The two rules to decide by, and pooling (docs/paper-corrections.md, 2, 3 and 15)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ldpstream.mechanisms.adaptive import Adaptive
from ldpstream.mechanisms.messages import Ask, Purpose, Tally
from ldpstream.mechanisms.noise import NoiseModel, VarianceRule
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from tests.mechanisms.driving import Case, take

E = math.e
LABELS, USERS = 117, 1000


def noise(rule: VarianceRule, labels: int = LABELS) -> NoiseModel:
    return NoiseModel(Oracle.GRR, labels, USERS, rule)


def test_the_paper_rule_is_the_printed_formula() -> None:
    given = noise(VarianceRule.PAPER).variance(Epsilon.of(1), 50, concentration=0.3)
    printed = (LABELS - 2 + E) / (50 * (E - 1) ** 2) + (LABELS - 2) / (50 * (E - 1))
    assert given == pytest.approx(printed, rel=1e-12)


def test_the_corrected_rule_averages_over_the_bins_and_counts_sampling() -> None:
    """docs/paper-corrections.md, 2 and 3; the finite-population factor is (N-n)/(N-1)."""
    given = noise(VarianceRule.CORRECTED).variance(Epsilon.of(1), 50, concentration=0.3)
    randomiser = (LABELS - 2 + E) / (50 * (E - 1) ** 2) + (LABELS - 2) / (LABELS * 50 * (E - 1))
    sampling = (1 - 0.3) / LABELS / 50 * (USERS - 50) / (USERS - 1)
    assert given == pytest.approx(randomiser + sampling, rel=1e-12)


def test_the_rules_agree_on_two_labels_when_everyone_reports() -> None:
    for epsilon in (Epsilon.of("0.025"), Epsilon.of(1), Epsilon.of(8)):
        paper, corrected = (
            noise(rule, labels=2).variance(epsilon, USERS, concentration=0.9)
            for rule in (VarianceRule.PAPER, VarianceRule.CORRECTED)
        )
        assert corrected == pytest.approx(paper, rel=1e-12)


def test_sampling_variance_has_the_share_that_the_notes_state() -> None:
    """d=2, f=.075: about 8 % of V at eps=1, 38 % at eps=2, for small samples."""
    concentration = 0.075**2 + 0.925**2
    for epsilon, share in ((1, 0.08), (2, 0.38)):
        paper, corrected = (
            NoiseModel(Oracle.GRR, 2, 200_000, rule).variance(
                Epsilon.of(epsilon), 100, concentration
            )
            for rule in (VarianceRule.PAPER, VarianceRule.CORRECTED)
        )
        assert corrected / paper - 1 == pytest.approx(share, abs=0.01)


def test_what_is_released_does_not_depend_on_the_rule() -> None:
    values = np.array([0.2, 0.8])
    tally = Tally(values, np.full(2, 1e-6), 100)
    for rule in VarianceRule:
        moment = take(Case("lpu", variance=rule).build().step(1), 1, lambda _: tally)
        assert moment.release is not None
        assert moment.release.values is values


def test_pooling_weighs_the_two_tallies_by_their_variances() -> None:
    probe = Tally(np.array([0.2, 0.8]), np.array([3e-4, 3e-4]), 500)
    fresh = Tally(np.array([0.6, 0.4]), np.array([1e-4, 1e-4]), 1000)

    def answer(ask: Ask) -> Tally:
        return probe if ask.purpose is Purpose.DISSIMILARITY else fresh

    release = take(Case("lpa", pool=True).build().step(1), 1, answer).release
    assert release is not None
    assert release.values == pytest.approx([0.5, 0.5])
    assert release.variance == pytest.approx([0.75e-4, 0.75e-4])


@pytest.mark.parametrize("name", ["lpa", "lpd"])
def test_pooling_lowers_the_expected_error_to_that_of_all_reports_together(name: str) -> None:
    """docs/paper-corrections.md, 15: n = N_pp + N_1, in err as well."""
    mechanism = Case(name, users=10_000, pool=True).build()
    assert isinstance(mechanism, Adaptive)
    probe = Tally(np.array([0.2, 0.8]), np.ones(2), 500)
    alone = NoiseModel(Oracle.GRR, 2, 10_000, VarianceRule.PAPER)
    assert mechanism.error(probe, 1500) == pytest.approx(
        alone.variance(Epsilon.of(1), 2000, concentration=1.0), rel=1e-12
    )


def test_the_dissimilarity_may_be_negative() -> None:
    """docs/paper-corrections.md, 8."""
    mechanism = Case("lpa").build()
    assert isinstance(mechanism, Adaptive)
    assert mechanism.dissimilarity(Tally(np.zeros(2), np.ones(2), 500)) < 0
