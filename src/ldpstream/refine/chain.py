"""Kernels of two-sided weights: which member to believe at t, from what came before and after."""

from __future__ import annotations

import math

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.compiled import compiled
from ldpstream.refine.intervals import LEVEL, NEWTON_STEPS, QUANTILE

NEGLIGIBLE = 1e-3
"""Members of less weight do not move the ends of an interval."""


@compiled()
def two_sided(evidence: Floats, prior: Floats, share: float) -> tuple[Floats, float]:
    """Return the posterior weights of members, T x members, of one label, and their log-evidence.

    The fixed share of `Weights` is the forward half of a Markov chain: a member stays with
    probability 1 - `share`, otherwise one is drawn from the prior. This is the chain's other half,
    too (Rabiner 1989). `evidence` has the log-likelihood that each member gave each tally in
    advance.
    """
    timestamps, members = evidence.shape
    weights = np.empty((timestamps, members))
    given = np.empty((timestamps, members))
    before, logarithm = prior.copy(), 0.0
    for t in range(timestamps):
        best = evidence[t].max()
        total = 0.0
        for i in range(members):
            given[t, i] = math.exp(evidence[t, i] - best)
            weights[t, i] = ((1 - share) * before[i] + share * prior[i]) * given[t, i]
            total += weights[t, i]
        for i in range(members):
            weights[t, i] /= total
            before[i] = weights[t, i]
        logarithm += best + math.log(total)
    after = np.ones(members)
    for t in range(timestamps - 2, -1, -1):
        anew, total = 0.0, 0.0
        for i in range(members):
            after[i] *= given[t + 1, i]
            anew += prior[i] * after[i]
        for i in range(members):
            after[i] = (1 - share) * after[i] / anew + share
            weights[t, i] *= after[i]
            total += weights[t, i]
        for i in range(members):
            weights[t, i] /= total
    return weights, logarithm


@compiled()
def central(
    weights: Floats, means: Floats, variances: Floats, tails: Floats, sizes: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return mean and ends of the central interval of mixtures of normals, one in each row.

    With the weights `tails`, the variances in `sizes` are added.
    """
    rows, members = weights.shape
    centre, low, high = np.empty(rows), np.empty(rows), np.empty(rows)
    chosen = np.empty(members, np.int64)
    scales, shares = np.empty((members, len(sizes))), np.empty((members, len(sizes)))
    for row in range(rows):
        count, mean, kept = 0, 0.0, 0.0
        for i in range(members):
            mean += weights[row, i] * means[row, i]
            if weights[row, i] >= NEGLIGIBLE:
                chosen[count] = i
                count += 1
                kept += weights[row, i]
        spread = 0.0
        for place in range(count):
            i = chosen[place]
            spread += weights[row, i] * (variances[row, i] + (means[row, i] - mean) ** 2)
            for j in range(len(sizes)):
                scales[place, j] = math.sqrt(variances[row, i] + sizes[j]) + 1e-30
                shares[place, j] = weights[row, i] * tails[row, j] / kept
        for j in range(len(sizes)):
            spread += kept * tails[row, j] * sizes[j]
        spread = math.sqrt(spread / kept) + 1e-30
        centre[row] = mean
        for side in (-1.0, 1.0):
            end = mean + side * QUANTILE * spread
            for _ in range(NEWTON_STEPS):
                excess, slope = -(1 + side * LEVEL) / 2, 0.0
                for place in range(count):
                    i = chosen[place]
                    for j in range(len(sizes)):
                        if tails[row, j] < NEGLIGIBLE:
                            continue
                        away = (end - means[row, i]) / scales[place, j]
                        share = shares[place, j]
                        excess += share * 0.5 * math.erfc(-away / math.sqrt(2.0))
                        slope += share * math.exp(-0.5 * away * away) / scales[place, j]
                step = excess / max(slope / math.sqrt(2 * math.pi), 1e-300)
                end -= min(max(step, -spread / 2), spread / 2)
            if side < 0:
                low[row] = end
            else:
                high[row] = end
    return centre, low, high
