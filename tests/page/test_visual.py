"""What is really to be seen, in both themes: heat map, lines, and figures that can be read.

The streams begin as all do: first nobody has reported, then intervals say next to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page

from tests.page import pixels
from tests.page.scene import Scene, stream_table, waves
from tests.page.shots import narrow
from tests.page.test_page import open_stream, range_of, wait_until

TIMESTAMPS = 120
UNHEARD = 4
"""Timestamps before the first report."""
VAGUE = 8
"""Timestamps up to which an interval is as wide as all values."""
SIZES = {"three": 3, "dozen": 12, "many": 200, "celsius": 1}
HELD = ("three", "many", "celsius")
"""Streams whose store has releases and no tallies: nothing is revised. The other one has both."""
REACH = {"three": 0.2, "many": 0.004, "celsius": 1.5}
LOOKED_AT = 90
CELSIUS = """
[[stream]]
name = "celsius"
range = [-20, 60]
epsilon = 1
window = 10
interval = "600s"
population = 1000
thresholds = { mean = 4 }
"""

Theme = Literal["light", "dark"]


def truth(name: str, t: int) -> list[float]:
    if name == "celsius":
        return [8 * math.sin(t / 19)]
    if name == "three":
        first = 0.85 + 0.04 * math.sin(t / 15)  # the scale of the heat map is exactly 1
        return [first, 0.55 * (1 - first), 0.45 * (1 - first)]
    return narrow(t, 200)


def content(name: str, t: int) -> dict[str, object]:
    """A release as the collector makes it."""
    values, reach = truth(name, t), REACH[name]
    low, high = (-20.0, 60.0) if name == "celsius" else (0.0, 1.0)
    if t <= UNHEARD:
        values = [(low + high) / len(values) if name != "celsius" else 20.0] * len(values)
    return {
        "values": values,
        "variance": [reach**2] * len(values),
        "low": [low if t <= VAGUE else max(low, one - reach) for one in values],
        "high": [high if t <= VAGUE else min(high, one + reach) for one in values],
        "fresh": True,
        "heard_t": 0 if t <= UNHEARD else t,
    }


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """One collector, with a stream of each size."""
    streams = CELSIUS
    for name in [one for one in SIZES if one != "celsius"]:
        labels = [f"label {number}" for number in range(SIZES[name])]
        close = {"label 0": 0.5, "label 1": 0.52} if name == "three" else {}
        streams += stream_table(
            name, labels, interval="600s", mechanism="lpf", thresholds=close, population=60_000
        )
    made = Scene(Path(tmp_path_factory.mktemp("visual")), streams)
    made.remember("dozen", TIMESTAMPS, waves)
    for name in HELD:
        made.hold(name, [content(name, t) for t in range(1, TIMESTAMPS + 1)])
    with made.collector:
        yield made


@pytest.fixture(scope="module", params=["light", "dark"])
def theme(request: pytest.FixtureRequest) -> Theme:
    chosen: Theme = request.param
    return chosen


@pytest.fixture(scope="module")
def opened(chromium: Browser, theme: Theme) -> Iterator[Page]:
    context = chromium.new_context(
        viewport={"width": 1280, "height": 900}, color_scheme=theme, reduced_motion="reduce"
    )
    pixels.record_texts(context)
    page = context.new_page()
    yield page
    context.close()


@pytest.fixture(scope="module", params=SIZES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def looking(opened: Page, scene: Scene, name: str) -> Page:
    """A page that has drawn a stream; all that is checked of it looks at the same one."""
    open_stream(opened, scene, name)
    drawn = f"document.querySelector('main').dataset.rows >= {TIMESTAMPS}"
    wait_until(opened, f"{drawn} && document.querySelector('.bars tbody tr') !== null")
    if name not in HELD:
        wait_until(opened, "Number(document.querySelector('main').dataset.revised) > 0")
    return opened


def test_the_heat_map_is_painted_from_little_to_much(
    looking: Page, scene: Scene, theme: Theme, name: str
) -> None:
    if SIZES[name] == 1:
        assert looking.locator(".heat").count() == 0
        return
    painted = pixels.heat(looking, SIZES[name])
    assert {opacity for *_, opacity in painted} == {255}
    shares = scene.releases(name)[-1]["values"]
    by_share = sorted(range(SIZES[name]), key=lambda label: shares[label])
    seen = [pixels.lightness(painted[label]) for label in by_share]
    if theme == "light":  # more is darker
        seen = [-one for one in seen]
    assert all(after >= before - 1 for before, after in pairwise(seen))
    assert seen[-1] - seen[0] > 60


def test_a_line_is_where_the_axis_says_and_not_on_the_floor(
    looking: Page, scene: Scene, name: str
) -> None:
    span = range_of(looking)
    chips = looking.locator(".chip span:not(.unseen)").all_inner_texts()
    release = scene.releases(name, revised=True)[LOOKED_AT - 1]
    values = release["values" if name in HELD else "revised"]
    place = 0 if name == "celsius" else int(chips[-1].removeprefix("label "))
    lines = [pixels.line(looking, slot, span, LOOKED_AT) for slot in range(len(chips))]
    seen = lines[-1]  # nothing is drawn over it
    assert seen.covered > 0.85, "all along, but where nobody had reported"
    assert seen.at, "at this timestamp"
    scale = 1 if name == "celsius" else 100
    off = min(abs(seen.value_at(y) - scale * values[place]) for y in seen.at)
    assert off < 0.01 * abs(seen.value_at(0) - seen.value_at(320))
    assert min(line.top for line in lines) < 0.4


@pytest.mark.parametrize("width", [1280, 360])
def test_no_figures_touch(looking: Page, width: int) -> None:
    pixels.assert_figures_do_not_touch(looking, width)
