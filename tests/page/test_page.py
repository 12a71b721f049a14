"""The page in a real browser, against a real collector."""

from __future__ import annotations

import re
import time
from pathlib import Path

import httpx2 as httpx
import pytest
from playwright.sync_api import Browser, FloatRect, Page, expect

from ldpstream.protocol.terms import Terms
from tests.page.conftest import Watched
from tests.page.scene import ADMIN, ENROLMENT, XSS, Crowd, Scene, stream_table

AXE = Path(__file__).parent / "assets" / "axe.min.js"


expect.set_options(timeout=30_000)  # a busy machine takes its time


def open_stream(page: Page, scene: Scene, stream: str = "regions") -> None:
    page.goto(f"{scene.url}/#/streams/{stream}")
    page.wait_for_selector(".u-over")


def last_t(page: Page) -> int:
    return int(page.evaluate("Number(document.querySelector('main').dataset.lastT)"))


def range_of(page: Page) -> tuple[int, int]:
    first, last = page.evaluate("document.querySelector('main').dataset.range").split()
    return int(first), int(last)


def wait_until(page: Page, condition: str, seconds: float = 60) -> None:
    """`page.wait_for_function` evaluates its text in the page, which the page's policy forbids."""
    end = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(50)


def wait_until_it_fits(page: Page) -> None:
    """Nothing stands out to the right, once the charts were drawn for the width of the window."""
    wait_until(page, "document.documentElement.scrollWidth <= innerWidth")


def box_of_lines(page: Page) -> FloatRect:
    """The place of the lines; a live page may draw them anew while it is looked at."""
    for _ in range(100):
        if (box := page.locator(".u-over").bounding_box()) is not None:
            return box
        page.wait_for_timeout(50)
    raise AssertionError("the lines are not shown")


def serious_faults(page: Page) -> list[str]:
    """Return what axe-core finds of accessibility that is serious or worse."""
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{page.url}: {one['id']} ({one['impact']}): {one['nodes'][0]['html'][:200]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]


def test_it_goes_on_by_itself(page: Page, watched: Watched, scene: Scene) -> None:
    open_stream(page, scene)
    before = last_t(page)
    wait_until(page, f"Number(document.querySelector('main').dataset.lastT) >= {before + 3}")
    expect(page.locator(".pill").first).to_have_text("live")
    bars = page.locator(".bars tbody tr")
    expect(bars).to_have_count(6)
    expect(page.locator(".promise")).to_contain_text("6 timestamps (3 seconds)")
    expect(page.locator(".doing")).to_contain_text(re.compile("[Ww]aiting|[Ww]orking"))
    expect(page.locator(".limit:visible")).to_have_count(1)
    heard = re.compile(r"Devices heard in the last window\s*[1-9]\d* of \d+ (expected|enrolled)")
    expect(page.locator(".panel-privacy .facts")).to_contain_text(heard)


def test_the_past_is_revised_while_one_looks(page: Page, watched: Watched, scene: Scene) -> None:
    open_stream(page, scene)
    revised = "Number(document.querySelector('main').dataset.revised)"
    wait_until(page, f"{revised} >= 2")
    before = page.evaluate(revised)
    wait_until(page, f"{revised} > {before}")
    expect(page.locator(".legend")).to_contain_text("revised by what came later")
    box = box_of_lines(page)
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 80)
    expect(page.locator(".tip:visible")).to_contain_text(re.compile(r"%, now \d"))


def test_a_restart_leaves_no_gap(page: Page, watched: Watched, tmp_path: Path) -> None:
    own = Scene(tmp_path, stream_table("regions", ["x", "y"], interval="300ms"))
    with own.collector, Crowd(own, "regions").reporting():
        open_stream(page, own)
        wait_until(page, "Number(document.querySelector('main').dataset.lastT) >= 4")
        own.collector.kill()
        expect(page.locator(".pill").first).to_have_text("reconnecting")
        before = last_t(page)
        own.collector.start()
        expect(page.locator(".pill").first).to_have_text("live")
        wait_until(page, f"Number(document.querySelector('main').dataset.lastT) > {before + 4}")
        # From the first on, as many as there are: none missing, none twice.
        first, rows, last = page.evaluate(
            """() => {
            const { firstT, rows, lastT } = document.querySelector('main').dataset
            return [firstT, rows, lastT].map(Number)
        }"""
        )
        assert rows == last - first + 1
        stored = own.releases("regions")
        assert first == stored[0]["t"]
        assert any(one["missed"] for one in stored)


