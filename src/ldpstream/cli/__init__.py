"""The command line: a module for each command, and one place, `run`, that reports their errors.

Starting it imports nothing that needs an extra, so that it can say which extra is missing.
"""

from __future__ import annotations

import sys

from ldpstream.cli.failing import fail, is_callers
from ldpstream.errors import LdpStreamError, Mistake, Problem
from ldpstream.extras import extra_for

USUAL_EXTRAS = {
    "admin": "collector",
    "alerts": "collector",
    "audit": "collector",
    "backup": "collector",
    "bridge": "lab,mqtt",
    "compare": "figures",
    "data": "data",
    "demo": "collector",
    "deny": "collector",
    "engine": "nats,postgres",
    "export": "collector",
    "fleet": "collector",
    "keys": "collector",
    "reproduce": "figures",
    "restore": "collector",
    "serve": "collector",
    "tokens": "collector",
}
"""The extras to install for a command, if it needs more than `lab`."""


def main() -> None:
    """Exit with 0, with 2 and one line after a user's mistake, or with 1 after any other error."""
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
        return fail(str(error), 2 if _is_callers(error) else 1)
    except MemoryError as error:
        return fail(f"there is not enough memory; ask for less: {error}", 2)
    except KeyboardInterrupt:
        return fail("stopped", 130)


def _is_callers(error: LdpStreamError) -> bool:
    """Return whether a collector refused what the user gave, such as a name or a token."""
    if error.problem is not Problem.COLLECTOR_REFUSED:
        return False
    status = error.facts["status"]
    return isinstance(status, int) and is_callers(status)


def _call(arguments: list[str]) -> int:
    if arguments[:1] == ["device"]:  # works without any extra
        from ldpstream.device.command_line import run as run_device

        return run_device(arguments[1:], "ldpstream device")
    from ldpstream.cli.app import call

    return call(arguments)


def _extra_missing(arguments: list[str], extra: str) -> Mistake:
    """Name all extras that the command needs at once, unless the missing one is not among them."""
    command = next((word for word in arguments if not word.startswith("-")), "")
    usual = USUAL_EXTRAS.get(command, "lab")
    named = usual if extra in ("lab", *usual.split(",")) else extra
    return Mistake(Problem.EXTRA_MISSING, what=command or "the command line", extra=named)
