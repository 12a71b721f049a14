from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldpstream.arrays import Words
from ldpstream.oracles.reference.splitmix import below, draw, starts_of

_ONE = np.uint64(1)
_ROWS_AT_ONCE = 1 << 12


def _coins(starts: Words, first_draw: int, chance: np.uint64) -> Words:
    chosen = np.zeros_like(starts)
    undecided = ~chosen
    for step, digit in enumerate(range(63, -1, -1)):
        word = draw(starts, first_draw + step)
        if int(chance) >> digit & 1:
            chosen |= undecided & ~word
            undecided &= word
        else:
            undecided &= ~word
        if not undecided.any():
            break
    return chosen


def _bit(labels: NDArray[Any]) -> tuple[NDArray[np.int64], Words]:
    """Return the word that holds each label, and its bit there."""
    places = labels.astype(np.int64)
    return places >> 6, _ONE << (places & 63).astype(np.uint64)


def randomise_bits(
    values: NDArray[Any],
    out: Words,
    start: int,
    stop: int,
    labels: int,
    support: np.uint64,
    noise: np.uint64,
    seed: np.uint64,
) -> None:
    firsts = starts_of(seed, start, stop)
    for word in range(out.shape[1]):
        out[start:stop, word] = _coins(firsts, 64 * word + 1, noise)
    out[start:stop, -1] &= ~np.uint64(0) >> np.uint64(64 * out.shape[1] - labels)
    words, bits = _bit(values[start:stop])
    rows = np.arange(start, stop)
    cleared = out[rows, words] & ~bits
    out[rows, words] = np.where(firsts < support, cleared | bits, cleared)


def select_subsets(
    values: NDArray[Any],
    out: Words,
    start: int,
    stop: int,
    labels: int,
    size: int,
    include: np.uint64,
    seed: np.uint64,
) -> None:
    firsts = starts_of(seed, start, stop)
    truths = values[start:stop].astype(np.int64)
    included = firsts < include
    rows = np.arange(start, stop)
    out[start:stop] = 0
    words, bits = _bit(truths)
    out[rows, words] = np.where(included, bits, np.uint64(0))
    others = labels - 1
    for top in range(others - size, others):
        picks = below(draw(firsts, top + 1), top + 1).astype(np.int64)
        words, bits = _bit(picks + (picks >= truths))
        again = (out[rows, words] & bits) != 0
        chosen = np.where(again, top + (top >= truths), picks + (picks >= truths))
        words, bits = _bit(chosen)
        drawing = (top >= others - size + 1) | ~included  # the value itself saves one draw
        out[rows, words] |= np.where(drawing, bits, np.uint64(0))


def count_bits(rows: Words, start: int, stop: int) -> NDArray[np.int64]:
    counts = np.zeros(rows.shape[1] * 64, np.int64)
    for begin in range(start, stop, _ROWS_AT_ONCE):
        part = rows[begin : min(begin + _ROWS_AT_ONCE, stop)].astype("<u8")
        bits = np.unpackbits(part.view(np.uint8), axis=1, bitorder="little")
        counts += bits.sum(axis=0, dtype=np.int64)
    return counts
