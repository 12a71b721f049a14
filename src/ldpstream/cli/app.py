"""The Typer application with all commands."""

from __future__ import annotations

from inspect import getdoc
from pathlib import Path
from typing import Annotated

import typer

from ldpstream.build import version_line
from ldpstream.cli import (
    administration,
    alerts,
    audit,
    backup,
    bridge,
    compare,
    data,
    demo,
    engine,
    export,
    fleet,
    leaderboard,
    operation,
    plan,
    reproduce,
    serve,
    simulate,
)
from ldpstream.cli.failing import fail
from ldpstream.cli.running import STOPPED

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},  # all commands inherit them
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(version_line())
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="print the version and exit", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Live statistics from a fleet of devices under w-event local differential privacy."""


app.command("simulate")(simulate.command)
app.command("compare")(compare.command)
app.command("leaderboard")(leaderboard.command)
app.command("plan")(plan.command)
app.command("reproduce")(reproduce.command)
app.command("demo")(demo.command)
app.command("serve")(serve.command)
app.command("status")(operation.status)
app.command("reload")(operation.reload)
app.command("pause")(operation.pause)
app.command("resume")(operation.resume)
app.command("fleet")(fleet.command)
app.command("export")(export.command)
app.command("backup")(backup.back_up)
app.command("restore")(backup.restore)


@app.command("device")
def device(
    command: Annotated[
        str, typer.Argument(autocompletion=lambda: ["status", "audit", "leave"])
    ] = "",
    file: Annotated[Path | None, typer.Argument()] = None,
) -> None:
    """Look at a device's file: its status, and a check of its ledger; or leave a stream."""
    # Only for the list of commands and completion in shells: `ldpstream.device` has a command line
    # of its own, to which `ldpstream.cli.run` passes the arguments.


app.add_typer(data.app, name="data")
app.add_typer(engine.app, name="engine")
app.add_typer(alerts.app, name="alerts")
app.add_typer(audit.app, name="audit")
app.add_typer(bridge.app, name="bridge")
app.add_typer(administration.keys, name="keys")
app.add_typer(administration.tokens, name="tokens")
app.add_typer(administration.deny, name="deny")
app.add_typer(administration.admin, name="admin")


def _flow(commands: typer.Typer) -> None:
    """Let paragraphs of help texts fill the screen, ignoring line breaks of the docstring."""
    for one in commands.registered_commands:
        paragraphs = (getdoc(one.callback) or "").split("\n\n")
        one.help = "\n\n".join(" ".join(lines.split()) for lines in paragraphs)
    for group in commands.registered_groups:
        if group.typer_instance is not None:
            _flow(group.typer_instance)


_flow(app)


def call(arguments: list[str]) -> int:
    """Run a command and return its exit status; the caller reports this package's own errors."""
    try:
        outcome = app(arguments, prog_name="ldpstream", standalone_mode=False)
    except typer.TyperException as error:
        return fail(error.format_message(), error.exit_code)
    except typer.Abort:
        return fail("stopped", STOPPED)
    return outcome if isinstance(outcome, int) else 0
