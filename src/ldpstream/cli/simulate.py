"""`ldpstream simulate`: mechanisms on a stream, one row of figures each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpstream.cli.output import print_rows, progress
from ldpstream.errors import Mistake, Problem

if TYPE_CHECKING:
    from ldpstream.streams.stream import Stream


def command(
    stream: Annotated[
        str | None,
        typer.Option(help="sin, log, lns, step, constant or zipf; parameters as in sin:b=0.1"),
    ] = None,
    counts: Annotated[
        Path | None,
        typer.Option(help="a CSV: a row a timestamp, a column a label, header = labels"),
    ] = None,
    mechanism: Annotated[str, typer.Option(help="one or more, with commas; or all")] = "all",
    epsilon: Annotated[str, typer.Option(help="privacy of any window")] = "1",
    window: Annotated[int, typer.Option(help="w, in timestamps")] = 20,
    users: Annotated[int | None, typer.Option(help="fleet size of a built-in stream")] = None,
    timestamps: Annotated[int | None, typer.Option(help="length of a built-in stream")] = None,
    oracle: Annotated[str, typer.Option(help="auto, grr, sue, oue, blh, olh, ...")] = "auto",
    variance: Annotated[str, typer.Option(help="paper (as printed) or corrected")] = "corrected",
    pool: Annotated[
        bool, typer.Option("--pool", help="publish from the dissimilarity reports as well")
    ] = False,
    repeats: Annotated[int, typer.Option(help="runs to average")] = 1,
    seed: Annotated[int, typer.Option(help="everything random follows from it")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Run mechanisms on a stream with a simulated fleet and print their error and their cost."""
    from ldpstream.lab.metrics import MRE_FLOOR
    from ldpstream.lab.simulation import simulate
    from ldpstream.mechanisms.registry import names

    source = _source(stream, counts, users, timestamps, seed)
    chosen = names() if mechanism == "all" else tuple(mechanism.split(","))
    rows = []
    total = len(chosen) * repeats * source.timestamps
    with progress(f"simulating {source.name}", total) as advance:
        for name in chosen:
            result = simulate(
                source,
                name,
                epsilon=epsilon,
                window=window,
                oracle=oracle,
                variance=variance,
                pool=pool,
                repeats=repeats,
                seed=seed,
                progress=advance,
            )
            rows.append(result.row())
    print_rows(rows, as_json=as_json)
    if not as_json:
        print(f"mean relative error (mre) with a floor of {MRE_FLOOR}; {repeats} repeat(s)")


def _source(
    stream: str | None, counts: Path | None, users: int | None, timestamps: int | None, seed: int
) -> Stream:
    from ldpstream.streams.counts import read_counts
    from ldpstream.streams.synthetic import named

    if counts is None:
        return named(stream or "sin", users, timestamps, seed)
    for option, given in (("--stream", stream), ("--users", users), ("--timestamps", timestamps)):
        if given is not None:
            raise Mistake(
                Problem.OPTION, option=option, given=given, expected="either it or --counts"
            )
    return read_counts(counts)
