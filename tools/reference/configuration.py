"""The page of the configuration: keys, types and defaults as the reader of the file asks for them.

What a key is for is taken from the tables of docs/collector.md and docs/alerts.md: a key that they
do not explain fails the build, and so does one that the samples below do not reach.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any

from ldpstream.collector.config import file as config_file
from ldpstream.collector.config.table import ConfigTable
from reference.markdown import code, table

ROOT = Path(__file__).parents[2]
EXPLAINED = (ROOT / "docs/collector.md", ROOT / "docs/alerts.md")
READERS = ROOT / "src/ldpstream/collector/config"
INTRODUCTION = """# Configuration

The keys of the file that `ldpstream serve FILE` reads, as the code asks for them. `ldpstream
serve --check FILE` checks a file and starts nothing; unknown keys and impossible values are
refused with their line. How they work together is in [the
collector](../collector.md#configuration) and [alerts](../alerts.md);
[examples/stream.toml](../../examples/stream.toml) is one to start from.

"""
LEAST = """
[[stream]]
name = "least"
labels = ["a", "b"]
epsilon = 1
window = 4
interval = "1h"
population = 100
successor = { version = 2 }
notice = { who = "we", why = "so", contact = "here", retention = "a day" }
[[stream.level]]
name = "careful"
epsilon = 0.5
window = 8
"""
STREAM = """
[[stream]]
name = "one"
labels = ["a", "b"]
other = "b"
epsilon = 1
window = 4
interval = "1h"
population = 100
start = 2030-01-01T00:00:00Z
public = true
allowed_origins = ["https://app.example"]
thresholds = { a = 0.5 }
notice = { who = "we", why = "so", contact = "here", retention = "a day" }
successor = { version = 2, rename = { c = "a" }, overlap = "6h" }
[[stream.level]]
name = "careful"
epsilon = 0.5
window = 8
"""
ALERTS = """
[[stream.alert]]
label = "a"
{}
"""
CONDITIONS = (
    "above = 0.5",
    "below = 0.5",
    "wider_than = 0.5",
    "changed_by = 0.5",
)
WHOLE = """
[[stream.alert]]
no_reports = "5m"
[[stream.alert]]
reports_below = 0.5
[[stream]]
name = "two"
range = [0, 1]
query = "distribution"
bins = 16
epsilon = 1
window = 4
interval = "1h"
population = 100
"""
WITHOUT_LOG = f"""
[[stream]]
name = "words"
vocabulary = "open"
bits = 20
prefixes = [2]
salt = "00000000000000ff"
candidates = ["a"]
candidates_file = "{os.devnull}"
top = 10
epsilon = 1
window = 4
interval = "1h"
population = 100
[[stream]]
name = "parts"
labels = ["a", "b"]
epsilon = 1
window = 4
interval = "1h"
population = 100
attributes = {{ country = ["de"] }}
[[stream.alert]]
label = "a"
above = 0.5
group = "country:de"
"""
"""Streams that a log of reports cannot count."""
COLLECTOR = """
[collector]
store = "postgresql://user@host/name"
ingest = "nats://host:4222"
master_file = "a"
enrolment_file = "b"
admin_file = "c"
alerts = { webhook = "https://hook.example" }
"""
SAMPLE = COLLECTOR + STREAM + "".join(map(ALERTS.format, CONDITIONS)) + WHOLE
ARRAYS = ("stream", "stream.level", "stream.alert")
OPEN = {
    "stream.attributes": "ATTRIBUTE",
    "stream.thresholds": "LABEL",
    "stream.successor.rename": "OLD LABEL",
}
"""Tables whose keys are names that the stream has."""
ELSEWHERE = {"collector.alerts": "Where alerts are sent: [the webhook](../alerts.md#the-webhook)."}
KINDS = {
    "text": "text",
    "flag": "true or false",
    "number": "number",
    "whole": "whole number",
    "duration": "duration",
    "choice": "one of a list",
    "strings": "list of texts",
    "numbers": "list of numbers",
    "get": "any",
}
DEFAULTS = {
    ("stream", "labels"): "required, or `range`, or `vocabulary`",
    ("stream", "bits"): "planned",
    ("stream", "prefixes"): "`[2, 4, 6]`",
    ("stream", "salt"): "drawn",
    ("stream", "start"): "first run",
    ("stream", "selection"): '`"slots"` with `lpf` and `lpu`, else `"open"`',
    ("stream", "public_enrolment"): "`true` if the file says `public = true`",
    ("stream.alert", "name"): "the condition",
}
"""Of keys whose default depends on others."""
TYPES = {"start": "date and time with offset", "allowed_origins": 'list of texts, or `"*"`'}
"""Of keys that are read in a way of their own."""


@dataclass(frozen=True)
class Key:
    """One key, as it was asked for."""

    kind: str
    default: Any
    limits: str
    required: bool = False

    @property
    def is_table(self) -> bool:
        return self.default in ({}, [])

    @property
    def shown_default(self) -> str:
        if self.default is ...:
            return "required" if self.required else ""
        if self.default is None or self.default == "":
            return ""
        if isinstance(self.default, bool):
            return code(str(self.default).lower())
        return code(f'"{self.default}"' if isinstance(self.default, str) else self.default)


class _RecordingTable(ConfigTable):
    """A table that notes which keys are asked for, and how."""

    found: dict[tuple[str, str], Key]
    asking = False


def _recording(kind: str) -> Callable[..., Any]:
    ask = getattr(ConfigTable, kind)

    @wraps(ask)
    def asked(self: _RecordingTable, name: str, *given: Any, **named: Any) -> Any:
        if self.asking:  # one method calls another
            return ask(self, name, *given, **named)
        where = ".".join(part for part in self.place if isinstance(part, str))
        known = self.found.get((where, str(name)))
        if known is None or known.kind == "get":
            self.found[where, str(name)] = _key(kind, given, named)
        self.asking = True
        try:
            return ask(self, name, *given, **named)
        finally:
            self.asking = False

    return asked


def _key(kind: str, given: tuple[Any, ...], named: dict[str, Any]) -> Key:
    if kind == "choice":
        return Key(kind, str(given[1]), ", ".join(code(f'"{one}"') for one in given[0]))
    default = (
        ... if kind in ("strings", "numbers") else given[0] if given else named.get("default", ...)
    )
    least = named.get("least", named.get("least_ms"))
    unit = " ms" if "least_ms" in named else ""
    return Key(kind, default, "" if least in (None, 0) else f"at least {least}{unit}")


def read_keys() -> dict[tuple[str, str], Key]:
    """Return the keys by table and name, in the order in which they are asked for."""
    found: dict[tuple[str, str], Key] = {}
    members = {kind: _recording(kind) for kind in KINDS} | {"found": found}
    config_file.ConfigTable = type("Recording", (_RecordingTable,), members)  # type: ignore[misc]
    try:
        config_file.parse(LEAST, Path("sample.toml"))
        found |= {at: replace(key, required=key.default is ...) for at, key in found.items()}
        config_file.parse(SAMPLE, Path("sample.toml"))
        config_file.parse(WITHOUT_LOG, Path("sample.toml"))
    finally:
        config_file.ConfigTable = ConfigTable  # type: ignore[misc]
    asked = "|".join(KINDS)
    literal = re.compile(rf'\.(?:{asked})\(\s*"(\w+)"')
    named = {name for one in READERS.glob("*.py") for name in literal.findall(one.read_text())}
    missing = named - {name for _, name in found}
    if missing:
        raise SystemExit(f"docs: the sample of {__file__} does not reach: {sorted(missing)}")
    return found


def page() -> str:
    """Return the page."""
    explained = _explanations()
    places: dict[str, list[tuple[str, Key]]] = {}
    for (place, name), key in read_keys().items():
        if not key.is_table:
            places.setdefault(place, []).append((OPEN.get(place, name), key))
    return "\n".join(
        [INTRODUCTION, *(_section(place, keys, explained) for place, keys in places.items())]
    )


def _section(place: str, keys: list[tuple[str, Key]], explained: dict[str, str]) -> str:
    whole = ELSEWHERE.get(place) or explained.get(place, "")
    if place in OPEN and not whole:
        whole = explained[place.rpartition(".")[0]]
    rows = []
    for name, key in keys:
        about = explained.get(f"{place}.{name}", "")
        if not (about or whole):
            raise SystemExit(f"docs: no table of docs/ explains the key {name} of [{place}]")
        type_ = TYPES.get(name, KINDS[key.kind])
        limits = f"; {key.limits}" if key.limits else ""
        default = DEFAULTS.get((place, name), key.shown_default)
        rows.append((code(name), type_ + limits, default, about))
    title = f"[[{place}]]" if place in ARRAYS else f"[{place}]"
    head = ("key", "type", "default", "what it is for")
    columns = 4 if any(row[3] for row in rows) else 3
    whole = whole[:1].upper() + whole[1:]
    return f"## `{title}`\n\n{whole}\n\n" + table(head[:columns], (row[:columns] for row in rows))


def _explanations() -> dict[str, str]:
    """Read the tables of the pages: by `table.key`, or by the name of a table itself."""
    explained: dict[str, str] = {}
    for file in EXPLAINED:
        place = ""
        for line in file.read_text().splitlines():
            cells = [one.strip() for one in re.split(r"(?<!\\)\|", line)[1:-1]]
            if not cells:
                place = ""
            elif not place:
                place = _place(cells[0])
            elif place != "-" and not cells[0].startswith("--"):
                for key in re.findall("`([^`]+)`", cells[0]):
                    name = f"{place}.{key}" if key[0] != "[" else key.strip("[]")
                    explained[name] = _from_here(_about(place, cells[1:]), file.name)
    return explained


def _place(head: str) -> str:
    """Return the table of the file that a table of a page is about; "-": none."""
    if head in ("condition", "other keys"):
        return "stream.alert"
    return head.strip("`[]") if head.startswith("`[") else "-"


def _about(place: str, cells: list[str]) -> str:
    if place != "collector.limits":
        return cells[1]
    return f"{cells[0].lstrip('0123456789 ')}; beyond it: {cells[1]}".lstrip("; ")


def _from_here(text: str, page: str) -> str:
    """Let links of a page of docs/ work from docs/generated/."""
    text = re.sub("(?<!\\[)see below", f"see [there](../{page})", text).replace(
        "[below]", "[there]"
    )
    return re.sub(r"\]\((?!\.\.)(#)?", lambda link: f"](../{page}#" if link[1] else "](../", text)
