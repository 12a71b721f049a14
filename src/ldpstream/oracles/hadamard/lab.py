from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Counts
from ldpstream.oracles.collector_half import Reports, Support
from ldpstream.oracles.hadamard.collector import column_support
from ldpstream.oracles.hadamard.device import Device
from ldpstream.oracles.kernels.labels import drawn_columns
from ldpstream.oracles.lab_half import ALWAYS, LabHalf, draw_seed, threshold


class Lab(LabHalf):
    """Simulated Hadamard response, device by device or as counts of the columns."""

    device: Device

    def _perturb(self, values: NDArray[Any], rng: np.random.Generator) -> Reports:
        return drawn_columns(values, self.device.columns, threshold(self.p), draw_seed(rng))

    def sample_support(self, truth: Counts, rng: np.random.Generator) -> Support:
        """Draw exactly, in O(K log K). Labels are not independent: a column decides all of them."""
        debts = np.zeros((1, self.device.columns, 2), np.int64)
        supporting = rng.binomial(truth, self.p)
        debts[0, 1 : self.labels + 1, 0] = supporting
        debts[0, 1 : self.labels + 1, 1] = truth - supporting
        return Support(column_support(_columns(debts, rng), self.labels), int(truth.sum()))

    def _supporting(self, values: NDArray[Any], seed: np.uint64) -> Reports:
        return drawn_columns(values, self.device.columns, ALWAYS, seed)

    def arbitrary(self, number: int, rng: np.random.Generator) -> Reports:
        return rng.integers(self.device.columns, size=number).astype(np.uint32)


def _columns(debts: NDArray[np.int64], rng: np.random.Generator) -> Counts:
    """Draw how often each column occurs, by a random walk down the butterfly of the transform.

    A device chooses its column bit by bit. Its state is the prefix of its column so far, the rest
    of its row, and its debt, the parity that the rest of `row & column` must still have; `debts`
    counts devices by these three. Every bit of a column is a fair coin, except the last one at
    which the row has a bit: that one settles the debt.
    """
    while debts.shape[1] > 1:
        rows = debts.reshape(len(debts), -1, 2, 2)  # prefix, rest of the row, its bit here, debt
        ones = rng.binomial(rows, 0.5)
        ones[:, 0, 1] = rows[:, 0, 1] * np.array([0, 1])
        zeros = rows - ones
        paid = ones[:, :, 1, ::-1]  # both bits are 1: the parity owed flips
        debts = np.concatenate([zeros.sum(axis=2), ones[:, :, 0] + paid])
    return debts[:, 0, 0]
