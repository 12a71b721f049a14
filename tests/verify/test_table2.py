"""Table 2 of the paper: CFPU of the seven mechanisms on Sin and Log."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from ldpstream.lab.simulation import simulate
from ldpstream.streams.synthetic import named

TOLERANCE = 0.03
REPEATS = 10
FIXED_COST = {"lbu", "lpu", "lsp"}
"""What they ask does not depend on what they hear, so that one run says it all."""

with (Path(__file__).parent / "table2.csv").open() as file:
    TABLE = [
        (row["stream"], row["epsilon"], int(row["window"]), row["mechanism"], float(row["cfpu"]))
        for row in csv.DictReader(file)
    ]


def test_the_table_is_complete() -> None:
    assert len(TABLE) == 2 * 3 * 7


@pytest.mark.parametrize(
    ("stream", "epsilon", "window"),
    sorted({(stream, epsilon, window) for stream, epsilon, window, _, _ in TABLE}),
)
def test_every_cell_is_within_3_percent(stream: str, epsilon: str, window: int) -> None:
    """The literal algorithms with GRR at the paper's size, N=200,000 and T=800, ten repeats.

    No allowance is made for chance: the standard error of a mean of ten is at most 0.4 % of its
    cell, and the cell that is furthest off (LPA on Sin at epsilon 2, w 20: -2.3 %, standard error
    0.15 %) still has more than four standard errors to the edge. The paper prints four digits,
    which is 0.25 % of its smallest cell.
    """
    wanted = {
        mechanism: cfpu
        for name, eps, w, mechanism, cfpu in TABLE
        if (name, eps, w) == (stream, epsilon, window)
    }
    found = {
        mechanism: simulate(
            named(stream),
            mechanism,
            epsilon=epsilon,
            window=window,
            oracle="grr",
            variance="paper",
            repeats=1 if mechanism in FIXED_COST else REPEATS,
        ).mean("cfpu")
        for mechanism in wanted
    }
    assert found == pytest.approx(wanted, rel=TOLERANCE)
    assert {m: found[m] for m in FIXED_COST} == pytest.approx({m: wanted[m] for m in FIXED_COST})
