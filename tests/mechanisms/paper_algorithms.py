"""Algorithms 1 to 4 of the paper, line by line, as naively as possible: the yardstick for ours.

Amounts are Fractions and users are sets of numbers. `FO(t, sub, users, eps)` stands for "users
report via an FO, estimate": it gives the histogram. The corrections of docs/paper-corrections.md
that a literal reading needs are marked. `grain` is the smallest amount of epsilon that can be
handed out: 0 for the paper's real numbers, 1e-9 for whole nano-epsilon.
"""

# ruff: noqa: N803 (the letters are the paper's)

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

Histogram = list[float]
FO = Callable[[int, int, int, Fraction], Histogram]


@dataclass
class Line:
    """What happened at t: (sub-mechanism, users, epsilon) of each report, and r_t."""

    t: int
    reports: list[tuple[int, int, Fraction]] = field(default_factory=list)
    r: Histogram = field(default_factory=list)


def var(eps: Fraction, n: int, d: int) -> float:
    """The mean of Var over the bins, as printed with eq. (7): without the 1/d of correction 2."""
    e_eps_minus_1 = math.expm1(eps)
    return (d - 1 + e_eps_minus_1) / (n * e_eps_minus_1**2) + (d - 2) / (n * e_eps_minus_1)


def dissimilarity(c: Histogram, r: Histogram, variance: float) -> float:
    d = len(c)
    return sum((c[k] - r[k]) ** 2 for k in range(d)) / d - variance


def floored(amount: Fraction, grain: Fraction) -> Fraction:
    return amount // grain * grain if grain else amount


def lbd(fo: FO, T: int, N: int, d: int, eps: Fraction, w: int, grain: Fraction) -> Iterator[Line]:
    """Algorithm 1."""
    r: dict[int, Histogram] = {0: [0.0] * d}
    eps_2: dict[int, Fraction] = {}
    for t in range(1, T + 1):
        line = Line(t)
        # M_{t,1}
        eps_1 = floored(eps / (2 * w), grain)
        line.reports.append((1, N, eps_1))
        c_1 = fo(t, 1, N, eps_1)
        dis = dissimilarity(c_1, r[t - 1], var(eps_1, N, d))
        # M_{t,2}
        eps_rm = eps / 2 - sum(
            (eps_2.get(i, Fraction(0)) for i in range(t - w + 1, t)), Fraction(0)
        )
        eps_2[t] = floored(eps_rm / 2, grain)
        if eps_2[t] > 0 and dis > var(eps_2[t], N, d):
            line.reports.append((2, N, eps_2[t]))
            r[t] = fo(t, 2, N, eps_2[t])
        else:
            r[t] = r[t - 1]
            eps_2[t] = Fraction(0)
        line.r = r[t]
        yield line


def lba(fo: FO, T: int, N: int, d: int, eps: Fraction, w: int, grain: Fraction) -> Iterator[Line]:
    """Algorithm 2."""
    r: dict[int, Histogram] = {0: [0.0] * d}
    last = 0  # l
    eps_2: dict[int, Fraction] = {0: Fraction(0)}
    for t in range(1, T + 1):
        line = Line(t)
        # M_{t,1}: lines 3-6 of Algorithm 1
        eps_1 = floored(eps / (2 * w), grain)
        line.reports.append((1, N, eps_1))
        c_1 = fo(t, 1, N, eps_1)
        dis = dissimilarity(c_1, r[t - 1], var(eps_1, N, d))
        # M_{t,2}
        slot = floored(eps / (2 * w), grain)
        t_N = eps_2[last] / slot - 1
        if t - last <= t_N:
            r[t] = r[t - 1]
        else:
            t_A = t - (last + t_N)
            eps_2[t] = slot * min(t_A, Fraction(w))
            if dis > var(eps_2[t], N, d):
                line.reports.append((2, N, eps_2[t]))
                r[t] = fo(t, 2, N, eps_2[t])  # docs/paper-corrections.md, 5: D_{t,2}
                last = t
            else:
                r[t] = r[t - 1]
                eps_2[t] = Fraction(0)
        line.r = r[t]
        yield line


def lpd(fo: FO, T: int, N: int, d: int, eps: Fraction, w: int) -> Iterator[Line]:
    """Algorithm 3, with u_min = 1."""
    U_A = set(range(N))
    U_1: dict[int, set[int]] = {}
    U_2: dict[int, set[int]] = {}
    r: dict[int, Histogram] = {0: [0.0] * d}
    for t in range(1, T + 1):
        line = Line(t)
        # M_{t,1}
        U_1[t] = sample(U_A, N // (2 * w))
        U_A = U_A - U_1[t]
        line.reports.append((1, len(U_1[t]), eps))
        c_1 = fo(t, 1, len(U_1[t]), eps)
        dis = dissimilarity(c_1, r[t - 1], var(eps, len(U_1[t]), d))
        # M_{t,2}
        N_rm = Fraction(N, 2) - sum(len(U_2.get(i, ())) for i in range(t - w + 1, t))
        N_pp = math.floor(N_rm / 2)  # docs/paper-corrections.md, 7
        if N_pp >= 1 and dis > var(eps, N_pp, d):
            U_2[t] = sample(U_A, N_pp)
            U_A = U_A - U_2[t]
            line.reports.append((2, len(U_2[t]), eps))
            r[t] = fo(t, 2, len(U_2[t]), eps)
        else:
            U_2[t] = set()
            r[t] = r[t - 1]
        if t >= w:
            U_A = U_A | U_1[t - w + 1] | U_2[t - w + 1]
        line.r = r[t]
        yield line


def lpa(fo: FO, T: int, N: int, d: int, eps: Fraction, w: int) -> Iterator[Line]:
    """Algorithm 4."""
    U_A = set(range(N))
    U_1: dict[int, set[int]] = {}
    U_2: dict[int, set[int]] = {0: set()}
    r: dict[int, Histogram] = {0: [0.0] * d}
    last = 0  # l
    for t in range(1, T + 1):
        line = Line(t)
        # M_{t,1}: lines 3-6 of Algorithm 3
        U_1[t] = sample(U_A, N // (2 * w))
        U_A = U_A - U_1[t]
        line.reports.append((1, len(U_1[t]), eps))
        c_1 = fo(t, 1, len(U_1[t]), eps)
        dis = dissimilarity(c_1, r[t - 1], var(eps, len(U_1[t]), d))
        # M_{t,2}
        U_2[t] = set()  # docs/paper-corrections.md, 5
        t_N = Fraction(len(U_2[last]), N // (2 * w)) - 1
        if t - last <= t_N:
            r[t] = r[t - 1]
        else:
            t_A = t - (last + t_N)
            N_pp = int(N // (2 * w) * min(t_A, Fraction(w)))
            if dis > var(eps, N_pp, d):
                U_2[t] = sample(U_A, N_pp)
                U_A = U_A - U_2[t]
                line.reports.append((2, len(U_2[t]), eps))
                r[t] = fo(t, 2, len(U_2[t]), eps)
                last = t
            else:
                r[t] = r[t - 1]
        if t >= w:
            U_A = U_A | U_1[t - w + 1] | U_2[t - w + 1]
        line.r = r[t]
        yield line


def sample(users: set[int], size: int) -> set[int]:
    """Any subset will do here; that there are enough users left is part of what is checked."""
    assert size <= len(users)
    return set(sorted(users)[:size])
