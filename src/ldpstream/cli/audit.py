"""`ldpstream audit`: check the privacy promise, for whoever has to rely on it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpstream.cli import options
from ldpstream.cli.output import Row, console, print_rows, stages
from ldpstream.cli.running import STOPPED, check_folder, check_positive, command_line
from ldpstream.cli.stores import StoreLocation
from ldpstream.errors import Mistake, Problem

if TYPE_CHECKING:
    from ldpstream.audit.results import Audit

app = typer.Typer(
    help="Check the privacy promise exactly, by attack or on a device's file; check a store."
)

LONGEST_FRACTION = 44


@app.callback(invoke_without_command=True)
def audit(
    context: typer.Context,
    quick: Annotated[
        bool, typer.Option("--quick", help="a short audit: a small grid, one pass of attacks")
    ] = False,
    seconds: Annotated[float, typer.Option(help="how long to attack (not with --quick)")] = 300.0,
    out: Annotated[
        Path | None, typer.Option(help="folder for the report: audit.html and audit.json")
    ] = None,
    plugin: options.Plugin = None,
    as_json: options.Json = False,
) -> None:
    """Compute every randomiser's exact epsilon, attack every mechanism, find every planted bug.

    Mechanisms of a plug-in are attacked, too. Ctrl-C stops the attack and shows the results so far.
    Exit status 1 if a check fails.
    """
    if context.invoked_subcommand is not None:
        return
    if out is not None:
        check_folder("--out", out)
    check_positive("--seconds", seconds)
    from ldpstream.audit.run import full_audit, quick_audit

    with stages("audit", lines=True) as show:
        done = quick_audit(show) if quick else full_audit(seconds, show)
    if out is not None:
        _write(done, out, command_line(context))
    if as_json:
        print(json.dumps(done.to_json(), indent=1))
    else:
        _print(done)
    for line in done.complaints:
        _complain(line)
    if not done.passed:
        raise typer.Exit(STOPPED if done.stopped and not done.failures else 1)


def _write(done: Audit, folder: Path, command: str) -> None:
    from ldpstream.audit.report import write_report
    from ldpstream.lab.files import write_whole

    write_whole(folder / "audit.json", json.dumps(done.details(), indent=1) + "\n")
    path = write_report(done, folder, command)
    console(as_json=True).print(f"report: {path}", highlight=False)


def _print(done: Audit) -> None:
    from ldpstream.audit.results import CONFIDENCE
    from ldpstream.audit.shuffled import CONDITION

    out = console(as_json=False)
    for title, rows in (
        ("Randomisers, exactly: the worst ratio between probabilities of a report", _exact(done)),
        (
            f"Mechanisms under attack: lower bounds on epsilon, confidence {CONFIDENCE}",
            _attacked(done),
        ),
        (f"Planted bugs: {done.verdict_on_bugs}", _planted(done)),
        ("If there were a shuffler, which this system does not have", _shuffled()),
    ):
        out.print(title)
        if rows:
            print_rows(rows, as_json=False)
    out.print(CONDITION)


def _exact(done: Audit) -> list[Row]:
    from ldpstream.audit.results import by_oracle

    return [
        {
            "oracle": one.oracle,
            "checks": one.checks,
            "worst ratio": f"{_short(str(one.example.ratio))} <= e^{one.example.epsilon}",
            "exact epsilon": str(one.example.digits(24)),
            "least margin": f"{one.least_margin:.2g}",
            "holds": "yes" if one.holds else "NO",
        }
        for one in by_oracle(done.exact)
    ]


def _attacked(done: Audit) -> list[Row]:
    return [
        {
            "mechanism": one.trial.name,
            "promised": str(one.trial.epsilon),
            "at least": one.lower_bound,
            "secrets": one.score.secrets,
            "guessed": one.score.guesses,
            "right": one.score.right,
            "kept": "yes" if one.as_it_should_be else "NO",
        }
        for one in done.honest
    ]


def _planted(done: Audit) -> list[Row]:
    return [
        {
            "bug": one.trial.name,
            "under": one.under.lower(),
            "promised": str(one.trial.epsilon),
            "at least": one.proof,
            "found": "yes" if one.exceeds else "NO",
        }
        for one in done.planted
    ]


def _shuffled() -> list[Row]:
    from ldpstream.audit.shuffled import shuffled_rounds

    return [
        {
            "epsilon of a report": one.local,
            "reports": one.reports,
            "delta": f"{one.delta:g}",
            "central epsilon": one.epsilon,
            "at least": one.at_least,
        }
        for one in shuffled_rounds()
    ]


def _complain(line: str) -> None:
    print(f"ldpstream: {line}", file=sys.stderr)


def _short(fraction: str) -> str:
    """Abbreviate a fraction that is too long for a table; the report has all of it."""
    if len(fraction) <= LONGEST_FRACTION:
        return fraction
    top, _, bottom = fraction.partition("/")
    return f"{top[:6]}...{top[-4:]}/{bottom[:6]}...{bottom[-4:]}"


@app.command("ledger")
def ledger(
    file: Annotated[Path, typer.Argument(help="the device's file")],
    as_json: options.Json = False,
) -> None:
    """Re-check a device's ledger and the reports it keeps, from its file alone.

    Nothing is written to it. Exit status 1 if the promise was broken.
    """
    from ldpstream.device.command_line import audit_ledger

    raise typer.Exit(audit_ledger(file, as_json=as_json))


@app.command("store")
def store(
    where: Annotated[
        str, typer.Argument(metavar="PLACE", help="a collector's configuration (.toml), or store")
    ],
    accept: Annotated[
        bool, typer.Option("--accept", help="accept damaged streams as they are from now on")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Follow the chain of all releases in a store, and say where it first breaks.

    Needs the master secret. Nothing is written to the store, which may be in use, unless --accept
    is given. Exit status 1 if a release was changed, removed or added, or the store is damaged.
    """
    place = StoreLocation.of(where)
    try:
        with stages("audit") as show:
            rows = place.check(show)
    except Mistake as mistake:
        if mistake.problem is not Problem.STORE_DAMAGED:
            raise
        _complain(str(mistake))
        raise typer.Exit(1) from None
    if as_json:
        print_rows(rows, as_json=True)
    elif rows:
        found = ["" if row["releases"] is None else row["damage"] or "none" for row in rows]
        told = [row | {"damage": damage} for row, damage in zip(rows, found, strict=True)]
        print_rows(told, as_json=False)
    damaged = [row["stream"] for row in rows if row["damage"]]
    if not damaged:
        return
    if not accept:
        raise typer.Exit(1)
    place.accept(damaged)
    _complain(f"accepted as they are from now on: {', '.join(damaged)}")
