"""The paper's synthetic streams (section 7.1.1) and more; parameters have its letters."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ldpstream.arrays import Floats
from ldpstream.domain import MOST_LABELS, Domain
from ldpstream.errors import Mistake, Problem
from ldpstream.streams.generated import generated
from ldpstream.streams.stream import MOST_USERS, CountsStream

USERS = 200_000
TIMESTAMPS = 800

LEAST: dict[str, float] = {"users": 1, "timestamps": 1, "seed": 0, "sd": 0, "drift": 0, "day": 1}
LEAST |= {"median": 0.001, "spread": 0.01, "shift": 0.01, "texts": 2, "exponent": 0, "longest": 1}
"""The least value of the parameters that have one."""
MOST = {"users": MOST_USERS, "timestamps": 10**7, "labels": MOST_LABELS, "steps": MOST_LABELS - 1}
MOST |= {"texts": 1 << 20, "longest": 64}
"""The greatest values: a table of counts has to fit into memory."""


def sin(
    users: int = USERS,
    timestamps: int = TIMESTAMPS,
    a: float = 0.05,
    b: float = 0.01,
    h: float = 0.075,
) -> CountsStream:
    """A sine curve.

    p_t = A sin(bt) + h

    >>> sin(users=1000, timestamps=3).table[:, 1].tolist()
    [75, 76, 76]
    """
    return _binary("sin", users, a * np.sin(b * _times(timestamps)) + h)


def log(
    users: int = USERS, timestamps: int = TIMESTAMPS, a: float = 0.25, b: float = 0.01
) -> CountsStream:
    """A logistic curve, p_t = A / (1 + e^(-bt)).

    >>> log(users=1000, timestamps=3).table.tolist()
    [[874, 126], [874, 126], [873, 127]]
    """
    return _binary("log", users, a / (1 + np.exp(-b * _times(timestamps))))


def lns(
    users: int = USERS,
    timestamps: int = TIMESTAMPS,
    p0: float = 0.05,
    sd: float = 0.0025,
    seed: int = 0,
) -> CountsStream:
    """A random walk: p_t = p_{t-1} + N(0, sd^2), reflected at 0 and 1.

    Without the reflection about half of all paths would leave [0, 1] (paper-corrections.md, 11).

    >>> lns(users=1000, timestamps=3).table.tolist()
    [[950, 50], [950, 50], [948, 52]]
    """
    walk = p0 + np.cumsum(np.random.default_rng(seed).normal(0, sd, timestamps))
    folded = np.abs(walk) % 2
    return _binary("lns", users, np.minimum(folded, 2 - folded))


def step(
    users: int = USERS,
    timestamps: int = TIMESTAMPS,
    low: float = 0.05,
    high: float = 0.15,
    every: int = 100,
) -> CountsStream:
    """A share that alternates between `low` and `high`, for `every` timestamps each.

    >>> step(users=100, timestamps=4, every=2).table.tolist()
    [[95, 5], [95, 5], [85, 15], [85, 15]]
    """
    if every < 1:
        raise _wrong("step", "every", every, "a number of timestamps, 1 or more")
    upper = (_times(timestamps) - 1) // every % 2
    return _binary("step", users, np.where(upper == 1, high, low))


def constant(users: int = USERS, timestamps: int = TIMESTAMPS, p: float = 0.1) -> CountsStream:
    """The same share at every timestamp.

    >>> constant(users=100, timestamps=2).table.tolist()
    [[90, 10], [90, 10]]
    """
    return _binary("constant", users, np.full(timestamps, p))


def zipf(
    users: int = 1_023_154,
    timestamps: int = 432,
    labels: int = 117,
    s: float = 1.1,
    drift: float = 0.02,
    seed: int = 0,
) -> CountsStream:
    """Frequencies k^(-s) whose logarithms walk at random with sd `drift`; as large as Taobao.

    >>> zipf(users=1000, timestamps=2, labels=3).table.tolist()
    [[566, 263, 171], [568, 260, 172]]
    """
    domain = Domain.numbered(labels)
    ranks = np.arange(1, labels + 1)
    steps = np.random.default_rng(seed).normal(0, drift, (timestamps, labels))
    weights = np.exp(-s * np.log(ranks) + np.cumsum(steps, axis=0))
    return CountsStream.in_proportion("zipf", domain, weights, users)


def meter(
    users: int = USERS,
    timestamps: int = TIMESTAMPS,
    steps: int = 1024,
    day: int = 96,
    sd: float = 0.02,
    seed: int = 0,
) -> CountsStream:
    """A number: the load of households, from 0 to `steps` levels, for `Mean` and `Distribution`.

    Two peaks in a day of `day` timestamps, on a level that wanders around 0.2 of the range with
    standard deviation `sd`. Households differ: at each timestamp they are beta-distributed.

    >>> meter(users=1000, timestamps=2, steps=4).table.tolist()
    [[855, 131, 13, 1, 0], [853, 132, 14, 1, 0]]
    """
    angle = 2 * np.pi * _times(timestamps) / max(day, 1)
    wave = 0.2 - 0.06 * np.cos(angle) - 0.05 * np.cos(2 * angle)
    mean = np.clip(wave + _weather(timestamps, sd, seed), 0.02, 0.98)[:, None]
    load = (np.arange(steps + 1) + 0.5) / (steps + 1)
    shape = (_ALIKE * mean - 1) * np.log(load) + (_ALIKE * (1 - mean) - 1) * np.log1p(-load)
    weights = np.exp(shape - shape.max(axis=1, keepdims=True))
    return CountsStream.in_proportion("meter", Domain.numbered(steps + 1), weights, users)


_ALIKE = 8.0
"""How much alike households are: the two parameters of their beta distribution sum to this."""


def _weather(timestamps: int, sd: float, seed: int) -> Floats:
    """Return a level that wanders around 0 and is pulled back by 1 % per timestamp."""
    pull = 0.01
    kicks = np.random.default_rng(seed).normal(0, sd * math.sqrt(2 * pull), timestamps)
    weather = np.zeros(timestamps)
    for t in range(1, timestamps):
        weather[t] = (1 - pull) * weather[t - 1] + kicks[t]
    return weather


def latency(
    users: int = USERS,
    timestamps: int = TIMESTAMPS,
    steps: int = 1024,
    day: int = 96,
    median: float = 0.1,
    spread: float = 0.5,
    shift: float = 1.4,
) -> CountsStream:
    """A number with a long tail: log-normal, as latencies are, from 0 to `steps` levels.

    The median is around `median` of the range with a daily cycle (times e^0.35 at its peak), and
    `shift` times as much from the middle of the stream on. `spread` is the standard deviation of
    the logarithm.

    >>> latency(users=100, timestamps=1, steps=4, median=0.3).table.tolist()
    [[2, 44, 33, 15, 6]]
    """
    t = _times(timestamps)
    cycle = 0.35 * np.sin(2 * np.pi * t / max(day, 1))
    middle = np.log(median) + cycle + np.log(shift) * (t > timestamps / 2)
    number = np.log((np.arange(steps + 1) + 0.5) / (steps + 1))
    shape = -0.5 * ((number - middle[:, None]) / spread) ** 2 - number
    weights = np.exp(shape - shape.max(axis=1, keepdims=True))
    return CountsStream.in_proportion("latency", Domain.numbered(steps + 1), weights, users)


STREAMS: dict[str, Callable[..., CountsStream]] = {
    make.__name__: make for make in (sin, log, lns, step, constant, zipf, meter, latency, generated)
}


def named(
    text: str, users: int | None = None, timestamps: int | None = None, seed: int = 0
) -> CountsStream:
    """Make a stream from its name and parameters, as on the command line.

    >>> named("sin:b=0.1,h=0.2", users=1000, timestamps=50).users
    1000
    """
    name, _, _ = text.partition(":")
    make = STREAMS.get(name)
    if make is None:
        raise Mistake(Problem.SOURCE_UNKNOWN, given=name, known=", ".join(STREAMS))
    return make(**parameters_of(make, text, users, timestamps, seed))


def parameters_of(
    make: Callable[..., object],
    text: str,
    users: int | None = None,
    timestamps: int | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the parameters of a stream that is named with them, checked."""
    name, _, tail = text.partition(":")
    allowed = {
        parameter.name: parameter.default
        for parameter in inspect.signature(make).parameters.values()
    }
    given: dict[str, float] = {}
    for item in filter(None, tail.split(",")):
        key, _, number = item.partition("=")
        given[key] = _read(name, key, number, allowed)
    sizes = {"users": users, "timestamps": timestamps, "seed": seed}
    given = {k: v for k, v in sizes.items() if v is not None and k in allowed} | given
    for key, value in given.items():
        _check(name, key, value)
    return given


