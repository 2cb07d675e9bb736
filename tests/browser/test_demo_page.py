"""The example front end in a browser: submit, progress, cancel, download; and only in the demo."""

import csv
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from tests import services
from tests.acceptance.conftest import Open, open_site  # noqa: F401
from tests.processes import Site, wait_for
from tests.six_days import ROWS

pytestmark = pytest.mark.browser
SLOW = {"PAGE_ROWS": "20", "PAGE_ROWS_MIN": "20"}


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[webdriver.Chrome]:
    if not shutil.which("chromedriver"):
        services.missing("chromium-driver")
    options = webdriver.ChromeOptions()
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--lang=zh-CN",
        "--window-size=900,900",
    ):
        options.add_argument(argument)
    options.add_experimental_option(
        "prefs", {"download.default_directory": str(tmp_path), "intl.accept_languages": "zh-CN"}
    )
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    with webdriver.Chrome(options=options, service=service) as driver:
        yield driver


def opened(open_site: Open, browser: webdriver.Chrome, **settings: str) -> Site:
    site = open_site(AUTH="none", LOOPBACK_DEMO="yes", **settings)
    site.start_web()
    browser.get(f"http://127.0.0.1:{site.port}/demo/")
    return site


def submit(browser: webdriver.Chrome, first: str = "2026-09-01", last: str = "2026-09-06") -> WebElement:
    """The row of the new task."""
    before = len(browser.find_elements(By.CSS_SELECTOR, "article"))
    for name, day in (("from", first), ("to", last)):
        browser.execute_script(f"document.forms[0].elements['{name}'].value = '{day}'")
    browser.find_element(By.CSS_SELECTOR, "button.main").click()
    wait_for(lambda: len(browser.find_elements(By.CSS_SELECTOR, "article")) == before + 1)
    return browser.find_element(By.CSS_SELECTOR, "article")


def state(row: WebElement) -> str:
    return str(row.get_attribute("data-state"))


def test_an_export_is_submitted_followed_and_downloaded(
    open_site: Open, browser: webdriver.Chrome, tmp_path: Path
) -> None:
    site = opened(open_site, browser, **SLOW)
    row = submit(browser)
    assert (state(row), row.find_element(By.CSS_SELECTOR, ".state").text) == ("queued", "排队中")
    site.start_workers()
    seen: list[int] = []

    def done() -> bool:
        ended = state(row) == "succeeded"  # read before the bar, so that the last bar seen is the end's
        seen.append(round(float(row.find_element(By.CSS_SELECTOR, "progress").get_property("value"))))
        return ended

    wait_for(done, limit_s=90)
    assert seen == sorted(seen) and seen[-1] == 100
    assert "6,000 / 6,000 行" in row.find_element(By.CSS_SELECTOR, ".detail").text
    row.find_element(By.CSS_SELECTOR, ".download").click()
    wait_for(lambda: len(list(tmp_path.glob("*.csv"))) == 1)
    [path] = tmp_path.glob("*.csv")
    with path.open(encoding="utf-8-sig", newline="") as file:
        assert len(list(csv.reader(file, strict=True))) == ROWS + 1
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_a_check_and_a_refusal_are_told_and_a_task_can_be_cancelled(open_site: Open, browser: webdriver.Chrome) -> None:
    opened(open_site, browser)
    row = submit(browser)
    row.find_element(By.CSS_SELECTOR, ".cancel").click()
    wait_for(lambda: state(row) == "cancelled")
    assert not row.find_element(By.CSS_SELECTOR, ".cancel").is_displayed()
    note = browser.find_element(By.ID, "note")
    browser.find_element(By.ID, "check").click()
    wait_for(lambda: note.text.startswith("约 6,000 行"))
    browser.execute_script("document.forms[0].elements['to'].value = '2026-08-01'")
    browser.find_element(By.CSS_SELECTOR, "button.main").click()
    wait_for(lambda: note.text == "to：不得早于 from。")
    assert len(browser.find_elements(By.CSS_SELECTOR, "article")) == 1


def test_the_page_is_served_in_the_demo_alone(open_site: Open) -> None:
    site = open_site()
    site.start_web()
    assert site.get("/demo/")[0] == 404