def test_zoom_pause_and_keys(page: Page, watched: Watched, scene: Scene) -> None:
    open_stream(page, scene)
    wait_until(page, "Number(document.querySelector('main').dataset.lastT) >= 16")
    box = box_of_lines(page)
    before = range_of(page)
    page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + 80)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 90, steps=4)
    page.mouse.up()
    expect(page.locator(".summary")).to_contain_text("paused")
    first, last = range_of(page)
    assert first > before[0]
    assert last - first < before[1] - before[0]
    page.wait_for_timeout(1100)
    assert range_of(page) == (first, last), "a fixed range does not move"
    page.locator(".chart").focus()
    page.keyboard.press("ArrowLeft")
    held = "document.querySelector('main').dataset"
    wait_until(page, f"Number({held}.range.split(' ')[0]) < {first}")
    page.keyboard.press("Escape")
    expect(page.locator(".summary")).to_contain_text("live")
    page.click("#pause")
    expect(page.locator(".summary")).to_contain_text("paused")
    page.click("#pause")
    page.click("text=60")
    expect(page.get_by_role("button", name="The last 60 timestamps")).to_have_attribute(
        "aria-pressed", "true"
    )
    page.click("text=The same as a table")
    expect(page.locator(".plain tbody tr").first).to_be_visible()


def test_light_and_dark(page: Page, watched: Watched, scene: Scene) -> None:
    page.emulate_media(color_scheme="dark")
    open_stream(page, scene)
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(14, 18, 32)"
    page.click("#theme")
    assert page.evaluate(ground) == "rgb(244, 246, 251)"
    page.reload()
    page.wait_for_selector(".u-over")
    assert page.evaluate(ground) == "rgb(244, 246, 251)", "the choice is kept"


def test_labels_are_text(page: Page, watched: Watched, scene: Scene) -> None:
    page.goto(scene.url)
    page.wait_for_selector(".top-labels li")
    open_stream(page, scene, "pocket")
    expect(page.locator(".bars th", has_text=XSS).first).to_be_visible()
    expect(page.locator("#join-value option", has_text=XSS)).to_have_count(1)
    open_stream(page, scene)
    expect(page.locator(".bars th", has_text=XSS).first).to_be_visible()
    assert page.evaluate("document.querySelectorAll('main img').length") == 0
    assert page.evaluate("window.pwned") is None


def test_the_policy_forbids_what_slips_through(page: Page, scene: Scene) -> None:
    page.goto(scene.url)
    page.wait_for_selector(".top-labels li")
    tried = """text => {
        try { document.querySelector('main').innerHTML = text; return 'taken' }
        catch (error) { return error.name }
    }"""
    assert page.evaluate(tried, XSS) == "TypeError"
    page.evaluate(
        """() => {
        const script = document.createElement('script')
        script.append('window.pwned = 1')
        try { document.body.append(script) } catch {}
    }"""
    )
    assert page.evaluate("window.pwned") is None


def test_nothing_private_without_a_token(page: Page, watched: Watched, scene: Scene) -> None:
    page.goto(scene.url)
    page.wait_for_selector(".top-labels li")
    expect(page.locator(".stream-card")).to_have_count(2)
    assert "ward" not in page.content()
    page.goto(f"{scene.url}/#/streams/ward")
    expect(page.locator("h1")).to_have_text("A token, please")
    assert "calm" not in page.content()
    page.fill("#token", "not the token of anything")
    page.click('button:text-is("Open")')
    expect(page.locator(".wall")).to_contain_text("That token is wrong.")
    page.fill("#token", ADMIN)
    page.click('button:text-is("Open")')
    page.wait_for_selector(".u-over")
    expect(page.locator(".bars th", has_text="calm")).to_be_visible()
    page.click(".brand")
    expect(page.locator(".stream-card")).to_have_count(3)
    assert not [url for url in watched.urls if ADMIN in url]


