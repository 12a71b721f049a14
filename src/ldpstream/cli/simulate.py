"""`ldpstream simulate`: run mechanisms on a stream and print a row of figures for each."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from ldpstream.cli import options, queries, sources
from ldpstream.cli.grouped import grouped
from ldpstream.cli.output import print_rows, progress
from ldpstream.cli.running import check_picture, mechanisms_named, refuse_beside
from ldpstream.errors import Mistake, Problem
from ldpstream.extras import need

if TYPE_CHECKING:
    from ldpstream.lab.simulation import Progress, Simulation
    from ldpstream.mechanisms.settings import RunOptions, Settings
    from ldpstream.streams.stream import Stream

SHOWN = 3
"""The labels that --plot shows, if none are named."""


@grouped
def command(
    source: sources.StreamOptions,
    labels: sources.Labels = None,
    users: sources.Users = None,
    timestamps: sources.Timestamps = None,
    mean: queries.Mean = None,
    distribution: queries.Distribution = None,
    vocabulary: Annotated[
        bool,
        typer.Option(
            "--vocabulary", help="discover texts, from an empty list; with --stream words and lpf"
        ),
    ] = False,
    mechanism: Annotated[
        str, typer.Option(help="one or more mechanisms, separated by commas; or all")
    ] = "all",
    epsilon: Annotated[
        str | None, typer.Option(help="privacy budget of any window; 1, unless there are levels")
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(help="length w of the window, in timestamps; 20, unless there are levels"),
    ] = None,
    levels: Annotated[
        str | None,
        typer.Option(
            help="levels of privacy, for lpu, lpf and comparators: epsilon:window:share of the "
            "users, separated by commas; correlated:SHARE at the end ties levels to values"
        ),
    ] = None,
    oracle: options.Oracle = "auto",
    variance: options.Variance = "corrected",
    pool: options.Pool = False,
    consistency: Annotated[
        str | None,
        typer.Option(
            help="post-processing: none, clip, norm-sub or base-cut; default: the mechanism's own"
        ),
    ] = None,
    intervals: Annotated[
        bool,
        typer.Option(
            "--intervals", help="compute intervals that hold for carried-over releases, too"
        ),
    ] = False,
    persistence: options.Persistence = 0.0,
    selection: Annotated[
        str | None,
        typer.Option(
            help="how users come to report: roster (default), open, or slots (lpu and lpf only; "
            "always with levels)"
        ),
    ] = None,
    attribute: options.Attribute = None,
    lag: options.Lag = None,
    plugin: options.Plugin = None,
    repeats: options.Repeats = 1,
    seed: options.Seed = 0,
    plot: Annotated[
        Path | None,
        typer.Option(help="plot truth, releases and intervals to this .png, .svg or .pdf file"),
    ] = None,
    plot_label: Annotated[
        list[str] | None,
        typer.Option(
            help="with --plot: a label to show; may be given several times; default: the three "
            "that move most"
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Run mechanisms on a stream with a simulated fleet and print their error and their cost."""
    from ldpstream.lab.figures.releases import releases_figure
    from ldpstream.lab.simulation import settings_of, simulate_at
    from ldpstream.mechanisms.settings import RunOptions

    if plot is not None:
        check_picture("--plot", plot)
        need("--plot", "figures")
    stream = source.open(labels=labels, users=users, timestamps=timestamps, seed=seed)
    query = queries.query_of(mean, distribution)
    runs = _Runs(stream, epsilon or "1", 20 if window is None else window, repeats, seed)
    others = {
        "--levels": levels is not None,
        "--pool": pool,
        "--persistence": persistence != 0,
        "--lag": lag is not None,
        "--plot": plot is not None,
    }
    if vocabulary:
        others |= {
            "--mean or --distribution": mean is not None or distribution is not None,
            "--oracle": oracle not in ("auto", "hadamard"),
            "--variance": variance != "corrected",
            "--consistency": consistency is not None,
            "--selection": selection not in (None, "slots"),
            "--attribute": bool(attribute),
            "--plugin": plugin is not None,
        }
        refuse_beside("--vocabulary", others)
        _print_texts(runs, mechanism, as_json=as_json)
        return
    _check_labels(plot_label or [], query.names(stream.domain.labels), plot)
    if attribute:
        refuse_beside("--attribute", others)
    chosen = RunOptions.read(
        oracle=oracle,
        variance=variance,
        pool=pool,
        consistency=consistency,
        intervals=intervals or bool(attribute),
        query=query,
        persistence=persistence,
        selection=selection or ("slots" if attribute else None),
        levels=levels,
        lag=lag,
    )
    if attribute:
        _print_groups(runs, mechanism, attribute, chosen, as_json=as_json)
        return
    if levels is None:
        epsilon, window = runs.epsilon, runs.window
    settings = settings_of(stream, epsilon, window, chosen)
    names = mechanisms_named(mechanism) if levels is None else _with_levels(mechanism)
    results = []
    with runs.progress(len(names)) as advance:
        for name in names:
            found = simulate_at(
                settings, stream, name, repeats=repeats, seed=seed, progress=advance
            )
            results.append(found)
    _print_mechanisms(results, settings, as_json=as_json)
    if plot is not None:
        releases_figure(results, plot, plot_label or (), SHOWN)


