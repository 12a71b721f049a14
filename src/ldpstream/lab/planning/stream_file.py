"""The `stream.toml` of a plan, with the reasons beside the settings."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from ldpstream.durations import spelled
from ldpstream.lab.planning.outcome import PlanOutcome
from ldpstream.lab.planning.subject import Subject
from ldpstream.mechanisms.queries import DistributionQuery, MeanQuery
from ldpstream.mechanisms.registry import usual_selection
from ldpstream.mechanisms.settings import Settings
from ldpstream.protocol.attributes import Attributes
from ldpstream.protocol.terms import DISTRIBUTION

WIDTH = 100
OTHER = (
    'Devices that may have no usable value need a label for it: other = "LABEL", one of the labels.'
)


@dataclass(frozen=True)
class StreamFile:
    """The content of the file."""

    subject: Subject
    settings: Settings
    interval_ms: int
    chosen: PlanOutcome
    reasons: Sequence[str]
    attributes: Attributes | None = None
    """The public attributes of devices, if figures are to be broken down."""

    def text(self) -> str:
        settings = self.settings
        lines = [
            *beginning(_comment(" ".join(self.reasons)), pinned_until="the oracle"),
            *_values(self.subject),
            *_comment("No device spends more than epsilon in any span of `window` timestamps."),
            f"epsilon = {settings.epsilon}",
            f"window = {settings.window}",
            f'interval = "{spelled(self.interval_ms)}"',
            f'oracle = "{self.chosen.oracle}"',
            f'mechanism = "{self.chosen.mechanism}"',
            "",
            *_comment(
                "How many devices are expected: a share of the fleet is a share of this. With "
                "slots (lpf and lpu only) each device reports unasked, once in a window; with open "
                "selection it picks itself at a rate that is announced; with a roster the "
                "collector knows all devices, and picks."
            ),
            f"population = {settings.users}",
            f'selection = "{usual_selection(self.chosen.mechanism)}"',
        ]
        return "\n".join([*lines, *self._attributes()]) + "\n"

    def _attributes(self) -> list[str]:
        if self.attributes is None:
            return []
        told = "What each report tells openly of its device; devices pin this, too."
        lines = [
            f"{one.name} = [{', '.join(map(_quoted, one.declared))}]"
            for one in self.attributes.each
        ]
        return ["", "[stream.attributes]", *_comment(told), *lines]


def beginning(reasons: Sequence[str], pinned_until: str) -> list[str]:
    """Return the first lines of a file, down to the stream's name; reasons are comments."""
    return [
        "# Written by `ldpstream plan`. Check it: ldpstream serve --check FILE",
        "",
        "[collector]",
        'listen = "127.0.0.1:8080"',
        'store = "ldpstream-data/collector.sqlite"',
        "",
        *reasons,
        "",
        "[[stream]]",
        f"# Devices pin what follows, up to {pinned_until}, when they enrol: it cannot be changed.",
        'name = "my-stream"  # up to 64 of a-z, 0-9, - and _',
    ]


def _values(subject: Subject) -> list[str]:
    """Return the lines that say what devices hold."""
    if isinstance(subject.query, MeanQuery):
        return [_range(subject.query)]
    if isinstance(subject.query, DistributionQuery):
        bins = f"bins = {subject.query.bins}"
        return [_range(subject.query), f'query = "{DISTRIBUTION}"', bins]
    return [*_labels(subject.labels, named=subject.named), *_comment(OTHER)]


def _range(query: MeanQuery | DistributionQuery) -> str:
    return f"range = [{query.low!r}, {query.high!r}]"


def _labels(labels: Sequence[str], *, named: bool) -> list[str]:
    note = [] if named else _comment("Put names in place of the numbers, each once.")
    quoted = ", ".join(map(_quoted, labels))
    # Lines may break only at spaces after commas: a label can contain spaces.
    body = [f"  {label}," for label in map(_quoted, labels)]
    short = f"labels = [{quoted}]"
    return [*note, short] if len(short) <= WIDTH else [*note, "labels = [", *body, "]"]


def _quoted(label: str) -> str:
    r"""Return a TOML string: TOML has JSON's escapes, and one for DEL, which JSON leaves alone.

    >>> print(_quoted('say "é"\n'))
    "say \"é\"\n"
    """
    return json.dumps(label, ensure_ascii=False).replace("\x7f", "\\u007F")


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="# ", subsequent_indent="# ")
