"""`ldpstream data`: list and prepare the real data sets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpstream.cli import options
from ldpstream.cli.output import Row, print_rows, stages

if TYPE_CHECKING:
    from ldpstream.streams.datasets.dataset import DataSet
    from ldpstream.streams.events import EventsStream

app = typer.Typer(help="List and prepare real data sets.", no_args_is_help=True)


@app.command("list")
def list_sets(as_json: options.Json = False) -> None:
    """List the data sets: what each one is, where to get it, and whether it is prepared."""
    from ldpstream.streams.datasets.registry import DATA_SETS

    rows = [_row(known, known.open()) for known in DATA_SETS.values()]
    print_rows(rows if as_json else [_brief(row) for row in rows], as_json=as_json)
    for row in rows:
        if not (as_json or row["prepared"]):
            print(f"{row['name']}: {row['where']} (licence: {row['licence']})")


@app.command()
def prepare(
    name: Annotated[str, typer.Argument(help="a name from: ldpstream data list")],
    source: Annotated[
        Path | None, typer.Option("--from", help="the downloaded file or folder")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Read a downloaded data set and store it for use as --stream NAME."""
    from ldpstream.streams.datasets.registry import data_set

    known = data_set(name)
    with stages(f"preparing {name}") as watch:
        stream = known.prepare(source, watch)
    row = _row(known, stream)
    print_rows([row if as_json else _brief(row)], as_json=as_json)


def _row(known: DataSet, stream: EventsStream | None) -> Row:
    return {
        "name": known.name,
        "what": known.what,
        "where": known.where,
        "licence": known.licence,
        "prepared": stream is not None,
        "users": stream and stream.users,
        "timestamps": stream and stream.timestamps,
        "labels": stream and len(stream.domain),
    }


def _brief(row: Row) -> Row:
    """Return the part of a row that fits into a line of a terminal."""
    yes_or_no = {"prepared": "yes" if row["prepared"] else "no"}
    sizes = {name: row[name] or "-" for name in ("users", "timestamps", "labels")}
    return {"name": row["name"], "what": row["what"], **yes_or_no, **sizes}
