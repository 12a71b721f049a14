"""`ldpstream backup` and `ldpstream restore`: a collector's store in one file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpstream.cli import options

if TYPE_CHECKING:
    from ldpstream.collector.service.backup import Content

Configuration = Annotated[
    Path, typer.Argument(help="configuration file, TOML (docs/collector.md)", metavar="CONFIG")
]


def back_up(
    config: Configuration,
    file: Annotated[Path, typer.Argument(help="the backup to write", metavar="FILE")],
    secrets: Annotated[
        bool,
        typer.Option("--secrets", help="with the secrets, for a machine that has none of them"),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Back up the store of a collector, which may be running, and check it by restoring it."""
    from ldpstream.collector.config import load
    from ldpstream.collector.service.backup import back_up as make

    _print(file, make(load(config), file, with_secrets=secrets), "backed up", as_json=as_json)


def restore(
    file: Annotated[Path, typer.Argument(help="a backup", metavar="FILE")],
    config: Configuration,
    as_json: options.Json = False,
) -> None:
    """Restore the store of a configuration, file or database, from a backup; none may exist."""
    from ldpstream.collector.config import load
    from ldpstream.collector.service.backup import restore as make

    _print(file, make(file, load(config)), "restored", as_json=as_json)


def _print(file: Path, content: Content, done: str, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"file": str(file)} | vars(content)))
        return
    secrets = f"with the secrets {', '.join(content.secrets)}" if content.secrets else "no secrets"
    print(f"{file}: {len(content.streams)} stream(s) {done} and checked, {secrets}")
    for name, last_t in content.streams.items():
        print(f"  {name}: up to t={last_t}")
