"""Kernels of a fixed-interval smoother: a linear model run forward, and its errors run back.

Of a member's covariances only the direction of each gain is kept (de Jong 1989; Durbin and Koopman
2012, section 4.5), so that memory is O(timestamps x states). What comes out at t rests on all
tallies but that of t. docs/lpf.md has the formulas.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldpstream.arrays import Flags, Floats, Indexes
from ldpstream.compiled import compiled
from ldpstream.refine.linear import Model

Moves = tuple[Floats, Indexes, Floats]
"""A transition x' = a x + b x[other]: what each state keeps, the other one, and the share of it."""


@dataclass(frozen=True)
class Sparse:
    """A model whose states move by themselves and by at most one other."""

    onward: Moves
    backward: Moves
    """The transposed transition: the state that each one moves, if any, moves it."""
    noise: Floats
    observation: Floats
    start: Floats
    """The covariance of the states before the first tally."""

    @classmethod
    def of(cls, model: Model, start_variance: float, scale: float) -> Sparse:
        """Make one of a model; noises and prior variances are in units of `scale`."""
        own = np.ascontiguousarray(model.transition.diagonal())
        between = model.transition - np.diag(own)
        start = np.diag([start_variance, *(model.prior * scale)])
        noise = model.noise * scale
        moves = _moves(own, between), _moves(own, between.T)
        return cls(*moves, noise, model.observation, start)


def _moves(own: Floats, between: Floats) -> Moves:
    """Return a transition; of each row of `between` at most one entry is not 0."""
    places = np.argmax(between != 0, axis=1)
    return own, places, between[np.arange(len(between)), places]


@dataclass(frozen=True)
class Gains:
    """What all labels with the same times of measurement and shifts share."""

    directions: Floats
    """Covariances of the states with what is measured, T x states."""
    spreads: Floats
    """Variances of the innovations; infinite where nothing was measured."""
    certainty: Floats
    """Reciprocal variances of a tally given all others."""
    apart: Floats
    """Variances of what is measured, given all tallies but that of t."""
    shift: Floats
    """Information about a shift of the level just before t."""

    @classmethod
    def of(cls, model: Sparse, variance: Floats, heard: Flags, shifts: Floats) -> Gains:
        """Run the covariances of a model; `shifts` are variances of the level's own jumps."""
        known = model.noise, model.observation, model.start
        return cls(*_gains(model.onward, model.backward, *known, variance, heard, shifts))


@dataclass(frozen=True)
class Means:
    """What each label has of its own, T x labels."""

    innovations: Floats
    apart: Floats
    """Means of what is measured, given all tallies but that of t."""
    score: Floats
    """The derivative of the log-likelihood by a shift of the level just before t."""

    @classmethod
    def of(cls, model: Sparse, gains: Gains, start: float, measured: Floats) -> Means:
        known = gains.directions, gains.spreads, gains.certainty
        moves = model.onward, model.backward
        return cls(*_means(*moves, model.observation, start, *known, measured))


@compiled()
def _move(moves: Moves, states: Floats, moved: Floats) -> None:
    """Write to `moved` what a transition makes of states, each column by itself."""
    own, other, weight = moves
    for i in range(len(own)):
        for j in range(states.shape[1]):
            moved[i, j] = own[i] * states[i, j] + weight[i] * states[other[i], j]


@compiled()
def _move_both(moves: Moves, matrix: Floats, room: Floats) -> None:
    """Apply a transition to a symmetric matrix, from both sides."""
    _move(moves, matrix, room)
    _move(moves, room.T, matrix)


@compiled()
def _gains(
    onward: Moves,
    backward: Moves,
    noise: Floats,
    observation: Floats,
    start: Floats,
    variance: Floats,
    heard: Flags,
    shifts: Floats,
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    timestamps, size = len(variance), len(observation)
    directions = np.empty((timestamps, size))
    spreads, certainty = np.full(timestamps, np.inf), np.zeros(timestamps)
    apart, shift = np.empty(timestamps), np.empty(timestamps)
    now, room = start.copy(), np.empty((size, size))
    for t in range(timestamps):
        _move_both(onward, now, room)
        now += noise
        now[0, 0] += shifts[t]
        known = 0.0
        for i in range(size):
            along = 0.0
            for j in range(size):
                along += now[i, j] * observation[j]
            directions[t, i] = along
            known += along * observation[i]
        apart[t] = known
        if heard[t]:
            spreads[t] = known + variance[t]
            for i in range(size):
                part = directions[t, i] / spreads[t]
                for j in range(size):
                    now[i, j] -= part * directions[t, j]
    back, along_back = np.zeros((size, size)), np.empty(size)
    for t in range(timestamps - 1, -1, -1):
        if heard[t]:
            both = 0.0
            for i in range(size):
                along = 0.0
                for j in range(size):
                    along += back[i, j] * directions[t, j]
                along_back[i] = along / spreads[t]
                both += along_back[i] * directions[t, i] / spreads[t]
            certainty[t] = both + 1 / spreads[t]
            apart[t] = max(1 / certainty[t] - variance[t], 0.0)
            for i in range(size):
                for j in range(size):
                    back[i, j] += (
                        observation[i] * observation[j] * certainty[t]
                        - observation[i] * along_back[j]
                        - along_back[i] * observation[j]
                    )
        else:
            for i in range(size):
                for j in range(size):
                    apart[t] -= directions[t, i] * back[i, j] * directions[t, j]
        shift[t] = back[0, 0]
        _move_both(backward, back, room)
    return directions, spreads, certainty, apart, shift


@compiled()
def _means(
    onward: Moves,
    backward: Moves,
    observation: Floats,
    start: float,
    directions: Floats,
    spreads: Floats,
    certainty: Floats,
    measured: Floats,
) -> tuple[Floats, Floats, Floats]:
    timestamps, labels = measured.shape
    size = len(observation)
    innovations, apart = np.empty((timestamps, labels)), np.empty((timestamps, labels))
    score = np.empty((timestamps, labels))
    now, moved = np.zeros((size, labels)), np.empty((size, labels))
    now[0, :] = start
    for t in range(timestamps):
        for label in range(labels):
            innovations[t, label] = measured[t, label]
            apart[t, label] = 0.0
        _move(onward, now, moved)
        for i in range(size):
            for label in range(labels):
                innovations[t, label] -= observation[i] * moved[i, label]
                apart[t, label] += observation[i] * moved[i, label]
        for i in range(size):
            gain = directions[t, i] / spreads[t]
            for label in range(labels):
                now[i, label] = moved[i, label] + gain * innovations[t, label]
    now[:] = 0.0
    share = np.empty(labels)
    for t in range(timestamps - 1, -1, -1):
        silent = spreads[t] == np.inf
        for label in range(labels):
            share[label] = 0.0
        _move(backward, now, moved)
        for i in range(size):
            for label in range(labels):
                share[label] += directions[t, i] * moved[i, label]
        for label in range(labels):
            if silent:
                apart[t, label] += share[label]
                share[label] = 0.0
            else:
                share[label] = (innovations[t, label] - share[label]) / spreads[t]
                apart[t, label] = measured[t, label] - share[label] / certainty[t]
        for i in range(size):
            for label in range(labels):
                now[i, label] = moved[i, label] + observation[i] * share[label]
        for label in range(labels):
            score[t, label] = now[0, label]
    return innovations, apart, score
