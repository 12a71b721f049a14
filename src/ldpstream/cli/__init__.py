"""The command line. Each command is a module here; all of them fail in one place, `run`.

What is imported to start it needs no extra, so that it can say which one is missing.
"""

from __future__ import annotations

import sys

from ldpstream.cli.failing import fail
from ldpstream.errors import LdpStreamError, Mistake, Problem
from ldpstream.extras import extra_for

USUAL_EXTRAS = {
    "alerts": "collector",
    "audit": "collector",
    "bridge": "lab,mqtt",
    "compare": "figures",
    "data": "data",
    "demo": "collector",
    "engine": "nats,postgres",
    "export": "collector",
    "fleet": "collector",
    "reproduce": "figures",
    "serve": "collector",
}
"""What to install for a command, where it is not `lab`."""


def main() -> None:
    """Exit 0; 2 for a mistake of the user's, told in one line; 1 for anything else."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit status."""
    try:
        return _call(arguments)
    except ModuleNotFoundError as error:
        extra = extra_for(error)
        if extra is None:
            raise
        return fail(str(_extra_missing(arguments, extra)), 2)
    except Mistake as error:
        return fail(str(error), 2)
    except LdpStreamError as error:
        return fail(str(error), 1)
    except KeyboardInterrupt:
        return fail("stopped", 130)


def _call(arguments: list[str]) -> int:
    if arguments[:1] == ["device"]:  # works without any extra
        from ldpstream.device.command_line import run as run_device

        return run_device(arguments[1:], "ldpstream device")
    from ldpstream.cli.app import call

    return call(arguments)


def _extra_missing(arguments: list[str], extra: str) -> Mistake:
    """Name all that the command needs at once, unless it lacks something out of the ordinary."""
    command = next((word for word in arguments if not word.startswith("-")), "")
    usual = USUAL_EXTRAS.get(command, "lab")
    named = usual if extra in ("lab", *usual.split(",")) else extra
    return Mistake(Problem.EXTRA_MISSING, what=command or "the command line", extra=named)
