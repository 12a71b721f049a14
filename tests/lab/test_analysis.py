"""The paper's formulas, worked by hand, and what simulations give in their place."""

from __future__ import annotations

import numpy as np
import pytest

from ldpstream.lab.reproduction.analysis.exhibit import FormulaSummary
from ldpstream.lab.reproduction.analysis.formulas import communication, publication_variance
from ldpstream.lab.reproduction.analysis.measured import dissimilarity_bias, measured
from ldpstream.mechanisms.noise import VarianceRule
from ldpstream.mechanisms.settings import RunOptions
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.streams.synthetic import sin
from tests.lab.ideal import analysis

LITERAL = RunOptions(oracle=Oracle.GRR, variance=VarianceRule.PAPER)


def simple(share_of_epsilon: float, share_of_users: float) -> float:
    """A variance that tells which of its two shares was divided."""
    return 1 / share_of_epsilon**2 if share_of_users == 1 else 10 / share_of_users


class TestFormulas:
    @pytest.mark.parametrize(
        ("mechanism", "m", "expected"),
        [
            ("lsp", 1, 1.0),
            ("lbu", 20, 400.0),
            ("lpu", 20, 200.0),
            ("lbd", 2, (4**2 + 8**2) / 2),
            ("lbd", 1.5, (4**2 + 8**2 / 2) / 1.5),
            ("lpd", 2, 10 * (4 + 8) / 2),
            ("lba", 5, 16**2.0),  # (20 + 5) / (4 * 20 * 5) = 1/16
            ("lpa", 5, 160.0),
        ],
    )
    def test_the_variance_of_publications(self, mechanism: str, m: float, expected: float) -> None:
        assert publication_variance(mechanism, m, 20, simple) == pytest.approx(expected)

    def test_communication(self) -> None:
        figures = [communication(name, 4, 20) for name in ("lbu", "lbd", "lsp", "lpd", "lpa")]
        assert figures == pytest.approx([1, 1.2, 0.05, 0.05 - 0.05 / 32, 0.025 + 24 / 1600])


class TestSimulations:
    def test_lsp_publishes_once_in_a_window_and_errs_as_predicted(self) -> None:
        stream = sin(users=20_000, timestamps=2_000)
        settings = LITERAL.at(2, 20_000, Epsilon.of(1), 20)
        found = measured(stream, "lsp", settings, np.random.default_rng(1))
        assert found.m == 1
        # 100 publications: the mean of their squared errors has a standard error of 14 %, and
        # six of them is a false alarm in a billion.
        assert found.mse == pytest.approx(found.used_variance + found.data_term, rel=0.85)
        assert found.cfpu == pytest.approx(1 / 20)

    def test_sampling_biases_the_dissimilarity_by_its_own_variance(self) -> None:
        settings = LITERAL.at(2, 20_000, Epsilon.of(3), 5)
        frequencies = np.array([0.5, 0.5])
        bias, error, sampling = dissimilarity_bias(
            frequencies, settings, sampled=True, draws=3_000, seed=2
        )
        assert sampling > 10 * error
        assert abs(bias - sampling) < 6 * error
        fair, error, _ = dissimilarity_bias(
            frequencies, settings, sampled=False, draws=3_000, seed=2
        )
        assert abs(fair) < 6 * error


def test_a_summary_has_the_spread_of_the_ratios() -> None:
    one = analysis().comparisons[-1]
    summary = FormulaSummary.of([one])
    assert (summary.least, summary.median, summary.most, summary.settings) == (1, 1, 1, 1)
