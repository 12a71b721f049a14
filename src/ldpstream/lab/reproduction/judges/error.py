"""Judges of the figures that show an error."""

from __future__ import annotations

from ldpstream.lab.figures.charts import Chart, Panel
from ldpstream.lab.reproduction.judges.predicates import (
    POPULATION,
    SLOW,
    ClaimVerdict,
    all_of,
    below_on_average,
    ends,
    geometric_mean,
    panel_of,
    usually_below,
)
from ldpstream.lab.reproduction.studies import SEVEN
from ldpstream.mechanisms.registry import CLASSIC


def adaptive_beats_uniform(chart: Chart) -> ClaimVerdict:
    return all_of(*(usually_below(chart, better, "lbu") for better in ("lbd", "lba")))


def adaptive_population_beats_uniform(chart: Chart) -> ClaimVerdict:
    return all_of(*(usually_below(chart, better, "lpu") for better in ("lpd", "lpa")))


def slow_streams_are_ordered(chart: Chart) -> ClaimVerdict:
    """Judge whether LPA <= LPD < LPU on slow streams (docs/paper-corrections.md)."""
    return all_of(
        below_on_average(chart, "lpa", "lpd", SLOW), below_on_average(chart, "lpd", "lpu", SLOW)
    )


def sampling_is_best_when_slow_but_varies(chart: Chart) -> ClaimVerdict:
    slow = all_of(*(below_on_average(chart, "lsp", other, SLOW) for other in ("lpd", "lpa")))
    against = [_mean_ratio(panel, "lsp", "lpa") for panel in chart.panels]
    said = f"LSP / LPA varies from {min(against):.2f} to {max(against):.2f} over the streams"
    return all_of(slow, ClaimVerdict(max(against) >= 2 * min(against), said))


def distribution_can_lose_at_large_windows(chart: Chart) -> ClaimVerdict:
    last = {panel.title: ends(panel, "lbd")[1] / ends(panel, "lbu")[1] for panel in chart.panels}
    worst = max(last, key=lambda title: last[title])
    said = f"LBD / LBU at the largest w: at most {last[worst]:.2f}, on {worst}"
    return ClaimVerdict(last[worst] > 1, said)


def absorption_never_loses_at_large_windows(chart: Chart) -> ClaimVerdict:
    ratios = [ends(panel, "lba")[1] / ends(panel, "lbu")[1] for panel in chart.panels]
    said = f"LBA / LBU at the largest w: {min(ratios):.2f} to {max(ratios):.2f}"
    return ClaimVerdict(max(ratios) < 1, said)


def advantage_grows_with_the_window(chart: Chart) -> ClaimVerdict:
    return all_of(_gain(chart, "lpd"), _gain(chart, "lpa"))


def _gain(chart: Chart, mechanism: str) -> ClaimVerdict:
    pairs = [(ends(panel, "lpu"), ends(panel, mechanism)) for panel in chart.panels]
    first, last = (
        geometric_mean([uniform[end] / adaptive[end] for uniform, adaptive in pairs])
        for end in (0, 1)
    )
    said = f"LPU / {mechanism.upper()}: {first:.2f} at the smallest w, {last:.2f} at the largest"
    return ClaimVerdict(last > first, said)


def sampling_crosses_over(chart: Chart) -> ClaimVerdict:
    """Judge whether LSP is best at the two least Q, and worse than LPD and LPA at the largest."""
    panel = panel_of(chart, "LNS")
    lines = {mechanism: panel.values(mechanism) for mechanism in SEVEN}
    steps = sorted(lines["lsp"])
    best = all(min(lines, key=lambda name: lines[name][step]) == "lsp" for step in steps[:2])
    last = {name: lines[name][steps[-1]] for name in ("lsp", "lpd", "lpa")}
    said = f"LSP {'is' if best else 'is not'} best of all at √Q = {steps[0]:g} and {steps[1]:g}; "
    said += f"at {steps[-1]:g} " + ", ".join(f"{k.upper()} {v:.3g}" for k, v in last.items())
    return ClaimVerdict(best and last["lsp"] > max(last["lpd"], last["lpa"]), said)


def adaptive_is_slightly_worse_when_wild(chart: Chart) -> ClaimVerdict:
    """Judge whether LPD and LPA are above LPU at the largest Q, by less than half of it."""
    panel = panel_of(chart, "LNS")
    uniform = ends(panel, "lpu")[1]
    ratios = [ends(panel, mechanism)[1] / uniform for mechanism in ("lpd", "lpa")]
    said = f"LPD / LPU {ratios[0]:.2f}, LPA / LPU {ratios[1]:.2f} at the largest Q"
    return ClaimVerdict(all(1 < ratio < 1.5 for ratio in ratios), said)


def adaptive_is_better_when_steady(chart: Chart) -> ClaimVerdict:
    panel = panel_of(chart, "Sin")
    uniform = ends(panel, "lpu")[0]
    ratios = [ends(panel, mechanism)[0] / uniform for mechanism in ("lpd", "lpa")]
    said = f"LPD / LPU {ratios[0]:.2f}, LPA / LPU {ratios[1]:.2f} at the smallest b"
    return ClaimVerdict(max(ratios) < 1, said)


def sampling_is_best_slow_and_worst_fast(chart: Chart) -> ClaimVerdict:
    """Judge whether LSP beats LPU, LPD and LPA at the least b, and loses to all at the largest."""
    panel = panel_of(chart, "Sin")
    first, last = (
        {name: ends(panel, name)[end] for name in ("lsp", *POPULATION)} for end in (0, 1)
    )
    said = "; ".join(
        f"{where} b: " + ", ".join(f"{name.upper()} {y:.3g}" for name, y in line.items())
        for where, line in (("smallest", first), ("largest", last))
    )
    return ClaimVerdict(
        min(first, key=first.__getitem__) == max(last, key=last.__getitem__) == "lsp", said
    )


def _mean_ratio(panel: Panel, left: str, right: str) -> float:
    lefts, rights = panel.values(left), panel.values(right)
    return geometric_mean([lefts[x] / rights[x] for x in lefts.keys() & rights.keys()])


def population_suits_others(chart: Chart) -> ClaimVerdict:
    """Judge whether mechanisms of others usually err less under population division."""
    return all_of(*(usually_below(chart, name, f"{name}-budget") for name in CLASSIC))
