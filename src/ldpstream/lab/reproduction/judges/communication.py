"""Judges of what mechanisms cost in reports."""

from __future__ import annotations

from ldpstream.lab.figures.charts import Chart
from ldpstream.lab.reproduction.judges.predicates import (
    BUDGET,
    POPULATION,
    ClaimVerdict,
    all_of,
    falls,
    panel_of,
    rises,
    stays,
)
from ldpstream.lab.reproduction.table2 import Table2

NEAR = 3.0
"""Per cent: how near to the printed Table 2 ours must come (docs/paper-corrections.md)."""
STEADY = 0.05
"""A CFPU that changes by less than this share "keeps the same"."""


def budget_sends_at_least_one(chart: Chart) -> ClaimVerdict:
    lines = {name: [p.y for panel in chart.panels for p in panel.line(name)] for name in BUDGET}
    said = ", ".join(f"{name.upper()} {min(ys):.4g} to {max(ys):.4g}" for name, ys in lines.items())
    exact = set(lines["lbu"]) == {1.0}
    return ClaimVerdict(exact and all(min(lines[name]) >= 1 for name in ("lbd", "lba")), said)


def one_report_a_window_or_less(chart: Chart) -> ClaimVerdict:
    """Judge whether LSP and LPU send 1/w of a report per timestamp, and LPD and LPA less."""
    panel = panel_of(chart, "window")
    uniform = [panel.values(name)[w] * w for name in ("lsp", "lpu") for w in panel.values(name)]
    adaptive = [panel.values(name)[w] * w for name in ("lpd", "lpa") for w in panel.values(name)]
    said = f"CFPU x w: LSP, LPU {min(uniform):.3f} to {max(uniform):.3f}; "
    said += f"LPD, LPA {min(adaptive):.3f} to {max(adaptive):.3f}"
    # LSP reports once in every window, also in a last part of one: a few per cent.
    near = all(abs(share - 1) < STEADY for share in uniform)
    return ClaimVerdict(near and max(adaptive) < min(uniform), said)


def fluctuation_costs_population_only(chart: Chart) -> ClaimVerdict:
    return all_of(
        rises(chart, ("lpd", "lpa"), "fluctuation"),
        stays(chart, ("lbd", "lba"), STEADY, "fluctuation"),
        stays(chart, ("lbu", "lsp", "lpu"), 0.0, "fluctuation"),
    )


def budget_costs_population_only(chart: Chart) -> ClaimVerdict:
    return all_of(rises(chart, ("lpd", "lpa"), "privacy"), stays(chart, BUDGET, STEADY, "privacy"))


def windows_save_reports(chart: Chart) -> ClaimVerdict:
    return all_of(
        falls(chart, ("lbd", "lba"), "window"), falls(chart, ("lsp", *POPULATION), "window")
    )


def table2_is_near(table: Table2) -> ClaimVerdict:
    synthetic = [cell for cell in table.printed() if cell.stream in ("sin", "log")]
    if not synthetic:
        return ClaimVerdict(False, "no cell of the paper was run")
    worst = max(synthetic, key=lambda cell: abs(cell.deviation or 0))
    said = f"{len(synthetic)} cells, largest deviation {worst.deviation:+.2f} % "
    said += (
        f"({worst.mechanism.upper()} on {worst.stream}, ε = {worst.epsilon:g}, w = {worst.window})"
    )
    return ClaimVerdict(abs(worst.deviation or 0) <= NEAR, said)


def population_sends_less(table: Table2) -> ClaimVerdict:
    """Judge whether in every column LPD and LPA are below LPU, which is below LBU, LBD and LBA."""
    columns: dict[tuple[float, int, str], dict[str, float]] = {}
    for cell in table.cells:
        column = columns.setdefault((cell.epsilon, cell.window, cell.stream), {})
        column[cell.mechanism] = cell.ours
    good = [
        max(column["lpd"], column["lpa"]) < column["lpu"] < min(column[name] for name in BUDGET)
        for column in columns.values()
    ]
    saved = [1 - column["lpa"] / column["lpu"] for column in columns.values()]
    said = (
        f"so in {sum(good)} of {len(good)} columns; LPA saves {min(saved):.0%} to {max(saved):.0%}"
    )
    return ClaimVerdict(all(good), said + " of LPU's reports")
