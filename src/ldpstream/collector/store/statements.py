"""Statements that both stores share: how each of them runs one, and the smallest of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from ldpstream.collector.store.content import stored_text

Result = TypeVar("Result")


class Rows(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...


Execute = Callable[..., Rows]
"""Runs a statement, whose places are `%s`, with the values for them."""
Work = Callable[[Execute], Result]


class Tables(Protocol):
    """How a store runs statements."""

    def read(self, work: Work[Result]) -> Result:
        """Run work that changes nothing."""

    def change(self, work: Work[Result]) -> Result:
        """Run work in a transaction, while others may change something else."""

    def change_alone(self, work: Work[Result]) -> Result:
        """Run work in a transaction; other collectors that do so wait for it."""


def read_property(run: Execute, name: str) -> str | None:
    """Return a property of the store, if it has it."""
    row = run("SELECT value FROM property WHERE name = %s", name).fetchone()
    return None if row is None else str(row[0])


def write_property(run: Execute, name: str, value: str) -> None:
    """Add a property of the store, or replace it."""
    run(
        "INSERT INTO property VALUES (%s, %s)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        name,
        value,
    )


def write_note(run: Execute, stream: str, name: str, content: dict[str, Any]) -> None:
    """Add a note of a stream, or replace it."""
    run(
        "INSERT INTO note VALUES ((SELECT id FROM stream WHERE name = %s), %s, %s)"
        " ON CONFLICT (stream, name) DO UPDATE SET content = excluded.content",
        stream,
        name,
        stored_text(content),
    )


def id_of(run: Execute, stream: str) -> int:
    """Return the id of a stream that was created."""
    row = run("SELECT id FROM stream WHERE name = %s", stream).fetchone()
    assert row is not None
    return int(row[0])


def next_serial(run: Execute, key: int, step: int = 1) -> int:
    """Increment the serial of a stream, and return it."""
    row = run(
        "UPDATE stream SET serial = serial + %s WHERE id = %s RETURNING serial", step, key
    ).fetchone()
    return int(row[0])