@dataclass(frozen=True)
class _Runs:
    """The stream of some runs, their promise to all users, and how many there are."""

    stream: Stream
    epsilon: str
    window: int
    repeats: int
    seed: int

    def progress(self, mechanisms: int = 1) -> AbstractContextManager[Progress]:
        total = mechanisms * self.repeats * self.stream.timestamps
        return progress(f"simulating {self.stream.name}", total)


def _print_texts(runs: _Runs, mechanism: str, *, as_json: bool) -> None:
    """Follow texts that nobody has listed; print what was found."""
    from ldpstream.lab.simulation import check_repeats
    from ldpstream.lab.vocabulary import LIGHT, planned, simulate_texts
    from ldpstream.privacy.epsilon import Epsilon
    from ldpstream.streams.words import WordStream

    if mechanism not in ("all", "lpf"):
        _refuse_with_texts("--mechanism", mechanism, "lpf")
    if not isinstance(runs.stream, WordStream):
        expected = "words, as in words:texts=50000,exponent=1"
        _refuse_with_texts("--stream", runs.stream.name, expected)
    check_repeats(runs.repeats, runs.seed)
    stream, epsilon, rows = runs.stream, Epsilon.of(runs.epsilon), []
    with runs.progress() as advance:
        for seed in range(runs.seed, runs.seed + runs.repeats):
            words = planned(stream.users, epsilon, seed)
            row = simulate_texts(stream, epsilon, runs.window, words, seed=seed, progress=advance)
            rows.append(row)
    print_rows(rows, as_json=as_json)
    if not as_json:
        print(
            f"heavy: from a share of {rows[0]['heavy']:.3g} on, if not too long to be found"
            f" (docs/vocabulary.md); false: below {LIGHT:g} of that"
        )


def _refuse_with_texts(option: str, given: str, expected: str) -> NoReturn:
    option = f"{option} with --vocabulary"
    raise Mistake(Problem.OPTION, option=option, given=given, expected=expected)


def _print_groups(
    runs: _Runs, mechanism: str, attributes: list[str], chosen: RunOptions, *, as_json: bool
) -> None:
    """Print a row for the fleet and for each group of users, of each mechanism."""
    from ldpstream.lab.breakdown import simulate_parted

    names = _with_slots() if mechanism == "all" else mechanisms_named(mechanism)
    rows: list[dict[str, object]] = []
    with runs.progress(len(names)) as advance:
        for name in names:
            rows += simulate_parted(
                runs.stream,
                name,
                attributes,
                epsilon=runs.epsilon,
                window=runs.window,
                options=chosen,
                repeats=runs.repeats,
                seed=runs.seed,
                progress=advance,
            )
    if not as_json:
        rows = [row | {"group": row["group"] or "the fleet"} for row in rows]
    print_rows(rows, as_json=as_json)


def _print_mechanisms(results: list[Simulation], settings: Settings, *, as_json: bool) -> None:
    """Print a row for each mechanism, and below the table how to read it."""
    from ldpstream.lab.metrics import MRE_FLOOR

    rows = [result.row() for result in results]
    if as_json:
        print_rows(rows, as_json=True)
        return
    print_rows([_readable(row, intervals=settings.intervals) for row in rows], as_json=False)
    floor, repeats = MRE_FLOOR * settings.query.unit, len(results[0].runs)
    print(f"mean relative error (mre) with a floor of {floor:g}; {repeats} repeat(s)")
    if not settings.intervals:
        said = "coverage: of intervals as of each release"
        print(f"{said}; --intervals gives those that hold now, and their coverage by kind")


def _check_labels(labels: list[str], known: tuple[str, ...], plot: Path | None) -> None:
    """Refuse labels that cannot be shown, before anything runs."""
    for label in labels:
        if plot is None:
            expected = "--plot beside it"
            raise Mistake(Problem.OPTION, option="--plot-label", given=label, expected=expected)
        if label not in known:
            few = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
            raise Mistake(Problem.LABEL_UNKNOWN, label=label, known=few)


def _with_levels(text: str) -> tuple[str, ...]:
    """Return the mechanisms of a list with commas; for "all", those that can have levels."""
    from ldpstream.lab.personal import PERSONAL

    if text == "all":
        return (*_with_slots(), *PERSONAL)
    return mechanisms_named(text)


def _with_slots() -> tuple[str, ...]:
    from ldpstream.mechanisms.registry import names, takes_slots

    return tuple(filter(takes_slots, names()))


def _readable(row: dict[str, object], *, intervals: bool) -> dict[str, object]:
    """Leave out what would make a table too wide: options as usual, and kinds of coverage."""
    from ldpstream.mechanisms.settings import RunOptions

    hidden = "covered" if intervals else ("covered", "coverage_")
    usual = RunOptions().columns() | {"seed": 0}
    return {
        name: figure
        for name, figure in row.items()
        if not name.startswith(hidden) and (name not in usual or figure != usual[name])
    }
