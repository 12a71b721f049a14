"""The command line of a device: status, audit of its ledger, leave. It needs no other package.

It runs as `python -m ldpstream.device`, and as `ldpstream device` where that is installed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from ldpstream.build import version_line
from ldpstream.device.checking import check_ledger
from ldpstream.device.device import Device
from ldpstream.device.display import check_lines, check_object, status_lines, status_object
from ldpstream.device.status import read_status
from ldpstream.device.status_page import status_page
from ldpstream.errors import LdpStreamError, Mistake
from ldpstream.protocol.names import in_one_line


def run(arguments: Sequence[str], program: str = "python -m ldpstream.device") -> int:
    """Run one command and return its exit status: 2 for a mistake of the user, 1 for a fault."""
    parser = _parser(program)
    if not arguments:
        parser.print_help()
        return 2
    try:
        given = parser.parse_args(arguments)
        options = vars(given)
        command, file, as_json = (options.pop(name) for name in ("command", "file", "json"))
        status: int = command(file, as_json=as_json, **options)
    except SystemExit as end:  # after the help, the version, or a wrong option
        return int(end.code or 0)
    except Mistake as error:
        return _fail(str(error), 2)
    except LdpStreamError as error:
        return _fail(str(error), 1)
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}", 1)
    except KeyboardInterrupt:
        return _fail("stopped", 130)
    return status


def show_status(file: Path, *, as_json: bool, html: bool = False) -> int:
    """Print what is left of the budget, the last reports, and what was refused."""
    found = read_status(file)
    if html:
        print(status_page(found), end="")
    elif as_json:
        print(json.dumps(status_object(found), indent=1))
    else:
        print(*status_lines(found), sep="\n")
    return 0


def audit_ledger(file: Path, *, as_json: bool) -> int:
    """Re-check the ledger and the reports that it keeps, and print what was found."""
    check = check_ledger(file)
    if as_json:
        print(json.dumps(check_object(check), indent=1))
    else:
        print(*check_lines(check), sep="\n")
    for fault in check.faults:
        _fail(f"{file}: {fault}", 1)
    return 1 if check.faults else 0


def leave_stream(file: Path, *, as_json: bool, stream: str | None = None) -> int:
    """Leave a stream, or the only one, and print whether the collector could be told."""
    with Device.open(file) as device:
        session = device.session if stream is None else device.stream(stream).session
        name = session.account.enrolled.terms.stream
        told = device.leave(name, session.account.enrolled.url)
    if as_json:
        print(json.dumps({"stream": name, "left": True, "told": told}))
    else:
        heard = "the collector was told" if told else "the collector could not be told"
        print(f"left {name}: key, secret and reports are deleted, the debits stay; {heard}")
    return 0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Print what is wrong in one line, without the usage, and exit."""
        sys.exit(_fail(f"{message}; see {self.prog} --help", 2))


class _PrintVersion(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Look up the commit only when it is asked for."""
        print(version_line())
        parser.exit()


def _parser(program: str) -> argparse.ArgumentParser:
    parser = _Parser(program, description="Inspect the file of a device, or leave a stream.")
    parser.add_argument(
        "--version",
        nargs=0,
        action=_PrintVersion,
        dest=argparse.SUPPRESS,
        default=argparse.SUPPRESS,
        help="print the version and exit",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    status = _add(
        commands,
        "status",
        show_status,
        "show what is left of the budget, the last reports, and what was refused",
    )
    status.add_argument("--html", action="store_true", help="print a page of HTML")
    _add(
        commands,
        "audit",
        audit_ledger,
        "re-check the ledger and the reports that it keeps; exit status 1 if the promise was "
        "broken; nothing is written",
    )
    leave = _add(
        commands,
        "leave",
        leave_stream,
        "leave a stream: tell the collector, delete key, secret and reports, keep the debits",
    )
    leave.add_argument(
        "stream", metavar="STREAM", nargs="?", help="the stream to leave, if the file has several"
    )
    return parser


def _add(
    commands: Any, name: str, command: Callable[..., int], words: str
) -> argparse.ArgumentParser:
    title = f"{words[0].upper()}{words[1:]}."
    parser: argparse.ArgumentParser = commands.add_parser(name, help=words, description=title)
    parser.add_argument("file", metavar="FILE", type=Path, help="the device's file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=command)
    return parser


def _fail(line: str, status: int) -> int:
    print(f"ldpstream: {in_one_line(line)}", file=sys.stderr)
    return status
