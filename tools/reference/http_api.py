"""The page of the HTTP API, from the OpenAPI document that a collector serves."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from reference.markdown import code, table
from reference.scene import built_app

INTRODUCTION = """# HTTP API

A collector describes its API at `/openapi.json`; this page is made of that document. What devices
and collectors say to each other, byte by byte, is in [the protocol](../protocol.md); calls with
`curl` are in [plain HTTP](../curl.md). Refusals have an RFC 9457 problem body, with a code of
[the catalogue](errors.md).

"""
TAGS = {
    "devices": "What devices call",
    "readers": "What readers call",
    "participants": "What participants read",
    "status": "Status",
    "admin": "Administration",
}


def page() -> str:
    """Return the page."""
    with built_app() as app:
        document = app.openapi()
    calls = sorted(_calls(document), key=lambda one: (_rank(one[0]), one[1], one[2]))
    parts = [INTRODUCTION]
    for tag, group in groupby(calls, key=lambda one: one[0]):
        parts.append(f"## {TAGS.get(tag, tag.capitalize())}\n\n")
        for _, path, method, call in group:
            parts.append(_call(document, method, path, call))
    return "".join(parts)


def _rank(tag: str) -> tuple[int, str]:
    known = [*TAGS]
    return (known.index(tag) if tag in known else len(known)), tag


def _calls(document: dict[str, Any]) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, call in methods.items():
            yield call.get("tags", ["others"])[0], path, method.upper(), call


def _call(document: dict[str, Any], method: str, path: str, call: dict[str, Any]) -> str:
    about = call.get("description") or call.get("summary", "")
    parts = [f"### `{method} {path}`\n\n{about}\n\n"]
    if given := call.get("parameters"):
        rows = ((code(one["name"]), one["in"], *_of_parameter(one)) for one in given)
        parts.append(table(("parameter", "in", "type", "what it is"), rows) + "\n")
    for kind, content in call.get("requestBody", {}).get("content", {}).items():
        parts.append(f"Body: `{kind}`. {_schema(document, content['schema'])}\n\n")
    answers = ((code(status), one["description"]) for status, one in call["responses"].items())
    return "".join(parts) + table(("answer", ""), answers) + "\n"


def _of_parameter(given: dict[str, Any]) -> tuple[str, str]:
    needed = "; required" if given.get("required") and given["in"] != "path" else ""
    return _type(given["schema"]) + needed, given.get("description", "")


def _type(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    name = str(schema.get("type", schema.get("$ref", "any").rpartition("/")[2]))
    usual = schema.get("default")
    return name if usual in (None, "") else f"{name}, default {usual}"


def _schema(document: dict[str, Any], schema: dict[str, Any]) -> str:
    """Name the members of an object that a request sends."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    needed = schema.get("required", ())
    members = (
        f"`{name}` ({_type(one)}{', required' if name in needed else ''})"
        for name, one in schema.get("properties", {}).items()
    )
    return ", ".join(members)
