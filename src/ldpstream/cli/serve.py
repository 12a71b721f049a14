"""`ldpstream serve`: a collector for the streams of one configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ldpstream.errors import Mistake, Problem


def command(
    file: Annotated[Path, typer.Argument(help="configuration, TOML (docs/collector.md)")],
    check: Annotated[bool, typer.Option("--check", help="check the file and stop")] = False,
    log: Annotated[
        str, typer.Option(help="least level of log lines on standard error")
    ] = "warning",
) -> None:
    """Collect reports from devices, release their statistics, until stopped."""
    from ldpstream.collector.config import load
    from ldpstream.collector.secrets import Secrets

    config = load(file)
    if check:
        print(f"{file}: {len(config.streams)} stream(s), nothing wrong")
        return
    try:
        from ldpstream.collector.logs import LEVELS, set_up
        from ldpstream.collector.rehearsal import rehearse
        from ldpstream.collector.server import listen, serve, url_of
        from ldpstream.collector.service import Service
    except ModuleNotFoundError:
        raise Mistake(Problem.EXTRA_MISSING, what="serving", extra="collector") from None

    if log not in LEVELS:
        raise Mistake(Problem.OPTION, option="--log", given=log, expected=", ".join(LEVELS))
    set_up(log)
    secrets = Secrets.load(config.secret_files, config.folder)
    listening = listen(config)
    rehearse(config.streams)  # before the service, which starts the clock of a new stream
    service = Service(config, secrets)
    for stream in service.streams.values():
        terms, names = stream.terms, stream.terms.names
        values = f"{len(names)} labels" if len(names) > 1 else f"the {names[0]} of numbers"
        print(
            f"{terms.stream}: {stream.config.mechanism} with {terms.oracle}, epsilon"
            f" {terms.epsilon} in {terms.window} timestamps of {terms.interval_ms / 1000:g} s,"
            f" {values}, {stream.config.selection}\n  pin {terms.pin}"
        )
    serve(service, listening, lambda: print(f"listening on {url_of(listening)}", flush=True))
    print("stopped", flush=True)
