"""Judges of the ROC curves."""

from __future__ import annotations

from ldpstream.lab.figures.charts import Chart
from ldpstream.lab.reproduction.judges.predicates import ClaimVerdict
from ldpstream.lab.reproduction.studies import MONITORS


def population_finds_more_than_absorption(chart: Chart) -> ClaimVerdict:
    pairs = [
        area[mechanism] > area["lba"]
        for area in _areas(chart)
        for mechanism in MONITORS
        if mechanism != "lba"
    ]
    said = f"AUC above LBA's in {sum(pairs)} of {len(pairs)} cases; means: {_mean_areas(chart)}"
    return ClaimVerdict(2 * sum(pairs) > len(pairs), said)


def adaptive_population_finds_most(chart: Chart) -> ClaimVerdict:
    """Judge whether on most streams both LPD and LPA beat LBA, LSP and LPU."""
    won = [
        min(area["lpd"], area["lpa"]) > max(area["lba"], area["lsp"], area["lpu"])
        for area in _areas(chart)
    ]
    said = f"LPD and LPA lead on {sum(won)} of {len(won)} streams; mean AUC: {_mean_areas(chart)}"
    return ClaimVerdict(2 * sum(won) > len(won), said)


def sampling_finds_least(chart: Chart) -> ClaimVerdict:
    found = _areas(chart)
    last = sum(min(area, key=area.__getitem__) == "lsp" for area in found)
    said = f"LSP is last on {last} of {len(found)} streams; mean AUC: {_mean_areas(chart)}"
    return ClaimVerdict(2 * last > len(found), said)


def _areas(chart: Chart) -> list[dict[str, float]]:
    """Return the AUCs of each stream that has events to find."""
    return [panel.areas() for panel in chart.panels if panel.points]


def _mean_areas(chart: Chart) -> str:
    found = _areas(chart)
    return ", ".join(
        f"{name.upper()} {sum(area[name] for area in found) / len(found):.3f}" for name in MONITORS
    )
