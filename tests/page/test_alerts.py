"""Alerts on the page: from pending to firing to resolved, as the stream itself goes up and down."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.conftest import Watched
from tests.page.scene import ADMIN, XSS, Crowd, Scene, stream_table
from tests.page.test_page import last_t, open_stream, serious_faults, wait_until, wait_until_it_fits

BEARER = {"Authorization": f"Bearer {ADMIN}"}
NAME = f"{XSS} is high"


class Tide:
    """A truth that the test raises and lowers."""

    def __init__(self) -> None:
        self.high = threading.Event()

    def __call__(self, t: int, labels: int) -> list[float]:
        first = 0.9 if self.high.is_set() else 0.1
        return [first] + [(1 - first) / (labels - 1)] * (labels - 1)


@pytest.fixture(scope="module")
def tide() -> Tide:
    return Tide()


@pytest.fixture(scope="module")
def shore(tmp_path_factory: pytest.TempPathFactory, tide: Tide) -> Iterator[Scene]:
    """LPU releases what it hears: 100 reports a timestamp, so 0.1 and 0.9 are 8 errors apart."""
    stream = stream_table("shore", [XSS, "y"], interval="400ms", epsilon=4, mechanism="lpu")
    made = Scene(Path(tmp_path_factory.mktemp("shore")), stream)
    with made.collector, Crowd(made, "shore", tide).reporting():
        yield made


def add_rule(scene: Scene, **rule: object) -> str:
    answer = httpx.post(
        f"{scene.url}/v1/streams/shore/alerts/rules",
        json={"label": XSS, "above": 0.5, "on": "interval", "name": NAME} | rule,
        headers=BEARER,
    )
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def test_an_alert_is_pending_fires_and_is_resolved_on_the_page(
    page: Page, watched: Watched, chromium: Browser, shore: Scene, tide: Tide
) -> None:
    open_stream(page, shore, "shore")
    wait_until(page, "Number(document.querySelector('main').dataset.lastT) >= 3")
    expect(page.locator(".panel-alerts")).to_be_hidden()
    # A busy machine may miss a few rounds: that must not resolve it.
    add_rule(shore, **{"for": "1200ms", "keep_firing_for": "4s"})
    alert = page.locator(".alert")
    expect(alert.locator(".state")).to_have_text("Quiet")
    expect(alert).to_contain_text(NAME)
    tide.high.set()
    expect(alert.locator(".state")).to_have_text("Pending")
    expect(page.locator(".page-title .pill.pending")).to_have_text("1 pending")
    expect(alert.locator(".state")).to_have_text("Firing")
    expect(page.locator(".page-title .pill.firing")).to_have_text("1 firing")
    expect(page.locator("#announcer")).to_contain_text(f"Firing: {NAME}")
    assert page.title().startswith("▲ 1 firing")
    expect(page.locator(".alert-log li.firing")).to_have_count(1)

    for scheme in ("light", "dark"):  # while something burns, on both pages, as on a phone
        context = chromium.new_context(
            viewport={"width": 360, "height": 740},
            color_scheme="dark" if scheme == "dark" else "light",
            reduced_motion="reduce",
        )
        phone = context.new_page()
        for place, ready in (("", ".card-alerts li"), ("#/streams/shore", ".alert.firing")):
            phone.goto(f"{shore.url}/{place}")
            phone.wait_for_selector(ready)
            wait_until_it_fits(phone)
            assert serious_faults(phone) == []
        phone.goto(shore.url)
        expect(phone.locator(".stream-card.burning .pill.firing")).to_have_text("1 firing")
        context.close()

    tide.high.clear()
    expect(alert.locator(".state")).to_have_text("Resolved")
    expect(page.locator(".page-title .pill.firing")).to_be_hidden()
    expect(page.locator(".alert-log li")).to_have_count(2)
    expect(page.locator(".alert-log li").first).to_contain_text("resolved at t")
    assert page.evaluate("window.pwned") is None
    assert page.evaluate("document.querySelectorAll('main img').length") == 0
    before = last_t(page)
    page.reload()  # the marks are of the collector, not of the tab
    expect(page.locator(".alert-log li")).to_have_count(2)
    wait_until(page, f"Number(document.querySelector('main').dataset.lastT) >= {before}")


def test_what_fired_is_drawn_into_the_lines(page: Page, watched: Watched, shore: Scene) -> None:
    """The tint and the flags are pixels of the canvas: there with changes, and only then."""
    open_stream(page, shore, "shore")
    drawn = page.evaluate(
        """async () => {
        const [{ History }, { View }, { Lines }, { Alerts }] = await Promise.all(
            ['history', 'view', 'lines', 'alerts'].map((one) => import(`/app/${one}.js`)))
        const terms = { stream: 's', labels: ['a', 'b'], start_ms: 0, interval_ms: 1000, window: 10,
                        epsilon_nano: 1e9, oracle: 'grr' }
        const { withUnit } = await import('./app/unit.js')
        const stream = withUnit({ terms, thresholds: {}, pin: '', population: 1 })
        const history = new History(2)
        history.add(Array.from({ length: 40 }, (_, at) => ({ t: at + 1, at_ms: 0, fresh: true,
            missed: false, asked: 1, received: 1, values: [0.01, 0.02], variance: [0, 0] })))
        const reds = (changes, alerts) => {
            const heard = new Alerts(stream)
            heard.heard({ alerts, changes })
            const lines = new Lines(stream, new View(history, 40), heard)
            lines.curves = [{ label: 0, slot: 0 }]
            document.querySelector('main').replaceChildren(lines.element)
            lines.draw()
            return new Promise((done) => setTimeout(() => {
                const canvas = lines.element.querySelector('canvas')
                const { width, height } = canvas
                const { data } = canvas.getContext('2d').getImageData(0, 0, width, height)
                let red = 0
                for (let at = 0; at < data.length; at += 4)
                    if (data[at] > Math.max(data[at + 1], data[at + 2]) + 60) red += 1
                lines.destroy()
                done(red)
            }, 50))
        }
        const change = (t, state) => ({ t, at_ms: 0, id: 'x', name: 'n', label: 'a', state })
        const alert = { id: 'x', name: 'n', label: 'a', state: 'firing', since_ms: 0, value: 0.01,
                        probability: 1, rule: { above: 0.015, on: 'estimate', for: '0ms' } }
        return [
            await reds([], []),
            await reds([change(10, 'firing'), change(20, 'resolved')], []),
            await reds([change(10, 'firing')], [alert]),
        ]
    }"""
    )
    quiet, past, now = drawn
    assert quiet == 0
    assert past > 100
    assert now > past + 100, "its threshold is red, too"


def test_an_administrator_silences_a_rule(page: Page, watched: Watched, shore: Scene) -> None:
    """The control is there with the admin's token only; what it does is shown, and ended."""
    answer = httpx.post(
        f"{shore.url}/v1/streams/shore/alerts/rules",
        json={"no_reports": "5m", "name": "nobody"},
        headers=BEARER,
    )
    assert answer.status_code == 201, answer.text
    open_stream(page, shore, "shore")
    alert = page.locator(".alert", has_text="nobody reports for 5 minutes")
    expect(alert).to_be_visible()
    expect(alert.locator(".silence")).to_have_count(0)
    page.goto(f"{shore.url}/#/token")
    page.fill("#token", ADMIN)
    page.get_by_role("button", name="Open").click()
    expect(page.locator(".stream-card")).to_be_visible()
    open_stream(page, shore, "shore")
    page.get_by_label("Silence nobody").select_option("8h")
    expect(alert).to_contain_text("silenced until")
    told = httpx.get(f"{shore.url}/v1/streams/shore/alerts").json()["alerts"]
    (silenced,) = [one for one in told if one["name"] == "nobody"]
    assert silenced["silenced_until_ms"] > 0
    alert.get_by_role("button", name="End silence").click()
    expect(alert).not_to_contain_text("silenced until")
    done = httpx.get(f"{shore.url}/v1/admin/log", headers=BEARER).json()["entries"]
    assert [one["action"] for one in done] == ["silence", "end-silence"]
