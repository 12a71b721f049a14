"""The command line. Each command is a module here; all of them fail in one place, `main`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ldpstream import __version__
from ldpstream.cli import (
    alerts,
    audit,
    bridge,
    compare,
    data,
    demo,
    device,
    engine,
    export,
    fleet,
    plan,
    reproduce,
    serve,
    simulate,
)
from ldpstream.errors import LdpStreamError, Mistake

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},  # of all commands below, too
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"ldpstream {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", help="print it and stop", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Live statistics from a fleet of devices under w-event local differential privacy."""


app.command("simulate")(simulate.command)
app.command("compare")(compare.command)
app.command("plan")(plan.command)
app.command("reproduce")(reproduce.command)
app.command("demo")(demo.command)
app.command("serve")(serve.command)
app.command("fleet")(fleet.command)
app.command("export")(export.command)
app.add_typer(device.app, name="device")
app.add_typer(data.app, name="data")
app.add_typer(engine.app, name="engine")
app.add_typer(alerts.app, name="alerts")
app.add_typer(audit.app, name="audit")
app.add_typer(bridge.app, name="bridge")


def main() -> None:
    """Exit 0; 2 for a mistake of the user's, told in one line; 1 for anything else."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit status."""
    try:
        outcome = app(arguments, prog_name="ldpstream", standalone_mode=False)
    except Mistake as error:
        return _fail(str(error), 2)
    except LdpStreamError as error:
        return _fail(str(error), 1)
    except typer.TyperException as error:
        return _fail(error.format_message(), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("stopped", 130)
    return outcome if isinstance(outcome, int) else 0


def _fail(line: str, status: int) -> int:
    if line:  # nothing is left to say where the help was shown
        print(f"ldpstream: {line}", file=sys.stderr)
    return status
