"""The ops page as an operator sees and uses it, in a real browser, on a wide and on a narrow screen."""

import base64
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from django.contrib.auth.hashers import make_password
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from exports.contracts import Shard, Step
from exports.errors import StepBroken, TaskDeleted
from exports.pipeline import notify, steps
from exports.state.replies import Claim
from exports.state.store import store
from tests import kinds, pipeline, services
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase, utc
from tests.processes import Site, running
from tests.receiver import OPEN, receiving

PASSWORD = "correct horse battery staple"
DAYS = ("2026-09-14", "2026-09-15")
CANARY = "<img src=x onerror=\"document.title='owned'\">"
WIDTHS = (1280, 390)


@pytest.fixture
def orders(desk: Path, sqlite_orders: OrdersDatabase) -> OrdersDatabase:
    sqlite_orders.insert({"id": number, "created_at": utc(f"2026-09-14 04:00:{number:02d}")} for number in range(1, 31))
    sqlite_orders.add(31, created_at=utc("2026-09-15 04:00:00"))
    return sqlite_orders


@pytest.fixture
def site(orders: OrdersDatabase, desk: Path, valkey: services.Valkey) -> Iterator[Site]:
    """A web process over the Redis, spool and files of this process."""
    users = {"olga": {"password": make_password(PASSWORD), "rights": ["ops.read", "ops.act"]}}
    database_url = f"sqlite:///{orders.settings['NAME']}"
    with running(Site(desk, valkey=valkey, database_url=database_url, OPS_USERS=json.dumps(users))) as found:
        found.start_web()
        yield found


@pytest.fixture
def page(site: Site, browser: Chrome) -> Iterator["Ops"]:
    browser.delete_all_cookies()
    ops = Ops(browser, site)
    ops.log_in()
    yield ops
    assert ops.complaints() == []


