"""The browser that the tests and the screenshots use: Debian's chromium, without a window."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


def executable() -> str | None:
    """The path of a chromium on this machine; tools/system.sh installs one where it can."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@contextmanager
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=executable(), args=list(FLAGS))
        try:
            yield opened
        finally:
            opened.close()
