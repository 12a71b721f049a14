"""`ldpstream demo`: run a collector and a fleet on this machine, live."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from ldpstream.cli.output import stages
from ldpstream.cli.running import check_positive
from ldpstream.errors import Problem
from ldpstream.extras import need

if TYPE_CHECKING:
    from ldpstream.fleet.fleet import FleetOutcome
    from ldpstream.fleet.reader import JudgedRelease

BUDGET_SPENT = Problem.BUDGET_SPENT.code
FOREVER = 365 * 24 * 3600.0


def command(
    seconds: Annotated[
        float | None, typer.Option(help="stop after this many seconds; default: at Ctrl-C")
    ] = None,
    devices: Annotated[int, typer.Option(help="number of devices")] = 2000,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON at the end")] = False,
) -> None:
    """Start a collector and a fleet of real devices on loopback, and watch what is released.

    Each device knows in which region of a city its owner is. Every second a tenth of them report,
    each with the whole of epsilon = 2 for its next 10 seconds; the mechanism LPF makes a histogram
    of the reports. After half a minute there is a match at the stadium, and an alert fires.
    """
    need("demo", "collector")
    from ldpstream.fleet.city import city
    from ldpstream.fleet.demo import STREAM, demo_collector
    from ldpstream.fleet.fleet import FleetPlan, run_fleet
    from ldpstream.fleet.truth import write_truth

    if seconds is not None:
        check_positive("--seconds", seconds)
    check_positive("--devices", devices)
    source = city(devices)
    say = partial(print, file=sys.stderr if as_json else sys.stdout, flush=True)
    with demo_collector(devices) as collector:
        say(f"open this page, and join as a device:  {collector.page}")
        plan = FleetPlan(
            url=collector.url,
            stream=STREAM,
            token=collector.token,
            source=source,
            devices=devices,
            seconds=seconds or FOREVER,
            gateway=True,
            gradual=True,
        )
        printer = DemoPrinter(source.domain.labels, _ignore if as_json else say)

        def watch(judged: JudgedRelease) -> None:
            if not collector.truth.exists():
                write_truth(collector.truth, source, judged.t)
            printer.tell(judged)

        with stages(f"{devices} devices") as show:
            outcome = run_fleet(plan, show, watch)
    if as_json:
        print(json.dumps(_object(outcome, collector.url) | {"page": collector.page}))
    else:
        say(_closing(outcome))


def _ignore(_: object) -> None: ...


class DemoPrinter:
    """Prints each release as a line of percentages, beside the truth that only a demo knows."""

    def __init__(self, regions: Sequence[str], say: Callable[[str], None]) -> None:
        self._say = say
        self._header = "     t  reports" + "".join(f"{region:>12}" for region in regions)
        self._told = 0
        self._first_t = 0
        say("percent of all people in each region, as released (and in truth):")
        say(self._header)

    def tell(self, judged: JudgedRelease) -> None:
        from ldpstream.fleet.city import KICK_OFF

        self._first_t = self._first_t or judged.t
        if self._told and self._told % 20 == 0:
            self._say(self._header)
        if judged.t == self._first_t + KICK_OFF:
            self._say("        a match begins: watch the stadium, and the alert")
        self._told += 1
        shares = "".join(
            f"{100 * value:6.0f} ({100 * truth:2.0f})".rjust(12)
            for value, truth in zip(judged.values, judged.truth, strict=True)
        )
        self._say(f"{judged.t:6d}  {judged.received:7d}{shares}")


def _closing(outcome: FleetOutcome) -> str:
    mre = "none" if outcome.metrics is None else f"{outcome.metrics.mre:.3f}"
    return (
        f"{outcome.timestamps} releases from {outcome.delivered} reports,"
        f" mean relative error {mre}; nothing is left behind"
    )


def _object(outcome: FleetOutcome, url: str) -> dict[str, object]:
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
