"""What an administrator does on the page, and that nobody else is offered it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.collector.operating import Admin
from tests.page.conftest import Watched
from tests.page.scene import ADMIN, Scene, stream_table
from tests.page.test_page import open_stream, serious_faults, wait_until_it_fits

STORED = "Object.keys({...localStorage}).concat(document.cookie)"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Two streams in which nobody takes part; the file itself pauses the second one."""
    streams = stream_table("regions", ["yes", "no"])
    streams += stream_table("asleep", ["yes", "no"], paused=True)
    made = Scene(Path(tmp_path_factory.mktemp("admin")), streams)
    with made.collector:
        yield made


@pytest.fixture
def admin(scene: Scene) -> Admin:
    return Admin(scene.url, ADMIN)


def enter(page: Page, scene: Scene) -> None:
    """Go to what administrators do, by the way of the token."""
    page.goto(f"{scene.url}/#/admin")
    page.fill("#token", ADMIN)
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("heading", name="Admin", exact=True)).to_be_visible()


def test_the_admin_token_is_asked_for_and_kept_for_the_session_only(
    page: Page, watched: Watched, scene: Scene, chromium: Browser
) -> None:
    page.goto(f"{scene.url}/")
    expect(page.locator(".stream-card").first).to_be_visible()
    expect(page.get_by_role("link", name="Admin")).to_be_hidden()
    page.goto(f"{scene.url}/#/admin")
    page.fill("#token", "a wrong one")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("alert")).to_have_text("That token is wrong.")
    enter(page, scene)
    page.goto(f"{scene.url}/#/")
    page.get_by_role("link", name="Admin").click()
    expect(page.get_by_role("heading", name="Admin log")).to_be_visible()
    assert ADMIN not in str(page.evaluate(STORED))
    assert ADMIN not in page.url
    assert not [url for url in watched.urls if ADMIN in url]
    with chromium.new_context() as another:
        later = another.new_page()
        later.goto(f"{scene.url}/#/admin")
        expect(later.locator("#token")).to_be_visible()


def test_a_token_that_is_no_longer_the_admins_is_asked_for_again(page: Page, scene: Scene) -> None:
    page.goto(f"{scene.url}/")
    page.evaluate("sessionStorage.setItem('ldpstream.tokens', JSON.stringify({'*': 'of before'}))")
    page.goto(f"{scene.url}/#/admin")
    expect(page.locator(".wall")).to_contain_text("The collector has another admin token now")
    expect(page.locator(".wall")).to_contain_text("A token, please")
    assert page.evaluate("sessionStorage.getItem('ldpstream.tokens')") == "{}"


def test_a_stream_is_paused_and_resumed(
    page: Page, watched: Watched, scene: Scene, admin: Admin
) -> None:
    open_stream(page, scene)
    expect(page.get_by_role("button", name="Pause the stream")).to_have_count(0)
    enter(page, scene)
    line = page.get_by_role("row").filter(has=page.get_by_role("link", name="regions"))
    line.get_by_role("button", name="Pause the stream").click()
    expect(line.locator(".pill")).to_have_text("paused")
    assert admin.call("GET", "streams/regions")["state"] == "paused"
    expect(page.get_by_role("row").filter(has_text="pause")).not_to_have_count(0)
    open_stream(page, scene)
    expect(page.locator(".pill").first).to_have_text("paused")
    page.get_by_role("button", name="Resume the stream").click()
    expect(page.get_by_role("button", name="Pause the stream")).to_be_visible()
    expect(page.locator(".pill").first).to_have_text("waiting")
    assert admin.call("GET", "streams/regions")["state"] == "waiting"


def test_what_the_file_pauses_only_the_file_resumes(page: Page, scene: Scene) -> None:
    enter(page, scene)
    line = page.get_by_role("row").filter(has=page.get_by_role("link", name="asleep"))
    line.get_by_role("button", name="Resume the stream").click()
    expect(line.get_by_role("alert")).to_contain_text("paused or retired by the configuration file")
    expect(line.locator(".pill")).to_have_text("paused")


def test_a_token_is_revoked_by_pressing_twice(
    page: Page, watched: Watched, scene: Scene, admin: Admin
) -> None:
    for name in ("spring", "summer"):
        admin.call("POST", "admin/tokens", {"name": name, "stream": "regions", "most_uses": 5})
    enter(page, scene)
    line = page.get_by_role("row").filter(has_text="spring").first
    expect(line).to_contain_text("0 of 5")
    line.get_by_role("button", name="Revoke").click()
    page.get_by_role("heading", name="Admin", exact=True).click()  # not meant
    page.locator("body").click(position={"x": 2, "y": 2})
    expect(line.get_by_role("button")).to_have_text("Revoke")
    line.get_by_role("button", name="Revoke").click()
    line.get_by_role("button", name="Revoke spring for good").click()
    expect(line).to_contain_text("revoked")
    expect(line.get_by_role("button")).to_have_count(0)
    told = admin.call("GET", "admin/tokens")["tokens"]
    assert {one["name"]: one["revoked_ms"] is not None for one in told} == {
        "spring": True,
        "summer": False,
    }
    newest = page.locator("section", has_text="Admin log").get_by_role("row").nth(1)
    expect(newest).to_contain_text("revoke")
    expect(newest).to_contain_text("spring")
    expect(newest).to_contain_text("admin token, API")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everyone_can_use_it(chromium: Browser, scene: Scene, admin: Admin, scheme: str) -> None:
    """No serious fault of accessibility, on a screen as narrow as a phone's."""
    admin.call("POST", "admin/tokens", {"name": f"phone-{scheme}", "expires_in": "30d"})
    with chromium.new_context(
        viewport={"width": 360, "height": 740},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    ) as context:
        phone = context.new_page()
        enter(phone, scene)
        expect(phone.get_by_role("row").filter(has_text="phone").first).to_be_visible()
        wait_until_it_fits(phone)
        assert serious_faults(phone) == []
