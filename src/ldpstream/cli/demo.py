"""`ldpstream demo`: a collector and a fleet on this machine, live."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from ldpstream.cli.output import stages
from ldpstream.cli.running import check_positive
from ldpstream.errors import Problem
from ldpstream.extras import need

if TYPE_CHECKING:
    from ldpstream.fleet.fleet import Outcome
    from ldpstream.fleet.reader import Judged

BUDGET_SPENT = Problem.BUDGET_SPENT.code
FOREVER = 365 * 24 * 3600.0


def command(
    seconds: Annotated[
        float | None, typer.Option(help="stop after so long; else at Ctrl-C")
    ] = None,
    devices: Annotated[int, typer.Option(help="how many devices")] = 2000,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON at the end")] = False,
) -> None:
    """Start a collector and a fleet of real devices on loopback, and watch what is released.

    Each device holds a 1 with a probability that follows a sine; every second a twentieth of them
    report, each with the whole of epsilon = 1 for its next 20 seconds; LPF makes a figure of it.
    """
    need("demo", "collector")
    from ldpstream.fleet.demo import STREAM, demo_collector
    from ldpstream.fleet.fleet import Plan, run_fleet
    from ldpstream.streams.synthetic import sin

    if seconds is not None:
        check_positive("--seconds", seconds)
    say = _ignore if as_json else partial(print, flush=True)
    with demo_collector(devices) as collector:
        say(f"open this page, and join as a device:  {collector.page}")
        plan = Plan(
            url=collector.url,
            stream=STREAM,
            token=collector.token,
            source=sin(users=devices, timestamps=100_000, a=0.2, b=0.05, h=0.4),
            devices=devices,
            seconds=seconds or FOREVER,
        )
        with stages(f"{devices} devices") as show:
            outcome = run_fleet(plan, show, _ignore if as_json else _show)
    say(_closing(outcome))
    if as_json:
        print(json.dumps(_object(outcome, collector.url) | {"page": collector.page}))


def _ignore(_: object) -> None: ...


def _show(judged: Judged) -> None:
    if judged.t % 20 == 1 or judged.t < 3:
        print("     t  reports  truth  released  standard error")
    print(
        f"{judged.t:6d}  {judged.received:7d}  {judged.truth[1]:.3f}  {judged.values[1]:8.3f}"
        f"  {judged.variance[1] ** 0.5:14.3f}",
        flush=True,
    )


def _closing(outcome: Outcome) -> str:
    mre = "none" if outcome.metrics is None else f"{outcome.metrics.mre:.3f}"
    return (
        f"{outcome.timestamps} releases from {outcome.delivered} reports,"
        f" mean relative error {mre}; nothing is left behind"
    )


def _object(outcome: Outcome, url: str) -> dict[str, object]:
    metrics = outcome.metrics
    # A device that has spent its budget declines: that is the promise at work, not a refusal.
    refused = sum(n for code, n in outcome.refused.items() if code != BUDGET_SPENT)
    return {
        "releases": outcome.timestamps,
        "reports": outcome.delivered,
        "refused": refused,
        "mre": metrics and metrics.mre,
        "cfpu": metrics and metrics.cfpu,
        "url": url,
    }
