"""The figures of many runs, as a tidy table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ldpstream.arguments import one_of
from ldpstream.errors import Mistake, Problem
from ldpstream.lab.frames import pandas_frame, polars_frame
from ldpstream.lab.metrics import Metrics, or_none
from ldpstream.lab.paired import Paired, paired
from ldpstream.mechanisms.settings import OPTIONS

if TYPE_CHECKING:
    import pandas
    import polars

Row = dict[str, Any]

PARAMETERS = (
    "stream",
    "fingerprint",
    "mechanism",
    *OPTIONS,
    "asked_oracle",
    "epsilon",
    "window",
    "users",
    "timestamps",
    "labels",
)
"""The columns that identify a setting: all options of a run, so that none can be forgotten. The
oracle is the one that was used, `asked_oracle` the one that was asked for, which may be "auto".
Streams of one name may differ, hence the fingerprint."""
COMPARED = tuple(name for name in PARAMETERS if name not in ("mechanism", "oracle"))
"""The columns that are the same for two mechanisms that are compared: what was asked for, since
"auto" may choose another oracle for each."""
CURVES = ("roc", "roc_per_label")
METRICS = (*(field.name for field in fields(Metrics)), "seconds")


@dataclass(frozen=True, repr=False)
class Results:
    """A table with a row for each run: PARAMETERS, `seed`, `repeat`, METRICS, and two curves.

    `roc` is the list of true-positive rates at false-positive rates 0, .01 .. 1, pooled over
    labels, and `roc_per_label` the mean of those of all labels; None where the stream has no event.

    >>> from ldpstream import Experiment, sin
    >>> Experiment([sin(users=2_000, timestamps=20)], ["lpu"], windows=[5], repeats=2).run()
    Results(2 runs in 1 settings: lpu)
    """

    rows: list[Row]

    def __repr__(self) -> str:
        names = ", ".join(dict.fromkeys(row["mechanism"] for row in self.rows))
        settings = len({_setting(row) for row in self.rows})
        return f"Results({len(self.rows):,} runs in {settings:,} settings: {names})"

    @classmethod
    def joined(cls, parts: Iterable[Results]) -> Results:
        return cls([row for part in parts for row in part.rows])

    def summary(self) -> list[Row]:
        """Return a row for each setting: mean and `<metric>_sd` over its repeats, and their number.

        None stands for a figure that does not exist, such as the coverage of rare labels.
        The standard deviation is that of a sample (n - 1); for a single run it is 0.
        """
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in self.rows:
            groups.setdefault(_setting(row), []).append(row)
        return [_summed_up(rows) for rows in groups.values()]

    def differences(self, metric: str = "mse", *, to: str) -> list[Row]:
        """Return paired differences to one mechanism: a row for each other one and setting.

        `difference` is the mean over the repeats of the figure minus that of `to` in the same
        repeat, `low` and `high` its 95 % interval (None for one repeat), and `differs` whether 0
        lies outside of it. Say that two mechanisms differ only where it does. Only runs that were
        asked for the same oracle are compared, and only those that have such a figure.

        Args:
            metric: a column of METRICS.
            to: the mechanism that all others are compared with.
        """
        one_of("metric", metric, METRICS)
        one_of("to", to, dict.fromkeys(row["mechanism"] for row in self.rows))
        found: dict[tuple[Any, ...], dict[str, dict[tuple[int, int], float]]] = {}
        for row in self.rows:
            if row[metric] is None:
                continue
            runs = found.setdefault(tuple(row[name] for name in COMPARED), {})
            figures = runs.setdefault(row["mechanism"], {})
            figure = figures.setdefault((row["seed"], row["repeat"]), row[metric])
            if figure != row[metric]:
                _refuse_twice(row, metric, figure)
        rows = []
        for setting, runs in found.items():
            for mechanism, figures in runs.items():
                pairs = figures.keys() & runs.get(to, {}).keys()
                if mechanism == to or not pairs:
                    continue
                said = paired([figures[one] for one in pairs], [runs[to][one] for one in pairs])
                rows.append(_difference(setting, mechanism, to, metric, said))
        return rows

    def to_polars(self) -> polars.DataFrame:
        """Return a row for each run, with `roc` as a column of lists."""
        return polars_frame(self.rows)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a row for each run, with `roc` as a column of lists."""
        return pandas_frame(self.rows)


def _setting(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in PARAMETERS)


def _refuse_twice(row: Row, metric: str, figure: float) -> NoReturn:
    same = {name: row[name] for name in ("mechanism", "stream", "seed", "repeat")}
    figures = f"{figure} and {row[metric]}"
    raise Mistake(Problem.RUN_TWICE, **same, metric=metric, figures=figures)


def _difference(
    setting: tuple[Any, ...], mechanism: str, to: str, metric: str, said: Paired
) -> Row:
    return {
        **dict(zip(COMPARED, setting, strict=True)),
        "mechanism": mechanism,
        "to": to,
        "metric": metric,
        "difference": said.mean,
        "low": said.low if said.known else None,
        "high": said.high if said.known else None,
        "repeats": said.pairs,
        "differs": said.differs,
    }


def _summed_up(rows: list[Row]) -> Row:
    summary: Row = {name: rows[0][name] for name in PARAMETERS}
    for metric in METRICS:
        figures = np.array([row[metric] for row in rows], np.float64)
        summary[metric] = or_none(float(figures.mean()))
        summary[f"{metric}_sd"] = or_none(float(figures.std(ddof=1))) if len(rows) > 1 else 0.0
    for name in CURVES:
        curves = [row[name] for row in rows]
        summary[name] = None if None in curves else np.mean(curves, axis=0).tolist()
    summary["repeats"] = len(rows)
    return summary
