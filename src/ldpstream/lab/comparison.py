"""All mechanisms on one stream of the user's own: what to run, and what to show of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

from ldpstream.lab.experiment import Experiment
from ldpstream.lab.figures.charts import Axis, Chart, Panel, Row
from ldpstream.lab.reproduction.studies import BARS, CFPU, EPSILON, HITS, MRE, WINDOW
from ldpstream.lab.simulation import Simulation, settings_of, simulate_at
from ldpstream.mechanisms.queries import DistributionQuery, MeanQuery
from ldpstream.mechanisms.settings import RunOptions
from ldpstream.streams.stream import Stream


@dataclass(frozen=True)
class Comparison:
    """Mechanisms on a stream, over a grid of epsilons and windows.

    >>> from ldpstream.streams.synthetic import sin
    >>> comparison = Comparison(sin(users=2000, timestamps=40), ("lpu", "lsp"), windows=(5, 10))
    >>> [chart.name for chart in comparison.charts(comparison.experiment().run().rows)]
    ['error-epsilon', 'error-window', 'communication', 'roc']
    """

    stream: Stream
    mechanisms: Sequence[str]
    epsilons: Sequence[float] = (0.5, 1.0, 2.0)
    windows: Sequence[int] = (10, 20, 40)
    repeats: int = 3
    options: RunOptions = RunOptions()  # noqa: RUF009 - frozen
    seed: int = 0

    def experiment(self) -> Experiment:
        return Experiment(
            [self.stream],
            self.mechanisms,
            self.epsilons,
            self.windows,
            repeats=self.repeats,
            options=self.options,
            seed=self.seed,
        )

    def releases(self, mechanisms: Sequence[str]) -> list[Simulation]:
        """Run these mechanisms once more, to show what they release in the middle of the grid.

        The run is the first repeat of the experiment there.
        """
        epsilon, window = median_low(self.epsilons), median_low(self.windows)
        settings = settings_of(self.stream, epsilon, window, self.options)
        return [simulate_at(settings, self.stream, name, seed=self.seed) for name in mechanisms]

    @property
    def _value(self) -> str:
        """What an event is about: the parts of an answer whose error counts."""
        match self.options.query:
            case MeanQuery():
                return "the mean"
            case DistributionQuery():
                return "the share of a bin"
            case _:
                return "a label's frequency"

    def charts(self, rows: Sequence[Row]) -> list[Chart]:
        epsilon, window = median_low(self.epsilons), median_low(self.windows)
        charts = [
            Chart(
                "error-epsilon",
                "Error against the privacy budget",
                f"One panel for each window. {BARS}",
                MRE,
                tuple(_panel(rows, EPSILON, MRE, window=w) for w in self.windows),
            ),
            Chart(
                "error-window",
                "Error against the window",
                f"One panel for each ε. {BARS}",
                MRE,
                tuple(_panel(rows, WINDOW, MRE, epsilon=e) for e in self.epsilons),
            ),
            Chart(
                "communication",
                "Communication",
                f"What each user sends. {BARS}",
                CFPU,
                (
                    _panel(rows, EPSILON, CFPU, window=window),
                    _panel(rows, WINDOW, CFPU, epsilon=epsilon),
                ),
            ),
        ]
        shown = _where(rows, epsilon, window)
        roc = Panel.of_roc(f"ε = {epsilon:g}, w = {window}", shown, "roc_per_label")
        if roc.points:
            said = f"An event: {self._value} is above 0.75 (max - min) + min of its own. "
            said += "Curves are means over labels and repeats; AUC is the area under them."
            charts.append(Chart("roc", "Finding high values", said, HITS, (roc,)))
        return charts


def _panel(
    rows: Sequence[Row],
    x: Axis,
    y: Axis,
    *,
    epsilon: float | None = None,
    window: int | None = None,
) -> Panel:
    title = f"w = {window}" if epsilon is None else f"ε = {epsilon:g}"
    return Panel.of(title, x, y.name, _where(rows, epsilon, window))


def _where(rows: Sequence[Row], epsilon: float | None, window: int | None) -> list[Row]:
    """Return the runs with this epsilon and this window; None matches any."""
    return [
        row for row in rows if epsilon in (None, row["epsilon"]) and window in (None, row["window"])
    ]
