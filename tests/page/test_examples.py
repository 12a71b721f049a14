"""The examples for browsers, as people copy them: with the npm package beside them."""

from __future__ import annotations

import shutil
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.page.browser import FLAGS, executable
from tests.page.conftest import Watched
from tests.page.scene import ENROLMENT, Scene, stream_table
from tests.page.test_package import PACKAGE, STREAM, served

EXAMPLES = Path(__file__).parents[2] / "examples"
CATEGORIES = ["news", "search", "shop", "social", "other"]


def copied(example: str, folder: Path, url: str = "https://collector.example") -> Path:
    """Copy an example, put the package beside it, and name the collector in its files."""
    made = folder / example
    shutil.copytree(EXAMPLES / example, made)
    for file in made.iterdir():
        file.write_text(file.read_text().replace("https://collector.example", url))
    shutil.copytree(PACKAGE, made / "ldpstream")
    return made


def received(scene: Scene, stream: str) -> int:
    return sum(one["received"] for one in scene.releases(stream))


def await_reports(page: Page, scene: Scene, stream: str, number: int) -> None:
    for _ in range(600):
        if received(scene, stream) >= number:
            return
        page.wait_for_timeout(100)
    raise AssertionError("what was sent was not counted")


def test_a_page_with_three_lines_of_script(page: Page, watched: Watched, tmp_path: Path) -> None:
    script = (EXAMPLES / "page" / "index.html").read_text().partition('<script type="module">')[2]
    assert len(script.partition("</script>")[0].strip().splitlines()) == 3
    elsewhere = tmp_path / "served"
    elsewhere.mkdir()
    with served(elsewhere) as origin:
        table = stream_table(
            "regions", ["north", "south"], public=True, allowed_origins=[origin], **STREAM
        )
        scene = Scene(tmp_path, table)
        with scene.collector:
            shutil.copytree(copied("page", tmp_path, scene.url), elsewhere, dirs_exist_ok=True)
            page.goto(origin)
            page.get_by_role("combobox").select_option("south")
            await_reports(page, scene, "regions", 1)
            page.reload()  # the same device goes on: another would first be silent, and be counted
            await_reports(page, scene, "regions", 2)


def test_an_extension_reports_the_category_of_the_page_in_front(
    chromium: Browser, tmp_path: Path
) -> None:
    scene = Scene(tmp_path, stream_table("reading", CATEGORIES, **STREAM))
    with scene.collector:
        folder = copied("extension", tmp_path, scene.url)
        # A pattern of hosts has no port.
        manifest = folder / "manifest.json"
        manifest.write_text(manifest.read_text().replace(scene.url, "http://127.0.0.1"))
        flags = [*FLAGS, f"--disable-extensions-except={folder}", f"--load-extension={folder}"]
        context = chromium.browser_type.launch_persistent_context(
            tmp_path / "profile",
            executable_path=executable(),
            channel="chromium",
            args=[*flags, "--headless=new"],
            ignore_default_args=["--disable-extensions"],
        )
        try:
            workers = context.service_workers
            worker = workers[0] if workers else context.wait_for_event("serviceworker")
            options = context.new_page()
            options.goto(worker.url.replace("worker.js", "options.html"))
            categories = """async () => {
                const { categoryOf } = await import('./categories.js')
                const pages = ['https://www.nytimes.com/x', 'https://example.org', undefined]
                return pages.map(categoryOf)
            }"""
            assert options.evaluate(categories) == ["news", "other", "other"]
            options.get_by_label("Token").fill(ENROLMENT)
            options.get_by_role("button", name="Take part").click()
            said = options.get_by_role("status")
            expect(said).to_have_text("This browser takes part.", timeout=60_000)
            alarms = "chrome.alarms.getAll().then((all) => all.map(({ name }) => name))"
            assert worker.evaluate(alarms) == ["turn"]
            # The worker is woken by its alarm: nobody asks it.
            await_reports(options, scene, "reading", 1)
            options.get_by_role("button", name="Leave").click()
            expect(said).to_have_text("This browser has left.")
            assert worker.evaluate(alarms) == []
        finally:
            context.close()
