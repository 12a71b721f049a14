"""Options that several commands share, each defined once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def _load(plugins: list[Path] | None) -> list[Path] | None:
    from ldpstream.lab.plugins import load_plugins

    load_plugins(plugins or [])
    return plugins


Attribute = Annotated[
    list[str] | None,
    typer.Option(
        help="a public attribute of the users, and the share of them with each value, such as "
        "country=de:0.6,fr:0.3; may be given several times"
    ),
]
Collector = Annotated[
    str, typer.Option(help="the collector's address, such as http://127.0.0.1:8080")
]
Engine = Annotated[
    str | None, typer.Option(help="dask://HOST:PORT; default: all cores of this machine")
]
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Lag = Annotated[
    int | None,
    typer.Option(
        help="timestamps after t whose tallies a revised figure may rest on; default: all"
    ),
]
Oracle = Annotated[str, typer.Option(help="oracle: auto, grr, sue, oue, blh, olh, ...")]
NoCache = Annotated[
    bool,
    typer.Option("--no-cache", help="rerun everything, and cache no results"),
]
Persistence = Annotated[
    float,
    typer.Option(
        help="share of the users who keep their values as far as the counts allow; the others draw "
        "theirs afresh at each timestamp"
    ),
]
Plugin = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        help="a Python file that registers a mechanism; may be given several times",
        callback=_load,
        is_eager=True,
    ),
]
"""Loaded while options are read, so that no command can forget it."""
Pool = Annotated[
    bool, typer.Option("--pool", help="publish from the dissimilarity reports as well")
]
ReadToken = Annotated[
    str, typer.Option(envvar="LDPSTREAM_READ_TOKEN", help="read token of a private stream")
]
Repeats = Annotated[int, typer.Option(help="number of runs to average")]
Seed = Annotated[int, typer.Option(help="seed of all random choices")]
Selection = Annotated[
    str, typer.Option(help="how users come to report: roster, open or slots (lpu and lpf only)")
]
Variance = Annotated[str, typer.Option(help="variance formula: paper (as printed) or corrected")]
Window = Annotated[int, typer.Option(help="length w of the window, in timestamps")]
