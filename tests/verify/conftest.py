"""Fixtures of these tests: a real PostgreSQL."""

from tests.postgres import database, postgres_server

__all__ = ["database", "postgres_server"]
