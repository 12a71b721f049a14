"""`ldpstream simulate`: run mechanisms on a stream and print a row of figures for each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from ldpstream.cli import options, queries, sources
from ldpstream.cli.grouped import grouped
from ldpstream.cli.output import print_rows, progress
from ldpstream.cli.running import check_picture, mechanisms_named
from ldpstream.errors import Mistake, Problem
from ldpstream.extras import need

if TYPE_CHECKING:
    from ldpstream.streams.stream import Stream

SHOWN = 3
"""The labels that --plot shows, if none are named."""


@grouped
def command(
    source: sources.Source,
    labels: sources.Labels = None,
    users: sources.Users = None,
    timestamps: sources.Timestamps = None,
    mean: queries.Mean = None,
    distribution: queries.Distribution = None,
    vocabulary: Annotated[
        bool,
        typer.Option(
            "--vocabulary", help="any text, from an empty list; with --stream words and lpf"
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
    attribute: Annotated[
        list[str] | None,
        typer.Option(
            help="a public attribute of the users, and the share of them with each value, such as "
            "country=de:0.6,fr:0.3; for lpu and lpf; may be given several times"
        ),
    ] = None,
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
    from ldpstream.lab.breakdown import simulate_parted
    from ldpstream.lab.figures.releases import releases_figure
    from ldpstream.lab.metrics import MRE_FLOOR
    from ldpstream.lab.simulation import simulate
    from ldpstream.mechanisms.settings import RunOptions

    if plot is not None:
        check_picture("--plot", plot)
        need("--plot", "figures")
    stream = source.open(labels=labels, users=users, timestamps=timestamps, seed=seed)
    query = queries.query_of(mean, distribution)
    if vocabulary:
        others = {
            "--mean or --distribution": query != queries.query_of(None, None),
            "--levels": levels is not None,
            "--oracle": oracle not in ("auto", "hadamard"),
            "--variance": variance != "corrected",
            "--pool": pool,
            "--consistency": consistency is not None,
            "--persistence": persistence != 0,
            "--selection": selection not in (None, "slots"),
            "--lag": lag is not None,
            "--attribute": bool(attribute),
            "--plugin": plugin is not None,
            "--plot": plot is not None,
        }
        _refuse_others(mechanism, others)
        _texts(stream, epsilon or "1", window or 20, repeats, seed, as_json=as_json)
        return
    _check_labels(plot_label or [], query.names(stream.domain.labels), plot)
    if attribute:
        given = {"--pool": pool, "--persistence": persistence, "--lag": lag, "--plot": plot}
        _refuse_with_attributes({**given, "--levels": levels})
        read = RunOptions.read(
            oracle=oracle,
            variance=variance,
            consistency=consistency,
            intervals=True,
            query=query,
            selection=selection or "slots",
        )
        names = _with_slots() if mechanism == "all" else mechanisms_named(mechanism)
        parted: list[dict[str, object]] = []
        with progress(f"simulating {stream.name}", len(names) * repeats * stream.timestamps) as by:
            for name in names:
                parted += simulate_parted(
                    stream,
                    name,
                    attribute,
                    epsilon=epsilon or "1",
                    window=20 if window is None else window,
                    options=read,
                    repeats=repeats,
                    seed=seed,
                    progress=by,
                )
        if not as_json:
            parted = [row | {"group": row["group"] or "the fleet"} for row in parted]
        print_rows(_without_empty(parted), as_json=as_json)
        return
    chosen = mechanisms_named(mechanism) if levels is None else _with_levels(mechanism)
    if levels is None:
        epsilon, window = epsilon or "1", 20 if window is None else window
    results = []
    total = len(chosen) * repeats * stream.timestamps
    with progress(f"simulating {stream.name}", total) as advance:
        for name in chosen:
            result = simulate(
                stream,
                name,
                epsilon=epsilon,
                window=window,
                oracle=oracle,
                variance=variance,
                pool=pool,
                consistency=consistency,
                intervals=intervals,
                query=query,
                persistence=persistence,
                selection=selection,
                levels=levels,
                lag=lag,
                repeats=repeats,
                seed=seed,
                progress=advance,
            )
            results.append(result)
    rows = [result.row() for result in results]
    if not as_json:
        rows = [_readable(row, intervals=intervals) for row in rows]
    print_rows(rows, as_json=as_json)
    if plot is not None:
        releases_figure(results, plot, plot_label or (), SHOWN)
    if not as_json:
        floor = MRE_FLOOR * query.unit
        print(f"mean relative error (mre) with a floor of {floor:g}; {repeats} repeat(s)")
        if not intervals:
            said = "coverage: of intervals as of each release"
            print(f"{said}; --intervals gives those that hold now, and their coverage by kind")


def _refuse_others(mechanism: str, others: dict[str, bool]) -> None:
    """Refuse options that a vocabulary cannot have: texts have one mechanism and one oracle."""
    for option in (option for option, given in others.items() if given):
        _refuse_with_texts(option, "given", "it without --vocabulary")
    if mechanism not in ("all", "lpf"):
        _refuse_with_texts("--mechanism", mechanism, "lpf")


def _refuse_with_texts(option: str, given: str, expected: str) -> NoReturn:
    option = f"{option} with --vocabulary"
    raise Mistake(Problem.OPTION, option=option, given=given, expected=expected)


def _texts(
    stream: Stream, epsilon: str, window: int, repeats: int, seed: int, *, as_json: bool
) -> None:
    """Follow texts that nobody has listed; print what was found."""
    from ldpstream.lab.vocabulary import LIGHT, planned, simulate_texts
    from ldpstream.privacy.epsilon import Epsilon
    from ldpstream.streams.words import WordStream

    if not isinstance(stream, WordStream):
        _refuse_with_texts("--stream", stream.name, "words, as in words:texts=50000,exponent=1")
    size, rows = Epsilon.of(epsilon), []
    with progress(f"simulating {stream.name}", repeats * stream.timestamps) as advance:
        for number in range(seed, seed + repeats):
            words = planned(stream.users, size, number)
            row = simulate_texts(stream, size, window, words, seed=number, progress=advance)
            rows.append(row)
    print_rows(rows, as_json=as_json)
    if not as_json:
        print(
            f"heavy: from a share of {rows[0]['heavy']:.3g} on, if not too long to be found"
            f" (docs/vocabulary.md); false: below {LIGHT:g} of that"
        )


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


def _refuse_with_attributes(given: dict[str, object]) -> None:
    """Refuse options that a breakdown does not know."""
    for option, value in given.items():
        if value:
            raise Mistake(
                Problem.OPTION, option=option, given=value, expected="it without --attribute"
            )


def _without_empty(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Leave out the figures that no row has, such as those of quantiles."""
    known = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    return [{name: row[name] for name in known} for row in rows]


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
