"""Fixtures of the tests of commands."""

from tests.postgres import database, postgres_server

__all__ = ["database", "postgres_server"]
