"""A table of a TOML file with checked values; a mistake is reported with its line."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, time
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from ldpstream.collector.config.toml_lines import Path as Place
from ldpstream.collector.config.toml_lines import line_of
from ldpstream.durations import EXAMPLES, milliseconds, spelled
from ldpstream.errors import LdpStreamError, Mistake, Problem
from ldpstream.protocol.names import in_one_line

MOST_MS = 1 << 41
"""About 70 years: devices refuse a longer interval, too."""
MOST_WHOLE = (1 << 31) - 1
"""The largest whole number in the file, which stores, arrays and devices can hold."""
ALIKE = 0.75
"""How similar to a known key (`difflib`) an unknown one must be to count as a typo."""
LEAST_PREFIX = 3
"""The letters from which on a beginning of a key, such as eps, counts as a typo of it."""
MOST_NAMED = 8
"""Known names in a message about a wrong one."""
MOST_COMPARED = 1000
MOST_BITS = 1000
"""The longest integer: a float holds no more, and Python refuses to print a long one."""


def nearest(given: str, known: Sequence[str]) -> str:
    """Return a few of the known names, those most like a wrong one, in their order.

    >>> nearest("p98", [*map(str, range(30)), "p50", "p90", "p99"])
    '8, 9, 18, 19, 28, 29, p90, p99'
    """
    near = get_close_matches(given, known[-MOST_COMPARED:], MOST_NAMED, cutoff=0.0)
    return ", ".join(sorted(near, key=list(known).index))


def is_number(text: str) -> bool:
    """Return whether a text is digits that `int` accepts: not ², and not thousands of them."""
    return text.isascii() and text.isdigit() and len(text) <= 20


def is_text(text: str) -> bool:
    r"""Return whether a text has no NUL and no lone surrogate, which file systems would refuse.

    >>> is_text("ä"), is_text("a\0"), is_text("\ud800")
    (True, False, False)
    """
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def written(value: Any) -> str:
    """Return a value roughly as TOML writes it, where Python would write it differently.

    >>> written(True), written([1, {}]), written(date(2030, 1, 1))
    ('true', '[1, {}]', '2030-01-01')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key} = {written(one)}' for key, one in value.items())}}}"
    return repr(value)


