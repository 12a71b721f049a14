"""The browsers of the tests and the screenshots: Debian's chromium, whole and without a window."""

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
    "--lang=en-US",
)
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
SHELL = "chromium-headless-shell"
"""The same engine without the rest of a browser: it takes half the processor time."""


def executable(*preferred: str) -> str | None:
    """The path of a chromium on this machine; tools/system.sh installs one where it can."""
    return next((found for name in (*preferred, *NAMES) if (found := shutil.which(name))), None)


@contextmanager
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=executable(SHELL), args=list(FLAGS))
        try:
            yield opened
        finally:
            opened.close()
