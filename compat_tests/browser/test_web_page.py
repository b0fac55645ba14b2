"""The web page in Chromium: what people see, live plots, hostile records, a login, and the screenshots of docs/WEB.md."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.brokers import KafkacompatBroker
from compat_tests.browser.contents import HOSTILE, fill, make_properties, make_traffic, open_group
from compat_tests.ports import free_port

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

playwright: Any = pytest.importorskip("playwright.sync_api", reason="make browser installs Playwright")
pytestmark = pytest.mark.browser

SCREENSHOTS = os.environ.get("COMPAT_TESTS_SCREENSHOTS")
"""The folder for screenshots; None for none."""
SIZE = {"width": 1200, "height": 760}
TOKEN = "0123456789abcdef0123"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        # Chromium's own sandbox needs rights that containers lack.
        launched = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the page of a broker with messages and a group."""
    port = free_port()
    with KafkacompatBroker(tmp_path_factory.mktemp("web"), make_properties(port)) as broker:
        fill(broker.bootstrap)
        billing, shipping = (
            open_group(broker.bootstrap, "billing"),
            open_group(broker.bootstrap, "shipping", "consumer"),
        )
        with billing, shipping, make_traffic(broker.bootstrap):
            yield f"http://127.0.0.1:{port}/ui"


@pytest.fixture(params=["light", "dark"])
def scheme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that fails the test for an error in the console, a dialog, or a request to another host."""
    opened = browser.new_page(viewport=SIZE)
    yield from watch(opened)


def watch(opened: Page) -> Iterator[Page]:
    problems: list[str] = []

    def note_message(message: Any) -> None:
        if message.type in ("error", "warning"):
            problems.append(message.text)

    def note_dialog(dialog: Any) -> None:
        problems.append(dialog.message)
        dialog.dismiss()

    def note_request(request: Any) -> None:
        if "//127.0.0.1:" not in request.url:
            problems.append(request.url)

    opened.on("console", note_message)
    opened.on("pageerror", lambda problem: problems.append(str(problem)))
    opened.on("dialog", note_dialog)
    opened.on("request", note_request)
    yield opened
    opened.close()
    assert problems == []


def keep(page: Page, name: str) -> None:
    """Keep a screenshot, if the run makes them."""
    if SCREENSHOTS is not None:
        page.screenshot(path=Path(SCREENSHOTS) / f"{name}.png")


def test_one_way_through_the_pages(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_role("link", name="Topics", exact=True).click()
    page.get_by_label("Search").fill("order")
    page.get_by_role("button", name="Search").click()
    assert page.locator("tbody tr").count() == 1
    page.get_by_role("link", name="orders").click()
    assert page.locator("h1").inner_text() == "orders"
    keep(page, "topic")
    page.get_by_role("link", name="Messages").click()
    assert page.locator("tbody tr").count() > 40
    page.locator("details summary").first.click()
    assert '"order":' in page.locator("details pre").first.inner_text()
    keep(page, "messages")
    page.get_by_label("Key contains").fill("customer-77")
    page.get_by_role("button", name="Show").click()
    keys = page.locator(".messages tbody tr td:nth-child(4)").all_inner_texts()
    assert keys and set(keys) == {"customer-77"}
    page.get_by_role("link", name="Groups").click()
    page.get_by_role("link", name="billing").click()
    assert page.locator(".tile", has_text="Members").locator("dd").inner_text() == "1"
    assert page.locator("td", has_text="billing-7").first.is_visible()
    keep(page, "group")
    page.goto(f"{address}/groups/shipping")
    assert page.locator(".tile", has_text="Type").locator("dd").inner_text() == "consumer"
    assert page.locator(".tile", has_text="Members").locator("dd").inner_text() == "1"
    assert page.locator(".chip", has_text="orders-").count() == 6
    page.get_by_role("link", name="Brokers").click()
    assert page.locator("tbody tr").first.inner_text().startswith("1")


def test_hostile_records_run_nothing(page: Page, address: str) -> None:
    page.goto(f"{address}/topics/hostile/messages")
    page.locator("details.headers summary").click()
    assert page.locator("code", has_text=HOSTILE).count() == 4
    assert page.locator("main img").count() == 0


def test_the_policy_stops_what_escaping_would_let_through(browser: Browser, address: str) -> None:
    opened = browser.new_page()
    opened.goto(address)
    with opened.expect_console_message(lambda message: "Content Security Policy" in message.text):
        opened.evaluate("""() => { document.body.innerHTML += '<img src="x" onerror="window.ran = 1">'; }""")
    assert opened.evaluate("() => window.ran") is None
    opened.close()


def test_both_colour_schemes(browser: Browser, address: str, scheme: str) -> None:
    for opened in watch(browser.new_page(viewport=SIZE, color_scheme=scheme)):
        opened.goto(f"{address}/topics/orders")
        ground = opened.evaluate("() => getComputedStyle(document.body).backgroundColor")
        assert (int(ground.strip("rgb()").split(",")[0]) > 128) == (scheme == "light")
        if scheme == "dark":
            keep(opened, "topic-dark")


def test_a_telephone_shows_no_wider_page(browser: Browser, address: str) -> None:
    for opened in watch(browser.new_page(viewport={"width": 390, "height": 800})):
        for path in ("", "/topics", "/topics/orders", "/topics/orders/messages", "/groups/billing", "/brokers"):
            opened.goto(address + path)
            assert opened.evaluate("() => document.documentElement.scrollWidth") <= 390, path


def change_a_topic(page: Page) -> None:
    """Create a topic by the form, and delete it again."""
    page.get_by_role("link", name="Topics").click()
    page.locator("summary", has_text="Create a topic").click()
    page.get_by_label("Name").fill("made-by-hand")
    page.get_by_label("Partitions").fill("2")
    page.get_by_role("button", name="Create").click()
    assert page.locator("h1").inner_text() == "made-by-hand"
    page.locator("summary", has_text="Delete the topic").click()
    page.get_by_label("Type the name of the topic").fill("made-by-hand")
    page.get_by_role("button", name="Delete").click()
    page.locator("h1", has_text="Topics").wait_for()
    assert page.get_by_role("link", name="made-by-hand").count() == 0


def test_a_login(page: Page, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"alice:{TOKEN}\n")
    port = free_port()
    properties = {
        **make_properties(port),
        "kafkacompat.http.token.file": str(tokens),
        "kafkacompat.ui.writable": "true",
    }
    with KafkacompatBroker(tmp_path / "broker", properties):
        page.goto(f"http://127.0.0.1:{port}/ui/groups")
        assert page.locator("h1").inner_text() == "Log in"
        keep(page, "login")
        page.get_by_label("Password or token").fill(TOKEN)
        page.get_by_role("button", name="Log in").click()
        assert page.locator("h1").inner_text() == "Groups"
        assert page.evaluate("() => document.cookie") == ""
        change_a_topic(page)
        page.goto(f"http://127.0.0.1:{port}/ui")
        # The session ends elsewhere: the live part leads to the login.
        tokens.write_text("")
        page.locator("h1", has_text="Log in").wait_for(timeout=20_000)


def test_the_overview_is_live(page: Page, address: str) -> None:
    page.goto(address)
    assert page.locator(".tile", has_text="Topics").locator("dd").inner_text() == "12"
    before = page.locator("polyline").first.get_attribute("points") or ""
    page.wait_for_function("before => document.querySelector('polyline').getAttribute('points') !== before", arg=before)
    page.locator("a", has_text="orders").first.wait_for(timeout=20_000)
    keep(page, "overview")
