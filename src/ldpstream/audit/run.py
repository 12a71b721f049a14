"""The whole audit: the exact part, then the attack."""

from __future__ import annotations

from collections.abc import Callable

from ldpstream.audit import exact
from ldpstream.audit.empirical import AttackSeries, Tell, all_trials
from ldpstream.audit.results import Audit


def quick_audit(tell: Tell) -> Audit:
    """Audit with a small grid and one pass over all trials."""
    return _audit(exact.QUICK, lambda campaign: campaign.run(tell), tell)


def full_audit(seconds: float, tell: Tell) -> Audit:
    """Audit with the whole grid, and passes for this many seconds."""
    return _audit(exact.FULL, lambda campaign: campaign.run_for(seconds, tell), tell)


def _audit(grid: exact.CheckGrid, attack: Callable[[AttackSeries], None], tell: Tell) -> Audit:
    checked: list[exact.Exact] = []
    campaign = AttackSeries(all_trials())
    try:
        for one in grid.check():
            tell(f"{one.oracle}, exactly", len(checked), len(grid))
            checked.append(one)
        attack(campaign)
    except KeyboardInterrupt:
        campaign.stopped = True
    return Audit(checked, campaign.findings(), campaign.unfinished, campaign.stopped)
