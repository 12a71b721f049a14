"""Kernels for reports that are one number: labels (GRR) and Hadamard columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.compiled import compiled, in_chunks
from ldpstream.oracles.kernels.splitmix import below, draw, start_of
from ldpstream.oracles.kernels.summing import summed
from ldpstream.oracles.reference import labels as reference


@compiled(reference.randomise_labels)
def _randomise_labels(
    values: NDArray[Any],
    out: NDArray[np.uint16],
    start: int,
    stop: int,
    labels: np.uint64,
    keep: np.uint64,
    seed: np.uint64,
) -> None:
    for i in range(start, stop):
        first = start_of(seed, i)
        other = below(draw(first, 1), labels)
        out[i] = np.uint16(values[i]) if first < keep else np.uint16(other)


def randomised_labels(
    values: NDArray[Any], labels: int, keep: np.uint64, seed: np.uint64
) -> NDArray[np.uint16]:
    """Return each value or, if its draw is not below `keep`, a uniform label."""
    out = np.empty(len(values), np.uint16)
    in_chunks(
        len(values),
        lambda start, stop: _randomise_labels(
            values, out, start, stop, np.uint64(labels), keep, seed
        ),
    )
    return out


@compiled(reference.draw_columns)
def _draw_columns(
    values: NDArray[Any],
    out: NDArray[np.uint32],
    start: int,
    stop: int,
    column_bits: int,
    support: np.uint64,
    seed: np.uint64,
) -> None:
    for i in range(start, stop):
        first = start_of(seed, i)
        column = np.uint32(draw(first, 1) >> np.uint64(64 - column_bits))
        row = np.uint32(np.uint32(values[i]) + np.uint32(1))
        parity = np.uint32(column & row)
        for shift in (16, 8, 4, 2, 1):
            parity ^= np.uint32(parity >> np.uint32(shift))
        opposed = np.uint32(0) if first < support else np.uint32(1)
        wrong = np.uint32(np.uint32(parity & np.uint32(1)) ^ opposed)
        lowest = np.uint32(row & np.uint32(~row + np.uint32(1)))
        out[i] = np.uint32(column ^ np.uint32(lowest * wrong))


def drawn_columns(
    values: NDArray[Any], columns: int, support: np.uint64, seed: np.uint64
) -> NDArray[np.uint32]:
    """Return columns, from the half that supports the value if a draw is below `support`."""
    out = np.empty(len(values), np.uint32)
    bits = columns.bit_length() - 1
    in_chunks(
        len(values),
        lambda start, stop: _draw_columns(values, out, start, stop, bits, support, seed),
    )
    return out


@compiled(reference.count_labels)
def _count_labels(reports: NDArray[Any], start: int, stop: int, labels: int) -> NDArray[np.int64]:
    # Four tables, so that runs of one label do not wait for the previous store.
    table = np.zeros((4, labels), np.int64)
    body = start + (stop - start) // 4 * 4
    for i in range(start, body, 4):
        table[0, reports[i]] += 1
        table[1, reports[i + 1]] += 1
        table[2, reports[i + 2]] += 1
        table[3, reports[i + 3]] += 1
    for i in range(body, stop):
        table[0, reports[i]] += 1
    counts: NDArray[np.int64] = table.sum(axis=0)
    return counts


def label_counts(reports: NDArray[Any], labels: int) -> NDArray[np.int64]:
    """Return how often each of 0 .. labels-1 occurs in `reports`."""
    return summed(len(reports), lambda start, stop: _count_labels(reports, start, stop, labels))
