"""`ldpstream serve`: run a collector for the streams of one configuration file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpstream.errors import Mistake, Problem

if TYPE_CHECKING:
    from ldpstream.collector.service.service import StreamService


def command(
    file: Annotated[Path, typer.Argument(help="configuration file, TOML (docs/collector.md)")],
    check: Annotated[bool, typer.Option("--check", help="check the file and exit")] = False,
    log: Annotated[
        str, typer.Option(help="log level on standard error: debug, info, warning or error")
    ] = "warning",
    as_json: Annotated[
        bool, typer.Option("--json", help="print one JSON object once it listens")
    ] = False,
) -> None:
    """Run a collector: collect reports from devices and release their statistics, until stopped."""
    from ldpstream.collector.config import load

    config = load(file)
    if check:
        names = [stream.name for stream in config.streams]
        if as_json:
            print(json.dumps({"file": str(file), "streams": names}))
        else:
            print(f"{file}: {len(names)} stream(s), nothing wrong")
        return
    from ldpstream.collector.api.server import listen, serve, url_of
    from ldpstream.collector.json_logging import LEVELS, set_up
    from ldpstream.collector.service.opening import load_secrets
    from ldpstream.collector.service.service import Service
    from ldpstream.collector.service.warm_up import warm_up

    if log not in LEVELS:
        raise Mistake(Problem.OPTION, option="--log", given=log, expected=", ".join(LEVELS))
    set_up(log)
    secrets = load_secrets(config)
    listening = listen(config)
    warm_up(config.streams)  # before the service, which starts the clock of a new stream
    service = Service(config, secrets)
    if not as_json:
        print("\n".join(map(_in_words, service.streams.values())))

    def ready() -> None:
        url = url_of(listening)
        if as_json:
            streams = [_facts(stream) for stream in service.streams.values()]
            print(json.dumps({"url": url, "streams": streams}), flush=True)
        else:
            print(f"listening on {url}", flush=True)

    serve(service, listening, ready)
    if not as_json:
        print("stopped", flush=True)


def _in_words(stream: StreamService) -> str:
    terms, names = stream.terms, stream.terms.names
    values = f"{len(names)} labels" if len(names) > 1 else f"the {names[0]} of numbers"
    return (
        f"{terms.stream}: {stream.config.mechanism} with {terms.oracle}, epsilon"
        f" {terms.epsilon} in {terms.window} timestamps of {terms.interval_ms / 1000:g} s,"
        f" {values}, {stream.config.selection}\n  pin {terms.pin}"
    )


def _facts(stream: StreamService) -> dict[str, object]:
    """Return what describes a stream, above all its pin."""
    return {
        "stream": stream.terms.stream,
        "pin": stream.terms.pin,
        "terms": stream.terms.to_json(),
        "mechanism": stream.config.mechanism,
        "selection": stream.config.selection,
    }
