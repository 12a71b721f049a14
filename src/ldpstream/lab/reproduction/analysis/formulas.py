"""The formulas of the paper's analysis, sections 5.4 and 6.3, as functions of m.

m is the number of publications in a window of w timestamps. `V` is the variance of a tally, by the
share of epsilon that a report uses and the share of the users who report.

The analysis assumes that no budget returns from earlier windows, that publications are equally
spaced, and that m is a whole number; between whole numbers we interpolate.

>>> communication("lba", m=5, window=20)
1.25
>>> f"{communication('lpd', m=2, window=20):.5f}"
'0.04375'
"""

from __future__ import annotations

import math
from collections.abc import Callable

V = Callable[[float, float], float]
"""The mean variance over the bins of a tally with shares of epsilon and of the users."""

BUDGET_DIVISION = ("lbu", "lbd", "lba")


def publication_variance(mechanism: str, m: float, window: int, variance: V) -> float:
    """Return the mean variance of the publications in a window, without the data term.

    LSP: V(eps, N). LBD: the mean over i = 1 .. m of V(eps/2^(i+1), N). LBA:
    V((w+m)/(4wm) eps, N). LPD and LPA have the shares of epsilon as shares of the users.
    """
    if mechanism == "lsp":
        return variance(1.0, 1.0)
    if mechanism in ("lbu", "lpu"):
        return _divided(mechanism, variance)(1 / window)
    spent = _divided(mechanism, variance)
    if mechanism in ("lba", "lpa"):
        return spent((window + m) / (4 * window * m))
    whole = math.floor(m)
    halved = [spent(2.0 ** -(i + 1)) for i in range(1, whole + 1)]
    rest = (m - whole) * spent(2.0 ** -(whole + 2)) if m > whole else 0.0
    return (sum(halved) + rest) / m


def _divided(mechanism: str, variance: V) -> Callable[[float], float]:
    """Return V by the share of the resource that this mechanism divides."""
    if mechanism in BUDGET_DIVISION:
        return lambda share: variance(share, 1.0)
    return lambda share: variance(1.0, share)


def communication(mechanism: str, m: float, window: int) -> float:
    """Return the reports per user and timestamp (CFPU) with m publications in a window."""
    match mechanism:
        case "lbu":
            return 1.0
        case "lbd" | "lba":
            return 1 + m / window
        case "lsp" | "lpu":
            return 1 / window
        case "lpd":
            return 1 / window - 1 / (window * 2 ** (m + 1))
        case _:
            return 1 / (2 * window) + (window + m) / (4 * window**2)