@dataclass
class ConfigTable:
    """A table of the file, which gives checked values and remembers which keys were asked for."""

    values: dict[str, Any]
    file: Path
    text_of_file: str
    place: Place
    asked: set[str] = field(default_factory=set)
    inner: list[ConfigTable] = field(default_factory=list)
    known: frozenset[str] = frozenset()
    """All keys that the table may have, if they are known before they are asked for."""

    def __contains__(self, name: str) -> bool:
        self._ask(name)
        return name in self.values

    def __iter__(self) -> Any:
        return iter(self.values)

    def refuse(self, name: str | None, what: str, fix: str) -> NoReturn:
        place = self.place if name is None else (*self.place, str(name))
        line, what, fix = line_of(self.text_of_file, place), in_one_line(what), in_one_line(fix)
        raise Mistake(Problem.CONFIG_FILE, file=self.file, line=line, what=what, fix=fix)

    def attempt(self, name: str, make: Callable[[], Any]) -> Any:
        """Make a value by a function that may refuse it, and add its line to the error."""
        try:
            return make()
        except LdpStreamError as error:
            if error.problem is Problem.CONFIG_FILE:
                raise
            what, _, fix = str(error).partition("; ")
            self.refuse(name, what, fix)

    def _ask(self, name: str) -> None:
        assert not self.known or name in self.known, name
        self.asked.add(name)

    def refuse_missing(self, name: str) -> NoReturn:
        """Refuse a table without a key that it needs; what has another name is shown first."""
        unknown = [key for key in self.values if key not in self.asked | self.known]
        for typo in get_close_matches(name, unknown, 1, ALIKE):
            self.refuse(typo, f"there is no key {typo!r} here", f"did you mean {name}?")
        for typo in unknown:
            if len(typo) >= LEAST_PREFIX and name.startswith(typo.lower()):
                self.refuse(typo, f"there is no key {typo!r} here", f"did you mean {name}?")
        if self.known and unknown:
            keys = "no key" if len(unknown) == 1 else "no keys"
            what = f"there is {keys} {', '.join(map(repr, unknown))} here, and {name} is missing"
            self.refuse(unknown[0], what, f"add {name}")
        self.refuse(None, f"{name} is missing", "add it")

    def get(self, name: str, default: Any = ...) -> Any:
        self._ask(name)
        if name not in self.values and default is ...:
            self.refuse_missing(name)
        value = self.values.get(name, default)
        for one in value if isinstance(value, list) else (value,):
            if isinstance(one, int) and one.bit_length() > MOST_BITS:
                what = f"{name} has a number of {one.bit_length()} bits"
                self.refuse(name, what, "give a smaller one")
        return value

    def _typed(self, name: str, default: Any, kinds: tuple[type, ...], expected: str) -> Any:
        value = self.get(name, default)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            self.refuse(name, f"{name} is {written(value)}", f"give {expected}")
        return value

    def text(self, name: str, default: Any = ...) -> str:
        text = str(self._typed(name, default, (str,), "a text in quotes"))
        if not is_text(text):
            self.refuse(name, f"{name} is {text!r}", "give a text without NUL or surrogates")
        return text

    def flag(self, name: str, default: bool) -> bool:
        return bool(self._typed(name, default, (bool,), "true or false"))

    def number(self, name: str, default: Any = ...) -> float:
        value: float = self._typed(name, default, (int, float), "a number")
        if not math.isfinite(value):
            self.refuse(name, f"{name} is {value}", "give a finite number")
        return value

    def whole(self, name: str, default: Any = ..., *, least: int) -> int:
        value: int = self._typed(name, default, (int,), "a whole number")
        if value < least:
            self.refuse(name, f"{name} is {value}", f"give a whole number, {least} or more")
        if value > MOST_WHOLE:
            self.refuse(name, f"{name} is {value}", f"give a whole number, at most {MOST_WHOLE}")
        return value

    def duration(self, name: str, default: Any = ..., *, least_ms: int = 0) -> int:
        """Read a duration such as 10s, in milliseconds."""
        given = self.text(name, default)
        length_ms = milliseconds(given)
        if length_ms is None or not least_ms <= length_ms <= MOST_MS:
            least = f", at least {spelled(least_ms)}" if least_ms else ""
            self.refuse(name, f"{name} is {given!r}", f"give a duration like {EXAMPLES}{least}")
        return length_ms

    def choice(self, name: str, known: tuple[str, ...], default: str) -> str:
        value = self.text(name, default)
        if value not in known:
            self.refuse(name, f"{name} is {value!r}", f"use one of: {', '.join(known)}")
        return value

    def strings(self, name: str) -> list[str]:
        values: list[Any] = self._typed(name, ..., (list,), "a list of texts")
        for value in values:
            if not isinstance(value, str):
                what = f"{name} has {written(value)} in it"
                self.refuse(name, what, "give texts in quotes only")
        return values

    def numbers(self, name: str, how_many: int) -> list[float]:
        values: list[Any] = self._typed(name, ..., (list,), f"a list of {how_many} numbers")
        if len(values) != how_many or any(type(value) not in (int, float) for value in values):
            self.refuse(name, f"{name} is {written(values)}", f"give a list of {how_many} numbers")
        return [float(value) for value in values]  # terms and stores hold no other number

    def table(self, name: str) -> ConfigTable:
        values = self._typed(name, {}, (dict,), f"a table: [{name}]")
        return self._within(values, (*self.place, name))

    def tables(self, name: str, known: frozenset[str] = frozenset()) -> list[ConfigTable]:
        values = self._typed(name, [], (list,), f"tables: [[{name}]]")
        if not all(isinstance(value, dict) for value in values):
            self.refuse(name, f"{name} contains something other than tables", f"write [[{name}]]")
        return [
            self._within(value, (*self.place, name, position), known)
            for position, value in enumerate(values)
        ]

    def _within(
        self, values: dict[str, Any], place: Place, known: frozenset[str] = frozenset()
    ) -> ConfigTable:
        for table in self.inner:
            if table.place == place:
                return table
        self.inner.append(type(self)(values, self.file, self.text_of_file, place, known=known))
        return self.inner[-1]

    def finish(self) -> None:
        """Refuse the first unknown key."""
        for name in self.values:
            if name not in self.asked:
                known = sorted(self.asked)
                meant = get_close_matches(name, known, 1, ALIKE)
                near = f"did you mean {meant[0]}? " if meant else ""
                fix = f"{near}use one of: {', '.join(known)}"
                self.refuse(name, f"there is no key {name!r} here", fix)
        for table in self.inner:
            table.finish()
