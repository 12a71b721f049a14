"""The page of the command line, from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import typer

from ldpstream.cli import USUAL_EXTRAS
from ldpstream.cli.app import app
from ldpstream.device.command_line import run as run_device
from reference.markdown import block, code, table

INTRODUCTION = """# Command line

`ldpstream COMMAND --help` prints the same. The exit status is 0, 2 after a mistake in what was
given, 1 after any other error, and 130 if it was stopped; an error is one line of [the
catalogue](errors.md) on standard error.

"""

TYPES = {
    "str": "text",
    "int": "whole number",
    "float": "number",
    "bool": "flag",
    "Path": "file",
    "list": "may be repeated",
}


def page() -> str:
    """Return the page."""
    root = typer.main.get_command(app)
    parts = [INTRODUCTION]
    for words, command in _commands(root, ()):
        if words == ("device",):
            parts.append(_device())
        elif words and (_options(command) or not hasattr(command, "commands")):
            parts.append(_command(words, command))
    return "\n".join(parts)


def _commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield words, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, (*words, name))


def _command(words: tuple[str, ...], command: Any) -> str:
    extra = USUAL_EXTRAS.get(words[0], "lab")
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    line = " ".join(["ldpstream", *words, *(one.name.upper() for one in arguments)])
    return (
        f"## `ldpstream {' '.join(words)}`\n\n{command.help}\n\n{block('text', line)}\n"
        f"Needs the extra `{extra}`.\n\n"
        + table(("option", "type", "default", "what it is"), _options(command))
    )


def _options(command: Any) -> list[tuple[str, str, str, str]]:
    return [_option(one) for one in command.params if one.name != "help"]


def _option(given: Any) -> tuple[str, str, str, str]:
    names = ", ".join(code(name) for name in (*given.opts, *given.secondary_opts))
    needed = "required" if given.required else code(_default(given.default))
    about = getattr(given, "help", "") or ""
    variable = f" (or the variable `{given.envvar}`)" if given.envvar else ""
    return names, _type(given), needed, about + variable


def _type(given: Any) -> str:
    annotation = given.type_descriptor.annotation
    return TYPES.get(getattr(annotation, "__name__", ""), str(annotation))


def _default(value: object) -> str:
    if value is None or value is False or value == () or callable(value):
        return ""
    return str(getattr(value, "value", value))


def _device() -> str:
    """Show the help of the device's own command line, which is not of Typer."""
    text = ["## `ldpstream device`\n", "Also `python -m ldpstream.device`; needs no extra.\n"]
    for words in ([], ["status"], ["audit"], ["leave"]):
        printed = StringIO()
        with redirect_stdout(printed):
            run_device([*words, "--help"], "ldpstream device")
        text.append(block("text", printed.getvalue()))
    return "\n".join(text)
