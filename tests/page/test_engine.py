"""An engine that counts reports, on the page: whether it runs, and how far it is behind."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from ldpstream.collector.store.database import Database
from tests.engines.sparkling import running as running_engine
from tests.jetstream import running_nats
from tests.page.conftest import Watched
from tests.page.scene import SECRETS, stream_table
from tests.serving import HEAD, CollectorProcess


def test_an_engine_that_does_not_run_is_on_the_page(
    page: Page, watched: Watched, database: Database, tmp_path: Path
) -> None:
    with running_nats() as server:
        head = HEAD.replace('"collector.sqlite"', f'"{database.url}"')
        text = f'{head}ingest = "{server.settings.url}"\n'
        text += stream_table("regions", ["x", "y"], interval="1s", window=2)
        with CollectorProcess.of(tmp_path, text, SECRETS) as collector:
            page.goto(f"{collector.url}/#/streams/regions")
            expect(page.locator(".pill").first).to_have_text("behind")
            health = page.locator(".panel-round .facts").last
            expect(health).to_contain_text(re.compile("Releases are late by.*[1-9]"))
            expect(health).to_contain_text("does not run")
            expect(health).to_contain_text(re.compile(r"has not counted\s*\d"))
            expect(page.locator(".next pre")).to_contain_text("ldpstream engine local --config")
            with running_engine(tmp_path, "local", "--config", str(collector.file)):
                expect(health).to_contain_text("running")
                expect(page.locator(".pill").first).to_have_text("waiting")
