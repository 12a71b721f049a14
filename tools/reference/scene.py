"""A collector that is built but never started, for what only a built one can tell."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fastapi import FastAPI

from ldpstream.collector.api.app import build_app
from ldpstream.collector.config import load
from ldpstream.collector.credentials.secrets import Secrets
from ldpstream.collector.service.service import Service

STREAM = """
[collector]
listen = "127.0.0.1:0"
store = "collector.sqlite"
[[stream]]
name = "stream"
labels = ["label", "another"]
epsilon = 1
window = 4
interval = "1s"
population = 100
"""
SECRETS = Secrets(b"of no use: never started", b"never started", b"never started")


@contextmanager
def built_app() -> Iterator[FastAPI]:
    """Build the application of a collector in a folder that is removed again."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "stream.toml"
        file.write_text(STREAM)
        service = Service(load(file), SECRETS)
        try:
            yield build_app(service)
        finally:
            service.store.close()
