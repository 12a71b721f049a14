"""The settings of a run: all that a mechanism is built from, each part named once."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from ldpstream.arguments import checked
from ldpstream.domain import check_labels
from ldpstream.errors import Mistake, Problem
from ldpstream.mechanisms.levels import FleetLevel, FleetLevels
from ldpstream.mechanisms.noise import VarianceRule
from ldpstream.mechanisms.queries import HISTOGRAM, DistributionQuery, Query
from ldpstream.numeric import Numeric
from ldpstream.oracles import Oracle
from ldpstream.privacy.epsilon import Epsilon
from ldpstream.protocol.slots import EPOCH_WINDOWS
from ldpstream.protocol.terms import SelectionMethod
from ldpstream.refine.consistency import Consistency


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a run, apart from the stream's size, its epsilon and its window."""

    oracle: Oracle | Numeric | None = None
    """None means the one with the least variance at the epsilon of a single report."""
    variance: VarianceRule = VarianceRule.CORRECTED
    pool: bool = False
    """Whether a publication uses the dissimilarity reports as well."""
    consistency: Consistency | None = None
    """None means the mechanism's default."""
    intervals: bool = False
    """Whether carried-over releases get errors and intervals that hold now (`Observed`)."""
    query: Query = HISTOGRAM
    """The query that is asked of the stream."""
    persistence: float = 0.0
    """The share of the simulated users who keep their values (`streams/persistent.py`)."""
    selection: SelectionMethod = SelectionMethod.ROSTER
    """How users come to report; simulated ones by `lab/selection.py`."""
    levels: FleetLevels | None = None
    """The levels of privacy that the simulated users have; None means one for everybody."""
    lag: int | None = None
    """The timestamps after t whose tallies a revised figure may rest on; None means all."""

    @classmethod
    @checked
    def read(
        cls,
        *,
        oracle: Oracle | Numeric | str = "auto",
        variance: VarianceRule | str = VarianceRule.CORRECTED,
        pool: bool = False,
        consistency: Consistency | str | None = None,
        intervals: bool = False,
        query: Query = HISTOGRAM,
        persistence: float = 0.0,
        selection: SelectionMethod | str | None = None,
        levels: FleetLevels | str | None = None,
        lag: int | None = None,
    ) -> RunOptions:
        """Read and check the options as people write them: names, and "auto".

        >>> RunOptions.read(oracle="OUE", consistency="clip").oracle
        <Oracle.OUE: 'oue'>
        """
        usual = SelectionMethod.ROSTER if levels is None else SelectionMethod.SLOTS
        return RunOptions(
            oracle=None if oracle == "auto" else query.oracle(oracle),
            variance=VarianceRule(variance),
            pool=pool,
            consistency=None if consistency is None else Consistency(consistency),
            intervals=intervals,
            query=query,
            persistence=float(persistence),
            selection=_selection(selection or usual),
            levels=None if levels is None else FleetLevels.read(levels),
            lag=_lag(lag),
        )

    def columns(self) -> dict[str, object]:
        """Return the options as columns of plain values, which are equal if the options are."""
        return {name: _plain(getattr(self, name)) for name in OPTIONS}

    def at(self, labels: int, users: int, epsilon: Epsilon, window: int) -> Settings:
        """Return the settings of a run with these options."""
        again = None if self.levels is None else self.levels.return_period
        options = {name: getattr(self, name) for name in OPTIONS}
        return Settings(labels, users, epsilon, window, returns_after=again, **options)


OPTIONS = tuple(field.name for field in fields(RunOptions))


@dataclass(frozen=True)
class Settings(RunOptions):
    """A stream's public parameters, checked once."""

    labels: int
    """For a number, the levels of its range."""
    users: int
    epsilon: Epsilon
    window: int

    returns_after: int | None = None
    """The timestamps after which the same users report again, where it is not the window but
    follows from several (`strata.return_period`)."""

    def __post_init__(self) -> None:
        check_labels(self.labels)
        if self.window < 1:
            raise Mistake(Problem.WINDOW_RANGE, given=self.window)
        if self.users < 1:
            raise Mistake(Problem.TOO_FEW_USERS, users=self.users, window=self.window, needed=1)
        if self.levels is not None:
            self._check_levels(self.levels)

    def _check_levels(self, levels: FleetLevels) -> None:
        levels.sizes(self.users)
        strictest = f"{levels.epsilon} and {levels.window}"
        if (self.epsilon, self.window) != (levels.epsilon, levels.window):
            _refuse_with_levels(
                "epsilon and window", f"{self.epsilon} and {self.window}", strictest
            )
        if self.selection is not SelectionMethod.SLOTS:
            _refuse_with_levels("selection", self.selection, SelectionMethod.SLOTS)
        if isinstance(self.query, DistributionQuery):
            _refuse_with_levels("the query", self.query, "a histogram or a mean")
        if levels.correlation and self.persistence:
            _refuse_with_levels("persistence", self.persistence, "0 if they are correlated")

    @property
    def reshuffle(self) -> int | None:
        """The timestamps after which users are dealt into other groups, or None for never."""
        return EPOCH_WINDOWS * self.window if self.selection is SelectionMethod.SLOTS else None

    def at_level(self, level: FleetLevel) -> Settings:
        """Return the settings of a stream in which everybody has this level."""
        return replace(
            self, epsilon=level.epsilon, window=level.window, levels=None, returns_after=None
        )


def _refuse_with_levels(option: str, given: object, expected: str) -> None:
    raise Mistake(Problem.OPTION, option=f"{option} with levels", given=given, expected=expected)


def _selection(written: str) -> SelectionMethod:
    try:
        return SelectionMethod(written)
    except ValueError:
        known = ", ".join(SelectionMethod)
        raise Mistake(
            Problem.OPTION, option="selection", given=written, expected=f"one of {known}"
        ) from None


def _lag(written: int | None) -> int | None:
    if written is not None and written < 0:
        raise Mistake(Problem.OPTION, option="lag", given=written, expected="0 or more")
    return written


def _plain(value: object) -> object:
    """Return a value that tables and JSON can hold; enums of this package are strings already."""
    return value if value is None or isinstance(value, bool | int | float) else str(value)
