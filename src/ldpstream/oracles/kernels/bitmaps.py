"""Kernels for reports that are sets of labels: label v is bit v % 64 of word v // 64 of a row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Words
from ldpstream.compiled import compiled, in_chunks
from ldpstream.oracles.kernels.splitmix import GAMMA, below, draw, start_of
from ldpstream.oracles.kernels.summing import summed
from ldpstream.oracles.reference import bitmaps as reference

_PLANES = 40
"""The bits of a vertical counter: enough for 10^12 rows."""
_BLOCK = 8
_UNASKED = 8


def words_for(labels: int) -> int:
    return (labels + 63) // 64


@compiled()
def _settle(
    chosen: np.uint64, undecided: np.uint64, start: np.uint64, step: int, chance: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """Compare one more binary digit of 64 random numbers with that of `chance`."""
    word = draw(start, step)
    digit = np.uint64(0) - ((chance >> np.uint64(63 - step)) & np.uint64(1))  # in all lanes
    return chosen | (undecided & ~word & digit), undecided & ~(word ^ digit)


@compiled()
def _coins(start: np.uint64, chance: np.uint64, lanes: np.uint64) -> np.uint64:
    """Return a word with a bit in each of `lanes` set with probability chance / 2^64.

    Each step compares one binary digit of a random number in each lane with that of `chance`, until
    no comparison is undecided: after about log2(64) steps. The first few are taken without checking
    for that, since a branch that is hard to predict costs more than they do.
    """
    chosen, undecided = np.uint64(0), lanes
    for step in range(_UNASKED):
        chosen, undecided = _settle(chosen, undecided, start, step, chance)
    step = _UNASKED
    while undecided != np.uint64(0) and step < 64:
        chosen, undecided = _settle(chosen, undecided, start, step, chance)
        step += 1
    return chosen


@compiled(reference.randomise_bits)
def _randomise_bits(
    values: NDArray[Any],
    out: Words,
    start: int,
    stop: int,
    labels: int,
    support: np.uint64,
    noise: np.uint64,
    seed: np.uint64,
) -> None:
    words = out.shape[1]
    every = ~np.uint64(0)
    last = every >> np.uint64(64 * words - labels)
    for i in range(start, stop):
        first = start_of(seed, i)
        for word in range(words):
            start_of_word = first + np.uint64(64 * word + 1) * GAMMA
            lanes = last if word == words - 1 else every
            out[i, word] = _coins(start_of_word, noise, lanes)
        value = np.int64(values[i])
        bit = np.uint64(1) << np.uint64(value & 63)
        if first < support:
            out[i, value >> 6] |= bit
        else:
            out[i, value >> 6] &= ~bit


def randomised_bits(
    values: NDArray[Any], labels: int, support: np.uint64, noise: np.uint64, seed: np.uint64
) -> Words:
    """Return bitmaps: the value's bit is set if a draw is below `support`, others below `noise`."""
    out = np.empty((len(values), words_for(labels)), np.uint64)
    in_chunks(
        len(values),
        lambda start, stop: _randomise_bits(values, out, start, stop, labels, support, noise, seed),
    )
    return out


@compiled(reference.select_subsets)
def _select_subsets(
    values: NDArray[Any],
    out: Words,
    start: int,
    stop: int,
    labels: int,
    size: int,
    include: np.uint64,
    seed: np.uint64,
) -> None:
    others = labels - 1
    for i in range(start, stop):
        first = start_of(seed, i)
        value = np.int64(values[i])
        out[i] = np.uint64(0)
        picks = size
        if first < include:
            out[i, value >> 6] |= np.uint64(1) << np.uint64(value & 63)
            picks -= 1
        # Floyd's subset sampling: if a number is drawn again, `top` is taken in its place.
        for top in range(others - picks, others):
            pick = np.int64(below(draw(first, top + 1), np.uint64(top + 1)))
            label = pick + np.int64(pick >= value)
            if (out[i, label >> 6] >> np.uint64(label & 63)) & np.uint64(1):
                label = top + np.int64(top >= value)
            out[i, label >> 6] |= np.uint64(1) << np.uint64(label & 63)


def selected_subsets(
    values: NDArray[Any], labels: int, size: int, include: np.uint64, seed: np.uint64
) -> Words:
    """Return bitmaps of `size` labels, with the value among them if a draw is below `include`."""
    out = np.empty((len(values), words_for(labels)), np.uint64)
    in_chunks(
        len(values),
        lambda start, stop: _select_subsets(values, out, start, stop, labels, size, include, seed),
    )
    return out


@compiled()
def _add(a: np.uint64, b: np.uint64, c: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Add three bits in each of 64 lanes; return sum and carry."""
    either = a ^ b
    return either ^ c, (a & b) | (either & c)


@compiled(reference.count_bits)
def _count_bits(rows: Words, start: int, stop: int) -> NDArray[np.int64]:
    """Count with vertical counters: plane k holds bit k of 64 counts, so one addition serves 64."""
    words = rows.shape[1]
    planes = np.zeros((_PLANES, words), np.uint64)
    body = start + (stop - start) // _BLOCK * _BLOCK
    for i in range(start, body, _BLOCK):
        for w in range(words):
            ones, twos_a = _add(planes[0, w], rows[i, w], rows[i + 1, w])
            ones, twos_b = _add(ones, rows[i + 2, w], rows[i + 3, w])
            twos, fours_a = _add(planes[1, w], twos_a, twos_b)
            ones, twos_a = _add(ones, rows[i + 4, w], rows[i + 5, w])
            ones, twos_b = _add(ones, rows[i + 6, w], rows[i + 7, w])
            twos, fours_b = _add(twos, twos_a, twos_b)
            fours, carry = _add(planes[2, w], fours_a, fours_b)
            planes[0, w], planes[1, w], planes[2, w] = ones, twos, fours
            plane = 3
            while carry != np.uint64(0):
                planes[plane, w], carry = planes[plane, w] ^ carry, planes[plane, w] & carry
                plane += 1
    counts = np.zeros(words * 64, np.int64)
    for plane in range(_PLANES):
        _tally(planes[plane], np.int64(1) << plane, counts)
    for i in range(body, stop):
        _tally(rows[i], np.int64(1), counts)
    return counts


@compiled()
def _tally(bits: Words, weight: np.int64, counts: NDArray[np.int64]) -> None:
    for label in range(len(counts)):
        counts[label] += weight * np.int64(
            (bits[label >> 6] >> np.uint64(label & 63)) & np.uint64(1)
        )


def bit_counts(rows: Words, labels: int) -> NDArray[np.int64]:
    """Return in how many rows each label's bit is set."""
    counts = summed(len(rows), lambda start, stop: _count_bits(rows, start, stop))
    return counts[:labels]
