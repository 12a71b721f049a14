"""`ldpstream demo`: the seven mechanisms on the sine stream, as a table and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ldpstream.cli.output import console, print_rows, progress


def command(
    out: Annotated[Path, typer.Option(help="folder for the picture")] = Path("demo-output"),
    seed: Annotated[int, typer.Option(help="everything random follows from it")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Show what each mechanism releases of a sine that 200,000 devices hold: epsilon 1, w 20."""
    from ldpstream.lab.figures import releases_figure
    from ldpstream.lab.simulation import simulate
    from ldpstream.mechanisms.registry import names
    from ldpstream.streams.synthetic import sin

    stream = sin()
    results = []
    with progress("seven mechanisms on sin", len(names()) * stream.timestamps) as advance:
        for name in names():
            result = simulate(stream, name, epsilon=1, window=20, seed=seed, progress=advance)
            results.append(result)
    print_rows([result.row() for result in results], as_json=as_json)
    picture = releases_figure(results, label=1, path=out / "releases.png")
    console(as_json=as_json).print(f"truth against releases: {picture}")
