"""A Redis that loses everything, or the last moments, or may lose something: nothing crashes and no file goes."""

import shutil
from collections.abc import Callable, Iterator

import pytest
import redis

from tests.processes import WEB, wait_for
from tests.reliability.installation import (
    WINDOW,
    Installation,
    expected_keys,
    installation,
    keys,
)


@pytest.fixture(scope="module")
def home(orders_url: str) -> Iterator[Installation]:
    with installation(database_url=orders_url) as site:
        site.start(["fast", "lanes", "lanes"])
        site.check(site.submit(*WINDOW))
        yield site


def flush(site: Installation) -> None:
    with redis.Redis.from_url(site.valkey.url()) as client:
        client.flushall()


def restore_empty(site: Installation) -> None:
    site.valkey.kill()
    shutil.rmtree(site.valkey.folder / "appendonlydir")
    site.valkey.start()


@pytest.mark.parametrize("lose", [flush, restore_empty])
def test_an_emptied_redis_loses_the_tasks_and_nothing_else(
    home: Installation, lose: Callable[[Installation], None]
) -> None:
    files = list((home.folder / "files").glob("*/*.csv"))
    running = home.submit_slow()
    told = len(home.events("identity.foreign"))
    lose(home)
    assert home.get(f"/api/orders/export/{running}")[0] == 404
    wait_for(lambda: len(home.events("identity.foreign")) >= told + 3)  # each sweep of the living workers
    assert home.everyone_lives()
    assert (home.folder / "spool" / "tasks" / running).is_dir()

    purge = home.command("export_purge")
    assert purge.returncode == 1
    assert "nothing was removed" in purge.stdout
    assert len(files) > 0
    assert all(keys(file.read_bytes()) == expected_keys() for file in files)

    home.check(home.submit(*WINDOW))
    with redis.Redis.from_url(home.valkey.url(1)) as state:
        state.set("export:identity", (home.folder / "spool" / "identity").read_text("utf-8").strip())


@pytest.mark.parametrize("until", ["a few pages later", "after the end"])
def test_a_redis_restored_from_the_past_goes_on_from_there(home: Installation, until: str) -> None:
    """As after a failover, or a power cut: the files are ahead of the state."""
    task_id = home.submit_slow()
    past = home.folder / "past"
    shutil.copytree(home.valkey.folder / "appendonlydir", past)
    before = home.progress(task_id)["processed"]
    wait_for(lambda: home.progress(task_id)["processed"] >= before + 500)
    if until == "after the end":
        home.check(task_id)
    home.valkey.kill()
    shutil.rmtree(home.valkey.folder / "appendonlydir")
    past.rename(home.valkey.folder / "appendonlydir")
    home.valkey.start()
    assert home.state(task_id) == "running"
    home.check(task_id)
    assert len(list((home.folder / "files" / task_id).iterdir())) == 2


def test_an_evicting_redis_is_refused_at_the_start(orders_url: str) -> None:
    with installation(database_url=orders_url) as site:
        with redis.Redis.from_url(site.valkey.url()) as client:
            client.config_set("maxmemory-policy", "volatile-lru")
        worker = site.start_worker("lanes")
        web = site.start_command("web", *WEB)
        for process, name in ((worker, "lanes"), (web, "web")):
            assert process.wait(30) != 0
            [log] = site.folder.glob(f"{name}-*.log")
            assert "maxmemory-policy is volatile-lru, it must be noeviction" in log.read_text("utf-8")
