"""Fixtures of these tests: a real PostgreSQL. Each of them has the mark `verify`."""

from pathlib import Path

import pytest

from tests.postgres import database, postgres_server

__all__ = ["database", "postgres_server"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:  # of other folders, too
        if Path(__file__).parent in item.path.parents:
            item.add_marker("verify")
