"""`ldpstream fleet`: run thousands of devices in one process and measure a collector's error."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpstream.cli import options, sources
from ldpstream.cli.grouped import grouped
from ldpstream.cli.output import Row, print_rows, stages
from ldpstream.errors import Mistake, Problem

if TYPE_CHECKING:
    from ldpstream.fleet.fleet import FleetOutcome
    from ldpstream.fleet.reader import JudgedRelease
    from ldpstream.lab.metrics import Metrics

_WEATHER = "Network faults and churn"


@grouped
def command(
    collector: options.Collector,
    token: Annotated[str, typer.Option(help="enrolment token", envvar="LDPSTREAM_ENROLMENT_TOKEN")],
    source: sources.StreamOptions,
    devices: Annotated[int, typer.Option(help="number of devices")] = 2000,
    name: Annotated[
        str | None, typer.Option(help="the collector's name for the stream, if it differs")
    ] = None,
    labels: sources.Labels = None,
    timestamps: sources.Timestamps = None,
    seconds: Annotated[float, typer.Option(help="how long to run, in seconds")] = 60.0,
    offline: Annotated[
        float,
        typer.Option(help="share of devices offline at each timestamp", rich_help_panel=_WEATHER),
    ] = 0.0,
    join: Annotated[
        float,
        typer.Option(help="share of users replaced at each timestamp", rich_help_panel=_WEATHER),
    ] = 0.0,
    loss: Annotated[
        float,
        typer.Option(help="share of requests lost, and of responses", rich_help_panel=_WEATHER),
    ] = 0.0,
    latency: Annotated[
        float,
        typer.Option(help="mean delay added to a request, in seconds", rich_help_panel=_WEATHER),
    ] = 0.0,
    gateway: Annotated[
        bool,
        typer.Option(
            "--gateway", help="one gateway listens for all devices and sends reports in batches"
        ),
    ] = False,
    simulated: Annotated[
        bool,
        typer.Option(
            "--simulated",
            help="devices as arrays, without ledger files; for streams with slots, and always"
            " above 20,000 devices",
        ),
    ] = False,
    state: Annotated[
        Path | None,
        typer.Option(help="file that keeps simulated devices, so that they enrol once"),
    ] = None,
    plain_http: Annotated[
        bool,
        typer.Option(
            "--plain-http", help="enrol without TLS, in a network that you trust (not loopback)"
        ),
    ] = False,
    levels: Annotated[
        str,
        typer.Option(help="levels of privacy and shares of devices, such as careful:0.3"),
    ] = "",
    attribute: options.Attribute = None,
    read_token: options.ReadToken = "",
    seed: Annotated[
        int, typer.Option(help="seed of values and network faults, never of reports")
    ] = 0,
    as_json: options.Json = False,
) -> None:
    """Run real devices that follow a stream; print the error of what the collector releases.

    More than 20,000 devices are simulated, which needs a stream with slots: their state is held in
    arrays, their reports are drawn and signed together, and nothing is written before they end.
    """
    from ldpstream.fleet.fault_injection import FaultRates
    from ldpstream.fleet.fleet import MOST_REAL, Fleet, FleetPlan, run_fleet
    from ldpstream.fleet.levels import LevelShares
    from ldpstream.fleet.simulated.fleet import SimulatedFleet
    from ldpstream.lab.parts import Parts

    simulated = simulated or devices > MOST_REAL
    kind = SimulatedFleet if simulated else Fleet
    if state is not None and not simulated:
        expected = "it with simulated devices: add --simulated"
        raise Mistake(Problem.OPTION, option="--state", given=state, expected=expected)
    users = devices if source.built_in else None
    stream = source.open(labels=labels, users=users, timestamps=timestamps, seed=seed)
    plan = FleetPlan(
        url=collector.rstrip("/"),
        stream=name or stream.name,
        token=token,
        source=stream,
        devices=devices,
        seconds=seconds,
        faults=FaultRates(offline, join, loss, latency),
        gateway=gateway,
        plain_http=plain_http,
        read_token=read_token,
        seed=seed,
        state=state,
        levels=LevelShares.read(levels),
        parts=Parts.read(attribute) if attribute else None,
    )
    with stages(f"{devices} {'simulated ' if simulated else ''}devices") as show:
        outcome = run_fleet(plan, show, _ignore if as_json else _tell, kind)
    row, groups = _row(plan.stream, simulated, outcome), _of_groups(outcome)
    if as_json:
        print_rows([row | ({"groups": groups} if groups else {})], as_json=True)
        return
    print_rows([{name: one for name, one in row.items() if one is not None}], as_json=False)
    if groups:
        print_rows(groups, as_json=False)


def _ignore(judged: JudgedRelease) -> None: ...


def _tell(judged: JudgedRelease) -> None:
    kind = "fresh" if judged.fresh else "carried over"
    print(f"t={judged.t}  received {judged.received}  {kind}  {judged.in_words}", flush=True)


def _row(stream: str, simulated: bool, outcome: FleetOutcome) -> Row:
    metrics = outcome.metrics
    return {
        "stream": stream,
        "devices": outcome.devices,
        "simulated": simulated,
        "seconds": round(outcome.seconds, 3),
        "timestamps": outcome.timestamps,
        "reports": outcome.delivered,
        "undelivered": outcome.undelivered,
        "refused": outcome.refused,
        "mre": metrics and metrics.mre,
        "mae": metrics and metrics.mae,
        "mse": metrics and metrics.mse,
        "cfpu": metrics and metrics.cfpu,
        "publications": metrics and metrics.publications,
        **_of_quantiles(metrics),
        **({} if outcome.found is None else asdict(outcome.found)),
    }


def _of_groups(outcome: FleetOutcome) -> list[Row]:
    """Return, for each group of devices, the error of its releases."""
    return [
        {"group": name, "mae": one.mae, "mse": one.mse, "coverage": one.coverage}
        for name, one in outcome.groups.items()
    ]


def _of_quantiles(metrics: Metrics | None) -> dict[str, float]:
    """Return the figures of a stream whose distribution is released."""
    if metrics is None or math.isnan(metrics.p50_mae):
        return {}
    return {name: getattr(metrics, name) for name in ("p50_mae", "p99_mae", "coverage")}
