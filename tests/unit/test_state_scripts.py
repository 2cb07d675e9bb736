"""The headers of the Lua scripts: the loader binds by them, so they must say all and only what is used."""

import re

import pytest

from exports.state import keys, replies, scripts
from exports.state.keys import TaskRef
from exports.telemetry.metrics import DURATION_BUCKETS_S, PAGE_BUCKETS_S

NAMES = scripts.all_names()


def test_the_first_line_and_the_docstring_of_every_script_are_there() -> None:
    for name in NAMES:
        lines = (scripts.FOLDER / f"{name}.lua").read_text(encoding="utf-8").splitlines()
        assert re.fullmatch(r"#!lua( flags=(no-writes|allow-oom))?", lines[0])
        assert lines[1].startswith("-- ")
        assert any(line.startswith("-- Cost: ") or " Cost: " in line for line in lines[:5])


@pytest.mark.parametrize("name", NAMES)
def test_every_declared_name_is_used_and_every_used_name_declared(name: str) -> None:
    script = scripts.load(name)
    body = script.source.split("\n", 3)[3]
    used_keys = set(re.findall(r"\bK\.(\w+)", body))
    dynamic = {key for key in script.keys if key.startswith(("runnable_", "index_"))}
    assert used_keys <= set(script.keys)
    assert set(script.keys) - used_keys <= dynamic
    used_arguments = set(re.findall(r"\bA\.(\w+)", body))
    assert used_arguments <= {argument.rstrip("*") for argument in script.arguments}
    assert {argument.rstrip("*") for argument in script.arguments} - used_arguments == set()
    assert not re.search(r"\b(KEYS|ARGV)\b(?!\[)", body.replace("#ARGV", "")) or "-- KEYS" in body


@pytest.mark.parametrize("name", NAMES)
def test_every_reply_of_a_script_is_declared(name: str) -> None:
    text = (scripts.FOLDER / f"{name}.lua").read_text(encoding="utf-8")
    replies = set(re.findall(r"return \{'(\w+)'", text))
    assert replies <= scripts.load(name).replies


@pytest.mark.parametrize("name", NAMES)
def test_every_key_of_a_script_has_a_name(name: str) -> None:
    assert set(scripts.load(name).keys) <= set(keys.names(TaskRef("exp_1", "ann", "r1")))


def test_no_script_decodes_json() -> None:
    for path in scripts.FOLDER.rglob("*.lua"):
        assert "cjson" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("path", "name", "bounds_s"),
    [
        ("shared/endings.lua", "DURATION_BUCKETS_MS", DURATION_BUCKETS_S),
        ("commit_page.lua", "PAGE_BUCKETS_MS", PAGE_BUCKETS_S),
    ],
    ids=["duration", "page"],
)
def test_the_buckets_of_the_scripts_are_those_of_the_collector(
    path: str, name: str, bounds_s: tuple[float, ...]
) -> None:
    found = re.search(rf"{name} = \{{([^}}]*)\}}", (scripts.FOLDER / path).read_text(encoding="utf-8"))
    assert found is not None
    assert [int(bound) for bound in found[1].split(",")] == [round(bound * 1000) for bound in bounds_s]


def test_the_window_of_the_speed_is_that_of_the_reader() -> None:
    found = re.search(r"WINDOW_MS = (\d+)", (scripts.FOLDER / "shared/progress.lua").read_text(encoding="utf-8"))
    assert found is not None
    assert int(found[1]) == replies.SPEED_WINDOW_MS


def test_a_call_with_an_unknown_argument_is_refused() -> None:
    script = scripts.load("renew_lease")
    with pytest.raises(TypeError, match="fence"):
        script.bind(keys.names(TaskRef("exp_1", "ann", "r1")), {"fence": 1})


def test_a_request_key_tells_nothing_of_the_owner() -> None:
    names = keys.names(TaskRef("exp_1", "ann@example.org", "secret"))
    assert "ann" not in names["request"] and "secret" not in names["request"]
    assert keys.request_digest("a", "b") != keys.request_digest("b", "a")
