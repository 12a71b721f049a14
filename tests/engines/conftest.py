"""The servers that engines work with, all of them real."""

from tests.jetstream import nats_server
from tests.postgres import database, postgres_server

__all__ = ["database", "nats_server", "postgres_server"]