def test_a_link_can_be_shared_for_reading(
    page: Page, watched: Watched, chromium: Browser, scene: Scene
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{scene.url}/#/token")
    page.fill("#token", ADMIN)
    page.click('button:text-is("Open")')
    page.click(".stream-card >> text=ward")
    page.click("text=Share, read-only")
    expect(page.locator(".share")).to_contain_text("Copied")
    link = page.evaluate("navigator.clipboard.readText()")
    token = link.partition("token=")[2]
    assert ADMIN not in link

    reader = chromium.new_context()
    shared = reader.new_page()
    asked: list[str] = []
    shared.on("request", lambda request: asked.append(request.url.partition("#")[0]))
    shared.goto(link)
    shared.wait_for_selector(".u-over")
    assert token not in shared.url
    assert not [url for url in asked if token in url]
    expect(shared.locator(".share")).to_have_count(0)
    reader.close()
    bearer = {"Authorization": f"Bearer {token}"}
    for path in ("/v1/admin/status", "/v1/streams/ward/share"):
        assert httpx.get(scene.url + path, headers=bearer).status_code == 401


def test_the_browser_reports_until_its_budget_is_spent(
    page: Page, watched: Watched, scene: Scene
) -> None:
    open_stream(page, scene, "pocket")
    page.select_option("#join-value", "0")
    page.fill("#join-token", "a wrong enrolment token")
    page.press(".join button[type=submit]", "Enter")
    expect(page.locator(".panel-join")).to_contain_text("The enrolment token is wrong.")
    page.fill("#join-token", ENROLMENT)
    page.check("#join-first")
    page.press(".join button[type=submit]", "Enter")
    log = page.locator(".log")
    expect(log).to_contain_text("(2 bytes), spent ε 2")
    expect(log).to_contain_text("Refused: round")
    expect(page.locator(".budget")).to_contain_text("of 2")
    for _ in range(50):  # the release of t is published after the next timestamp has begun
        if any(one["received"] for one in scene.releases("pocket")):
            break
        page.wait_for_timeout(100)
    assert any(one["received"] for one in scene.releases("pocket"))
    page.reload()
    page.wait_for_selector(".u-over")
    page.click("text=Continue as the previous device")
    expect(page.locator(".budget")).to_contain_text("Refused so far")
    sent = [url for url in watched.urls if url.endswith("/reports")]
    assert len(sent) == len(set(sent)), "a round is answered once"
    page.get_by_role("button", name="Stop", exact=True).click()
    page.reload()
    page.wait_for_selector(".u-over")
    reports = len([url for url in watched.urls if url.endswith("/reports")])
    page.get_by_role("button", name="Leave", exact=True).click()  # without going on first
    expect(page.locator(".panel-join")).to_contain_text("Left. What was spent counts for another")
    assert len([url for url in watched.urls if url.endswith("/reports")]) == reports
    page.reload()
    page.wait_for_selector(".u-over")
    expect(page.locator(".join button[type=submit]")).to_have_text("Join")


def test_a_ledger_that_was_put_back_is_noticed(page: Page, scene: Scene) -> None:
    page.goto(scene.url)
    seen = page.evaluate(
        """async () => {
        const { IndexedDbStore } = await import('/ldpstream.js')
        const { newMemory } = await import('/sdk/memory.js')
        const counter = (count) => new Promise((done) => {
            indexedDB.open('ldpstream witness').onsuccess = ({ target: { result } }) => {
                const transaction = result.transaction('memory', 'readwrite')
                const table = transaction.objectStore('memory')
                if (count === null) table.delete(name)
                else table.put(count, name)
                transaction.oncomplete = () => done(result.close())
            }
        })
        const [name, seen] = ['ldpstream test', []]
        const store = new IndexedDbStore(name)
        const code = (promise) => promise.catch((error) => error.code)
        const vouched = (one) => one.change((change) => change.vouchedFor)
        const count = (one) => one.change((change) => {
            change.made = true
            return change.memory.refusals.push({})
        })
        seen.push(await code(store.load()), await code(vouched(store)))
        await store.create(newMemory(true, {}))
        seen.push(await code(store.create(newMemory(true, {}))))
        seen.push(await vouched(store), (await store.load()).pastKnown)
        await count(store)
        const copy = await store.load()
        const others = [1, 2, 3].map(() => new IndexedDbStore(name))
        await Promise.all(others.map(count))
        seen.push(await vouched(store), (await store.load()).refusals.length)
        seen.push(await code(store.change(() => { throw Object.assign(Error(), {code: 'mine'}) })))
        // An older copy, brought back: until something is committed on top of it.
        const putBack = (memory) => new Promise((done) => {
            indexedDB.open(name).onsuccess = ({ target: { result } }) => {
                const transaction = result.transaction('memory', 'readwrite')
                transaction.objectStore('memory').put(memory, 'device')
                transaction.oncomplete = () => done(result.close())
            }
        })
        await putBack(copy)
        seen.push(await vouched(store))
        await count(store)
        seen.push(await vouched(store))
        // Deleted, and made anew: no first install.
        await new Promise((done) => indexedDB.deleteDatabase(name).onsuccess = done)
        seen.push(await code(store.load()))
        await store.create(newMemory(true, {}))
        seen.push((await store.load()).pastKnown, await vouched(store))
        await counter(null)
        seen.push(await vouched(store))
        // Who tries to make one does not vouch for the one that there is.
        seen.push(await code(store.create(newMemory(true, {}))), await vouched(store))
        // A count that is none.
        await putBack({ ...(await store.load()), commits: NaN })
        await counter(3)
        seen.push(await vouched(store), await count(store), await vouched(store))
        await counter(null)
        // Never enrolled: it may go, and a first install is believed.
        await store.discard()
        seen.push(await code(store.load()))
        await store.create(newMemory(true, {}))
        seen.push((await store.load()).pastKnown, Object.keys(localStorage).length)
        return seen
    }"""
    )
    assert seen == [
        *("ledger-missing", "ledger-missing", "ledger-exists", True, True),
        *(True, 4, "mine", False, True, "ledger-missing", False, True, False),
        *("ledger-exists", False, False, 1, True, "ledger-missing", True, 0),
    ]


def test_a_ledger_of_0_1_0_is_taken_over_from_a_page_that_is_still_open(
    page: Page, scene: Scene
) -> None:
    page.goto(scene.url)
    answer = httpx.get(f"{scene.url}/v1/streams/pocket").json()
    terms = Terms.read(answer["terms"]).canonical
    seen = page.evaluate(
        """async ([terms, token]) => {
        const { Device, IndexedDbStore } = await import('/ldpstream.js')
        const name = 'ldpstream old'
        const old = await new Promise((done) => {
            const request = indexedDB.open(name, 1)
            request.onupgradeneeded = () => request.result.createObjectStore('memory')
            request.onsuccess = () => done(request.result)
        })
        let closed = false
        old.onversionchange = () => { closed = true; old.close() }
        const [number, secret, key] = [16, 32, 32].map((size) => new Uint8Array(size).fill(7))
        const enrolment = { url: location.origin, terms, key, selection: 'open', offsetMs: 3 }
        await new Promise((done) => {
            const transaction = old.transaction('memory', 'readwrite')
            const record = { number, secret, commits: 5, enrolment, entries: [], refusals: [] }
            transaction.objectStore('memory').put(record, 'device')
            transaction.oncomplete = done
        })
        const device = await Device.open(new IndexedDbStore(name))
        const left = device.terms
        await device.enrol(location.origin, 'pocket', token)
        const again = (await Device.open(new IndexedDbStore(name))).status()
        return [closed, left, again.leftNano, again.refusals.map((one) => one.times)]
    }""",
        [terms, ENROLMENT],
    )
    assert seen == [True, None, 0, [1]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_fault_of_accessibility(
    page: Page, watched: Watched, scene: Scene, scheme: str
) -> None:
    page.emulate_media(
        color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce"
    )
    findings = []
    for place, ready in (
        ("#/", ".top-labels li"),
        ("#/streams/regions", ".bars tbody tr"),
        ("#/token", "#token"),
    ):
        page.goto(f"{scene.url}/{place}")
        page.wait_for_selector(ready)
        if ready.startswith(".bars"):
            page.click("text=The same as a table")
        findings += serious_faults(page)
    assert findings == []


def test_it_fits_a_phone(chromium: Browser, scene: Scene) -> None:
    context = chromium.new_context(viewport={"width": 360, "height": 740}, has_touch=True)
    page = context.new_page()
    for place, ready in (("", ".top-labels li"), ("#/streams/regions", ".u-over")):
        page.goto(f"{scene.url}/{place}")
        page.wait_for_selector(ready)
        wait_until_it_fits(page)
    context.close()


def test_200_labels_and_10000_timestamps_stay_smooth(page: Page, scene: Scene) -> None:
    """The drawing itself, fed directly. A frame of a picture that moves is 33 ms or less.

    Measured is what the page computes; how long the browser then paints, without a graphics card
    and beside other tests, is the machine's. The least of many frames, for the same reason.
    """
    open_stream(page, scene)
    took = page.evaluate(
        """async () => {
        const [{ History }, { View }, { Lines }, { HeatMap }, { Bars }] = await Promise.all(
            ['history', 'view', 'lines', 'heatmap', 'bars'].map((one) => import(`/app/${one}.js`)))
        const labels = Array.from({ length: 200 }, (_, at) => `label ${at}`)
        const terms = { stream: 's', labels, start_ms: 0, interval_ms: 1000, window: 10,
                        epsilon_nano: 1e9, oracle: 'grr' }
        const { withUnit } = await import('./app/unit.js')
        const stream = withUnit({ terms, thresholds: {}, pin: '', population: 1 })
        const history = new History(200)
        const release = (t) => ({ t, at_ms: 0, fresh: t % 3 === 0, missed: false, asked: 1,
            received: 1, values: labels.map((_, at) => Math.sin(t / 90 + at) / 100 + 0.01),
            variance: labels.map(() => 1e-5) })
        history.add(Array.from({ length: 10000 }, (_, at) => release(at + 1)))
        const view = new View(history, 10000)
        const parts = [new Lines(stream, view), new HeatMap(stream, view),
                       new Bars(stream, view, () => null)]
        parts[0].curves = [0, 1, 2, 3, 4].map((label) => ({ label, slot: label }))
        document.querySelector('main').replaceChildren(...parts.map((part) => part.element))
        const changes = {
            live: (step) => history.add([release(10001 + step)]),
            zoom: (step) => view.show(100 + 150 * step, 9000 - 80 * step),
            pan: (step) => view.show(100 * step + 1, 8000 + 100 * step),
        }
        const took = {}
        for (const [name, change] of Object.entries(changes)) {
            const [computed, painted] = [[], []]
            for (let step = 0; step < 12; step += 1) {
                change(step)
                const start = performance.now()
                for (const part of parts) part.draw()
                await null // uPlot draws at the end of the turn
                await null
                computed.push(performance.now() - start)
                await new Promise(requestAnimationFrame)
                painted.push(performance.now() - start)
            }
            took[name] = [Math.min(...computed), Math.min(...painted)]
        }
        return took
    }"""
    )
    for name, (computed, painted) in took.items():
        print(f"{name}: {computed:.0f} ms computed, {painted:.0f} ms with painting")
    assert max(computed for computed, _ in took.values()) < 33


def test_two_fingers_zoom_and_one_moves(chromium: Browser, scene: Scene) -> None:
    context = chromium.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    page = context.new_page()
    open_stream(page, scene)
    wait_until(page, "Number(document.querySelector('main').dataset.lastT) >= 20")
    page.click("#pause")
    before = range_of(page)
    box = box_of_lines(page)
    touch = page.context.new_cdp_session(page)

    def fingers(kind: str, *shares: float) -> None:
        points = [
            {"x": box["x"] + share * box["width"], "y": box["y"] + 90, "id": at}
            for at, share in enumerate(shares)
        ]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    fingers("touchStart", 0.4, 0.6)
    for away in (0.05, 0.1, 0.15, 0.2):
        fingers("touchMove", 0.4 - away, 0.6 + away)
    fingers("touchEnd")
    wait_until(page, f"document.querySelector('main').dataset.range !== '{before[0]} {before[1]}'")
    near = range_of(page)
    assert before[0] < near[0] < near[1] < before[1]
    fingers("touchStart", 0.3)
    for share in (0.4, 0.6, 0.8):
        fingers("touchMove", share)
    fingers("touchEnd")
    wait_until(
        page, f"Number(document.querySelector('main').dataset.range.split(' ')[0]) < {near[0]}"
    )
    moved = range_of(page)
    assert abs((moved[1] - moved[0]) - (near[1] - near[0])) <= 1
    context.close()


def test_files_are_served_with_their_policy(scene: Scene) -> None:
    answer = httpx.get(scene.url)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    tag = answer.headers["etag"]
    again = httpx.get(scene.url, headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    module = httpx.get(f"{scene.url}/ldpstream.js")
    assert module.headers["content-type"] == "text/javascript; charset=utf-8"
    assert module.headers["content-encoding"] == "gzip"
    plain = httpx.get(f"{scene.url}/ldpstream.js", headers={"Accept-Encoding": "identity"})
    assert plain.content == module.content
    for path in ("/package.json", "/sdk/package.json", "/../config.py", "/sdk/", "/app/none.js"):
        assert httpx.get(scene.url + path).status_code == 404


def test_no_markup_is_made_from_text() -> None:
    """No file of the page uses a way to turn text into markup or code, or an inline style."""
    folder = Path(__file__).parents[2] / "src" / "ldpstream" / "collector" / "page"
    ways = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser"
    )
    for file in [*folder.glob("*.js"), *folder.glob("app/*.js"), *folder.glob("sdk/*.js")]:
        assert not ways.search(file.read_text()), file.name
    html = (folder / "index.html").read_text()
    assert not re.search(r"style=|<style|<script(?![^>]*src=)|\son\w+=", html)
