"""A real Chromium, driven through its driver, against the product as it is served."""

import shutil
import tempfile
from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from tests.services import missing

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/browser/" in item.nodeid:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser() -> Iterator[Chrome]:
    """One browser for all tests of a session; each logs in for itself."""
    if not (CHROMIUM and DRIVER):
        missing("chromium chromium-driver")
    options = ChromeOptions()
    options.binary_location = str(CHROMIUM)
    with tempfile.TemporaryDirectory(prefix="exports-chromium-", ignore_cleanup_errors=True) as profile:
        for argument in (
            "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--force-color-profile=srgb",
            "--lang=en-US", f"--user-data-dir={profile}",
        ):  # fmt: skip
            options.add_argument(argument)
        options.add_experimental_option("prefs", {"intl.accept_languages": "en-US,en"})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = Chrome(options=options, service=Service(str(DRIVER)))
        yield driver
        driver.quit()