def _read(stream: str, key: str, number: str, allowed: dict[str, float]) -> float:
    if key not in allowed:
        raise _wrong(stream, "parameter", repr(key), "one of " + ", ".join(allowed))
    kind = type(allowed[key])
    try:
        return kind(number)
    except ValueError:
        raise _wrong(stream, key, repr(number), f"a number ({kind.__name__})") from None


def _check(stream: str, key: str, number: float) -> None:
    if not math.isfinite(number):
        raise _wrong(stream, key, number, "a finite number")
    if key in LEAST and number < LEAST[key]:
        raise _wrong(stream, key, number, f"{LEAST[key]} or more")
    if key in MOST and number > MOST[key]:
        raise _wrong(stream, key, number, f"{MOST[key]} or less")


def _times(timestamps: int) -> Floats:
    return np.arange(1, timestamps + 1, dtype=np.float64)


def _binary(name: str, users: int, shares: Floats) -> CountsStream:
    """Return a stream of two labels, the second held by p_t of the users."""
    if not len(shares):
        raise _wrong(name, "timestamps", 0, "1 or more")
    low, high = float(shares.min()), float(shares.max())
    if low < 0 or high > 1:
        raise _wrong(
            name, "p_t", f"from {low:.3g} to {high:.3g}", "parameters that keep it in 0..1"
        )
    ones = np.rint(shares * users).astype(np.int64)
    return CountsStream(name, Domain.numbered(2), np.column_stack([users - ones, ones]))


def _wrong(stream: str, name: str, given: object, expected: str) -> Mistake:
    return Mistake(
        Problem.STREAM_PARAMETER, stream=stream, name=name, given=given, expected=expected
    )
