"""`ldpstream leaderboard`: every mechanism on every stream, under the same promise, as one page."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from ldpstream.cli import options
from ldpstream.cli.output import console, print_rows, progress
from ldpstream.cli.running import check_folder, command_line, mechanisms_named, resumable


def command(
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="folder for the page, its picture and its CSV")],
    mechanisms: Annotated[str, typer.Option(help="names, separated by commas; or all")] = "all",
    epsilon: Annotated[float, typer.Option(help="privacy budget of any window")] = 1.0,
    window: Annotated[int, typer.Option(help="length w of the window, in timestamps")] = 20,
    users: Annotated[
        int, typer.Option(help="users of the built-in and generated streams", min=1)
    ] = 200_000,
    timestamps: Annotated[
        int, typer.Option(help="length in timestamps; real streams are cut after this many", min=1)
    ] = 400,
    repeats: options.Repeats = 3,
    engine: options.Engine = None,
    seed: options.Seed = 0,
    markdown: Annotated[
        Path | None, typer.Option(help="write the page to this Markdown file as well")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Rank every mechanism on built-in, generated and prepared real streams, as one page.

    Every run is kept: after Ctrl-C, the same command goes on where it was stopped.
    """
    from dataclasses import asdict

    from ldpstream.extras import need
    from ldpstream.lab.engines import engine_named
    from ldpstream.lab.experiment import ResultCache
    from ldpstream.lab.leaderboard import Leaderboard, entries
    from ldpstream.lab.report.leaderboard import FinishedLeaderboard, write_leaderboard
    from ldpstream.streams.datasets.registry import prepared_streams

    check_folder("--out", out)
    need("leaderboard", "figures")
    streams = entries(prepared_streams(timestamps), users, timestamps)
    board = Leaderboard(streams, mechanisms_named(mechanisms), epsilon, window, repeats, seed)
    experiment, began = board.experiment(), time.monotonic()
    with resumable(), engine_named(engine) as used, ResultCache() as cache:
        with progress("leaderboard", len(experiment.tasks())) as advance:
            results = experiment.run(engine=used, cache=cache, progress=advance)
        waited = time.monotonic() - began
        done = FinishedLeaderboard(board, board.places(results), command_line(context), waited)
        page = write_leaderboard(done, out, markdown)
    rows = [asdict(one) for one in done.standings]
    if as_json:
        print(json.dumps({"standings": rows, "seconds": waited, "page": str(page)}, indent=1))
        return
    print_rows(rows, as_json=False)
    console(as_json=False).print(f"page: {page}")
