"""`ldpstream keys`, `tokens`, `deny` and `admin`: what administrators do at a running collector.

All of them call its admin API, so that there is one way to change these things, and one log of it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from ldpstream.cli import options
from ldpstream.cli.admin_client import AdminClient
from ldpstream.cli.answers import reads_answers
from ldpstream.cli.output import print_rows

File = Annotated[Path, typer.Argument(help="configuration file, TOML (docs/collector.md)")]
Url = Annotated[
    str, typer.Option(help="address of the collector, if it is not the one in the file")
]
Stream = Annotated[str, typer.Argument(help="name of the stream")]

keys = typer.Typer(help="Rotate the master secret of a collector.", no_args_is_help=True)
tokens = typer.Typer(help="Make and revoke enrolment tokens.", no_args_is_help=True)
deny = typer.Typer(help="Deny devices, by their numbers.", no_args_is_help=True)
admin = typer.Typer(help="See what administrators did.", no_args_is_help=True)


@keys.command("status")
@reads_answers("keys")
def keys_status(file: File, url: Url = "", as_json: options.Json = False) -> None:
    """Show which master secrets are valid, and how many reports still use keys of earlier ones."""
    _print_keys(AdminClient.of(file, url).get("keys"), as_json=as_json)


@keys.command("rotate")
@reads_answers("keys")
def rotate(
    file: File,
    prepare: Annotated[
        bool,
        typer.Option(
            "--prepare",
            help="only generate the new secret, to be copied to the other collectors of the store",
        ),
    ] = False,
    at_once: Annotated[
        bool,
        typer.Option(
            "--at-once", help="the secret was stolen: end all keys, every device must enrol again"
        ),
    ] = False,
    url: Url = "",
    as_json: options.Json = False,
) -> None:
    """Replace the current master secret with a new one; keys of the current one stay valid."""
    step = "prepare" if prepare else "rotate?at_once=true" if at_once else "rotate"
    _print_keys(AdminClient.of(file, url).post(f"keys/{step}"), as_json=as_json)


@keys.command("drop")
@reads_answers("keys")
def drop(
    file: File,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="even if devices still use it: they must enrol again")
    ] = False,
    url: Url = "",
    as_json: options.Json = False,
) -> None:
    """Invalidate the keys of the earlier master secret."""
    path = "keys/drop?anyway=true" if anyway else "keys/drop"
    _print_keys(AdminClient.of(file, url).post(path), as_json=as_json)


@tokens.command("create")
@reads_answers("tokens")
def create_token(
    file: File,
    name: Annotated[str, typer.Argument(help="name of the token, for the list and the log")],
    stream: Annotated[str | None, typer.Option(help="the one stream that it is valid for")] = None,
    expires_in: Annotated[
        str | None, typer.Option(help="how long it is valid, such as 30d")
    ] = None,
    most_uses: Annotated[
        int | None, typer.Option(help="how many devices may enrol with it")
    ] = None,
    url: Url = "",
    as_json: options.Json = False,
) -> None:
    """Create an enrolment token and show it, only this once."""
    wanted = {"name": name, "stream": stream, "expires_in": expires_in, "most_uses": most_uses}
    made = AdminClient.of(file, url).post("tokens", wanted)
    print_rows([made if as_json else _readable(made)], as_json=as_json)


@tokens.command("list")
@reads_answers("tokens")
def list_tokens(file: File, url: Url = "", as_json: options.Json = False) -> None:
    """List the enrolment tokens, without the tokens themselves."""
    print_list(AdminClient.of(file, url).get("tokens")["tokens"], "token", as_json=as_json)


@tokens.command("revoke")
@reads_answers("tokens")
def revoke_token(
    file: File,
    name: Annotated[str, typer.Argument(help="name of the token")],
    url: Url = "",
    as_json: options.Json = False,
) -> None:
    """Revoke a token: nobody can enrol with it any more; devices that have used it stay."""
    AdminClient.of(file, url).delete(f"tokens/{name}")
    if as_json:
        print_rows([{"name": name, "revoked": True}], as_json=True)
    else:
        print(f"{name}: revoked")


@deny.command("add")
@reads_answers("denied devices")
def deny_devices(
    file: File,
    stream: Stream,
    devices: Annotated[list[str], typer.Argument(help="numbers of devices, 32 hex digits each")],
    url: Url = "",
    as_json: options.Json = False,
) -> None:
    """Refuse all that these devices send to a stream."""
    told = AdminClient.of(file, url).post(f"denied/{stream}", {"devices": devices})
    _print_denied(stream, told["devices"], as_json=as_json)


@deny.command("remove")
@reads_answers("denied devices")
def allow_device(
    file: File,
    stream: Stream,
    device: Annotated[str, typer.Argument(help="number of the device, 32 hex digits")],
    url: Url = "",
    as_json: options.Json = False,
) -> None:
    """Take a device off the deny list."""
    told = AdminClient.of(file, url).delete(f"denied/{stream}/{device}")
    _print_denied(stream, told["devices"], as_json=as_json)


@deny.command("list")
@reads_answers("denied devices")
def list_denied(file: File, stream: Stream, url: Url = "", as_json: options.Json = False) -> None:
    """List the devices that a stream denies."""
    told = AdminClient.of(file, url).get(f"denied/{stream}")["devices"]
    print_list(_denied(stream, told), "denied device", as_json=as_json)


@admin.callback()
def administrators() -> None:
    """See what administrators did."""


@admin.command("log")
@reads_answers("log")
def admin_log(
    file: File,
    after: Annotated[int, typer.Option(help="only entries after this one", min=0)] = 0,
    url: Url = "",
    as_json: options.Json = False,
) -> None:
    """Print the log of what administrators did, which nobody can change."""
    client, entries = AdminClient.of(file, url), []
    while found := client.get(f"log?after={after}")["entries"]:
        entries += found
        after = found[-1]["number"]
    print_list(entries, "entry", as_json=as_json)


def _denied(stream: str, devices: list[str]) -> list[dict[str, Any]]:
    return [{"stream": stream, "device": device} for device in devices]


def _print_denied(stream: str, devices: list[str], *, as_json: bool) -> None:
    """Print how many devices are denied after a change; as JSON which ones, as `deny list` does."""
    if as_json:
        print_list(_denied(stream, devices), "denied device", as_json=True)
    else:
        print(f"{stream}: {len(devices)} device(s) denied")


def _print_keys(told: dict[str, Any], *, as_json: bool) -> None:
    left = told.pop("reports_with_earlier_keys", {})
    streams = {
        f"earlier keys, {name}": "not known yet" if n is None else n for name, n in left.items()
    }
    shown = told | {"reports_with_earlier_keys": left} if as_json else told | streams
    print_rows([shown], as_json=as_json)


def print_list(rows: list[dict[str, Any]], what: str, *, as_json: bool) -> None:
    """Print rows in readable form, or say that there are none."""
    if rows or as_json:
        print_rows(rows if as_json else [_readable(row) for row in rows], as_json=as_json)
    else:
        print(f"no {what}")


def _readable(row: dict[str, Any]) -> dict[str, Any]:
    """Write times as people read them, and details in one cell."""
    return {name.removesuffix("_ms"): _cell(name, value) for name, value in row.items()}


def _part(value: Any) -> str:
    return "; ".join(map(str, value)) if isinstance(value, list) else str(value)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name.endswith("_ms"):
        return datetime.fromtimestamp(value / 1000, UTC).isoformat(" ", "seconds")
    if isinstance(value, dict):
        return " ".join(
            f"{key}={_part(one)}" for key, one in value.items() if one not in (None, [])
        )
    return str(value)
