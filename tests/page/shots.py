"""The screenshots in docs/images, taken anew: `python -m tests.page.shots`."""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from playwright.sync_api import Browser

from tests.page.browser import browser
from tests.page.scene import ENROLMENT, Crowd, Scene, stream_table, waves

IMAGES = Path(__file__).parents[2] / "docs" / "images"
REGIONS = ["north", "south", "east", "west", "centre", "harbour", "airport", "old town"]
REGIONS += ["university", "river", "hills", "lakeside"]
MODES = ["bus", "tram", "on foot", "bicycle", "car", "train", "ferry", "at home"]


ALERTS = """
[[stream.alert]]
name = "South is crowded"
label = "south"
above = 0.3
on = "interval"
for = "4s"
[[stream.alert]]
name = "North runs empty"
label = "north"
below = 0.1
on = "interval"
probability = 0.9
"""


def slow(t: int, labels: int) -> list[float]:
    return waves(t // 4 + 70, labels)


def narrow(t: int, labels: int) -> list[float]:
    """200 cells, with a few crowds that wander."""
    shares = [0.3] * labels
    for crowd, weight in enumerate((9.0, 6.0, 5.0, 3.0)):
        middle = (30 + 47 * crowd + t / (9 + 4 * crowd)) % labels
        for label in range(labels):
            away = min(abs(label - middle), labels - abs(label - middle))
            shares[label] += weight * 2.72 ** (-((away / 7) ** 2))
    return [share / sum(shares) for share in shares]


def scene(folder: Path) -> Scene:
    streams = stream_table(
        "regions",
        REGIONS,
        interval="2s",
        epsilon=1,
        window=20,
        population=100_000,
        mechanism="lpf",
    )
    streams += ALERTS
    streams += stream_table(
        "commute", MODES, interval="2s", epsilon=1, window=10, population=30_000, mechanism="lpu"
    )
    streams += stream_table(
        "cells",
        [f"cell {number:03}" for number in range(200)],
        interval="60s",
        window=10,
        population=4_000_000,
        mechanism="lpu",
        oracle="oue",
    )
    made = Scene(folder, streams)
    made.remember("cells", 1200, narrow, ahead_ms=20_000)
    made.remember("commute", 400, slow, ahead_ms=13_000)
    made.remember("regions", 900, waves, ahead_ms=9000)
    return made


def shoot(
    opened: Browser,
    url: str,
    name: str,
    width: int,
    height: int,
    path: str,
    dark: bool,
    whole: bool,
) -> None:
    page = opened.new_page(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        device_scale_factor=1,
    )
    page.goto(f"{url}/{path}")
    if path:
        page.wait_for_selector(".u-over")
        if name == "stream":
            page.fill("#join-token", ENROLMENT)
            page.check("#join-first")
            page.select_option("#join-value", "2")
            page.click("text=Join >> nth=-1")
    else:
        page.wait_for_selector(".top-labels li")
    time.sleep(5.0)
    if name.startswith("stream"):
        page.wait_for_selector(".alert.firing", timeout=90_000)
        time.sleep(5.0)
        page.wait_for_selector(".round progress")
    page.screenshot(path=IMAGES / f"dashboard-{name}.png", full_page=whole)
    page.close()


def main(only: list[str]) -> None:
    IMAGES.mkdir(exist_ok=True)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        made = scene(folder)
        stack.enter_context(made.collector)
        stack.enter_context(Crowd(made, "regions", waves).reporting())
        stack.enter_context(Crowd(made, "commute", slow).reporting())
        opened = stack.enter_context(browser())
        shots = (
            ("stream", 1440, 900, "#/streams/regions", False, True),
            ("stream-dark", 1440, 900, "#/streams/regions", True, False),
            ("cells-dark", 1440, 1000, "#/streams/cells", True, False),
            ("phone", 390, 844, "#/streams/regions", False, False),
            ("phone-dark", 390, 844, "", True, False),
            ("overview", 1280, 560, "", False, False),
        )
        for name, width, height, path, dark, whole in shots:
            if not only or name in only:
                shoot(opened, made.url, name, width, height, path, dark, whole)
                print(f"dashboard-{name}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