class Ops:
    """The pages, and what an operator does on them."""

    def __init__(self, browser: Chrome, site: Site) -> None:
        self.browser = browser
        self.folder = site.folder
        self.root = f"http://127.0.0.1:{site.port}"

    def log_in(self) -> None:
        self.width(WIDTHS[0])
        self.browser.get(f"{self.root}/ops/")
        self.browser.delete_all_cookies()
        self.browser.get(f"{self.root}/ops/login/?next=/ops/")
        self.browser.find_element(By.NAME, "username").send_keys("olga")
        self.browser.find_element(By.NAME, "password").send_keys(PASSWORD, Keys.ENTER)
        self.until(lambda: self.path() == "/ops/")
        self.complaints()

    def open(self, path: str) -> None:
        self.browser.get(self.root + path)

    def width(self, pixels: int) -> None:
        """Of the page itself; a window has frames and a least size."""
        metrics = {"width": pixels, "height": 900, "deviceScaleFactor": 1, "mobile": pixels < 768}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def shoot(self, name: str) -> None:
        """A picture of the whole page, beside the other files of the test, for whoever looks into a failure."""
        shot = self.browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
        (self.folder / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))

    def text(self) -> str:
        return self.browser.find_element(By.TAG_NAME, "main").text

    def updated(self) -> str:
        """When the page was last put up to date, as it says itself."""
        return self.browser.find_element(By.ID, "updated").text

    def path(self) -> str:
        return self.browser.current_url.removeprefix(self.root)

    def press(self, name: str) -> None:
        """Choose a link or button by its text with the keyboard alone."""
        xpath = f"//main//*[self::a or self::button][contains(normalize-space(), {json.dumps(name)})]"
        self.browser.find_element(By.XPATH, xpath).send_keys(Keys.ENTER)

    def give(self, reason: str) -> None:
        """Give the reason and do what was shown."""
        self.browser.find_element(By.NAME, "reason").send_keys(reason)
        self.press("Do it")

    def until(self, condition: Callable[[], bool]) -> None:
        WebDriverWait(self.browser, 60, ignored_exceptions=[Exception]).until(lambda _: condition())

    def complaints(self) -> list[str]:
        """What the browser's console has said since the last call: errors of scripts, and what the policy has blocked."""
        return [entry["message"] for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"]


def fail_task(request_id: str = "") -> str:
    """A task that failed while it read its second day."""

    def broken(shard: Shard, _cursor: str, _limit: int) -> None:
        if shard.id == DAYS[1]:
            raise StepBroken("as if by a fault nobody knows")

    kinds.FlakyOrders.before_read.append(broken)
    task_id = pipeline.submit(*DAYS, request_id=request_id)
    assert pipeline.work(task_id).state == "failed"
    kinds.FlakyOrders.before_read.clear()
    return task_id


def stall(client: "redis.Redis[bytes]") -> str:
    """A running task whose last progress is long ago."""
    task_id = pipeline.submit(*DAYS)
    ref = store().ref(task_id)
    assert ref is not None
    assert isinstance(steps.claim_step(ref, pipeline.view(task_id).request, Step.PLAN), Claim)
    client.hset(f"export:task:{task_id}", "progress_at", int((time.time() - 600) * 1000))
    return task_id


def test_a_failed_task_is_brought_to_its_file_from_the_page_alone(page: Ops, site: Site) -> None:
    task_id = fail_task()
    site.start_worker("lanes")
    page.open("/ops/")
    page.until(lambda: task_id in page.text())
    page.press(task_id)
    assert "fetch failed on 2026-09-15, page 1" in page.text()
    page.press("Rerun what is missing")
    assert "rows to read: 1, in shards: 1; rows kept: 30" in page.text()
    page.give("the fault is gone")
    page.until(lambda: page.path() == f"/ops/tasks/{task_id}/")
    # No reload from here on: the page follows the task by itself.
    page.until(lambda: "Download" in page.text())
    assert "olga: the fault is gone" in page.text()
    assert page.browser.find_element(By.ID, "announcement").get_property("textContent") == "succeeded"
    page.browser.find_element(By.LINK_TEXT, "Download")
    assert pipeline.read_file(task_id).count(b"\r\n") == 32


def test_a_callback_is_sent_anew_and_a_file_deleted_from_the_page_alone(page: Ops) -> None:
    with receiving() as receiver, exports_settings(callbacks=(receiver.endpoint(),), callback_delays_ms=(0,), **OPEN):
        receiver.answers(503, 503, 200)
        task_id = pipeline.submit(*DAYS)
        assert pipeline.work(task_id).state == "succeeded"
        notify.deliver_due()
        page.open(f"/ops/tasks/{task_id}/")
        page.press("Replay callbacks")
        assert f"is sent anew: {task_id}-1-succeeded-shop" in page.text()
        page.give("their server is back")
        page.until(lambda: page.path() == f"/ops/tasks/{task_id}/")
        notify.deliver_due()
        page.until(lambda: "delivered" in page.text())
    page.press("Delete the file")
    assert "cannot be brought back" in page.text()
    page.give("asked for by its owner")
    page.until(lambda: page.path() == "/ops/tasks/")
    assert task_id not in page.text()
    with pytest.raises(TaskDeleted):
        pipeline.view(task_id)


@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_fits_the_screen_and_names_its_controls(
    page: Ops, redis_db: "redis.Redis[bytes]", width: int
) -> None:
    done = pipeline.submit(*DAYS)
    assert pipeline.work(done).state == "succeeded"
    failed, stalled = fail_task(), stall(redis_db)
    pipeline.submit(*DAYS)
    page.width(width)
    for name, path in {
        "overview": "/ops/", "tasks": "/ops/tasks/?state=failed", "all": "/ops/tasks/", "failed": f"/ops/tasks/{failed}/",
        "stalled": f"/ops/tasks/{stalled}/", "succeeded": f"/ops/tasks/{done}/", "manifest": f"/ops/tasks/{done}/manifest/",
        "rerun": f"/ops/actions/rerun/?task={failed}",
        "bulk": "/ops/actions/cancel/?q=exp_", "runbook": "/ops/runbook/#unclassified", "none": "/ops/tasks/exp_none/",
    }.items():  # fmt: skip
        page.open(path)
        page.shoot(f"{name}-{width}")
        if name == "none":
            assert len(page.complaints()) == 1  # the 404 itself
        assert page.browser.execute_script(OVERFLOW) <= 0, path
        assert page.browser.execute_script(UNNAMED) == [], path


OVERFLOW = "return document.documentElement.scrollWidth - window.innerWidth"
UNNAMED = """
return [...document.querySelectorAll("main a, main button, main input:not([type=hidden]), main select, main progress, main svg")]
  .filter(e => !(e.textContent.trim() || e.getAttribute("aria-label") || (e.labels && e.labels.length)))
  .map(e => e.outerHTML)
"""


def test_markup_in_what_users_send_shows_as_text(page: Ops, redis_db: "redis.Redis[bytes]") -> None:
    task_id = fail_task(request_id=CANARY)
    fields = ("owner", "error_code", "error_shard", "error_cursor", "file_name")
    redis_db.hset(f"export:task:{task_id}", mapping=dict.fromkeys(fields, CANARY))
    redis_db.rpush(f"export:events:{task_id}", f"1764562560000|{CANARY}|{CANARY}")
    for path in ("/ops/", "/ops/tasks/", f"/ops/tasks/{task_id}/", f"/ops/actions/cancel/?task={task_id}"):
        page.open(path)
        assert CANARY in page.text(), path
        assert page.browser.find_elements(By.CSS_SELECTOR, "main img") == []
        assert "owned" not in page.browser.title
    page.open("/ops/")
    before = page.updated()
    page.until(lambda: page.updated() != before)
    assert page.browser.find_elements(By.CSS_SELECTOR, "main img") == []


def test_updates_pause_at_a_press_and_keep_the_keyboards_place(page: Ops) -> None:
    task_id = fail_task()
    page.open("/ops/")
    link = page.browser.find_element(By.LINK_TEXT, task_id)
    page.browser.execute_script("arguments[0].focus()", link)
    second = fail_task()
    page.until(lambda: second in page.text())
    assert page.browser.switch_to.active_element.text == task_id
    page.press("Pause updates")
    paused_at = page.updated()
    third = fail_task()
    time.sleep(5)  # two updates would have come
    assert page.updated() == paused_at
    page.press("Resume updates")
    page.until(lambda: third in page.text())
