"""A real PostgreSQL for tests: one server a session, from a wheel, and a database a test."""

from __future__ import annotations

import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from ldpstream.collector.store.database import Database
from ldpstream.fleet.folders import memory_folder


@contextmanager
def running_server(*, in_memory: bool = True) -> Iterator[str]:
    """The address of a server that is there for a while; it listens on a socket in its folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own import: where sockets are kept without XDG
        from pgserver.postgres_server import get_server
    place = memory_folder() if in_memory else None
    with tempfile.TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as folder:
        server = get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


@contextmanager
def new_database(server: str) -> Iterator[Database]:
    """An empty database, dropped at the end with whoever is still connected."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
        try:
            yield Database(server.replace("/postgres?", f"/{name}?"))
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    with running_server() as server:
        yield server


@pytest.fixture
def database(postgres_server: str) -> Iterator[Database]:
    with new_database(postgres_server) as found:
        yield found
