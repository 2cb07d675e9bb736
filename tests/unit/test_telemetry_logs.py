import json
import logging
import logging.config
import subprocess
import sys

import pytest

from exports.errors import StepBroken
from exports.telemetry import logs, trace

TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def lines():
    """Collects what the module `exports.sample` writes, as JSON objects and as text."""
    collected = []

    class Collect(logging.Handler):
        def emit(self, record):
            collected.append((json.loads(logs.JsonLines().format(record)), logs.TextLines().format(record)))

    logger, handler = logging.getLogger("exports.sample"), Collect()
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(handler)
    yield collected
    logger.removeHandler(handler)
    logger.propagate = True


def test_an_event_is_one_object_with_its_fields(lines):
    logs.events("exports.sample").info("shard.committed", rows=2000, last=None)
    [(line, _)] = lines
    assert line.pop("time").endswith("Z")
    assert line == {"level": "info", "logger": "exports.sample", "event": "shard.committed", "rows": 2000, "last": None}


def test_bound_fields_stand_on_every_line_until_the_block_ends(lines):
    events = logs.events("exports.sample")
    with logs.bound(taskId="exp_1"), logs.bound(shardId="2026-09-01"):
        events.warning("page.retried")
    events.info("page.read")
    assert [(line.get("taskId"), line.get("shardId")) for line, _ in lines] == [("exp_1", "2026-09-01"), (None, None)]


def test_a_bound_field_without_a_value_is_left_out(lines):
    with logs.bound(taskId="exp_1", shardId=None):
        logs.events("exports.sample").info("task.planned")
    [(line, text)] = lines
    assert line["taskId"] == "exp_1"
    assert "shardId" not in line
    assert text.endswith("task.planned taskId=exp_1")


def test_lines_of_libraries_carry_the_bound_fields_and_the_trace(lines):
    with trace.tracing(TRACEPARENT), logs.bound(taskId="exp_1"):
        logging.getLogger("exports.sample").info("Restarting consumer in %0.2f seconds.", 3)
    [(line, _)] = lines
    assert (line["event"], line["taskId"], line["traceId"]) == (
        "Restarting consumer in 3.00 seconds.",
        "exp_1",
        "4bf92f3577b34da6a3ce929d0e0e4736",
    )


def test_a_line_break_in_a_field_or_a_message_starts_no_new_line(lines):
    logs.events("exports.sample").info("request.refused", requestId="a\r\nlevel=error")
    logging.getLogger("exports.sample").info("one\r\ntwo\u2028three")
    texts = [text for _, text in lines]
    assert [len(text.splitlines()) for text in texts] == [1, 1]
    assert texts[0].endswith(r'requestId="a\r\nlevel=error"')
    assert texts[1].endswith(r"one\r\ntwo\u2028three")


def test_the_text_of_a_foreign_exception_is_left_out(lines):
    try:
        try:
            raise ValueError("13800138000 is not a number")
        except ValueError as cause:
            raise StepBroken("unclassified") from cause
    except StepBroken as error:
        logs.events("exports.sample").error("step.failed", error=error)
    [(line, text)] = lines
    assert line["exception"].startswith("exports.errors.StepBroken(unclassified) at test_telemetry_logs.py:")
    assert " because of ValueError at test_telemetry_logs.py:" in line["exception"]
    assert "13800138000" not in text + json.dumps(line)


def test_a_name_that_is_no_dotted_constant_is_refused(lines):
    for name in ("committed", "Shard.Committed", "shard committed", "shard."):
        with pytest.raises(ValueError, match="not a dotted event name"):
            logs.events("exports.sample").info(name)
    assert lines == []


@pytest.mark.parametrize("as_json", [True, False])
def test_a_configured_process_writes_one_line_an_event(as_json):
    code = (
        "import logging.config; from exports.telemetry import logs; "
        f"logging.config.dictConfig(logs.configuration(as_json={as_json})); "
        "logs.events('exports.sample').info('worker.started', group='lanes')"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    [line] = done.stderr.splitlines()
    if as_json:
        assert json.loads(line)["group"] == "lanes"
    else:
        assert line.endswith(" INFO exports.sample worker.started group=lanes".replace("INFO", "info"))


def test_a_503_is_told_by_the_api_alone_and_a_500_by_django_too():
    code = (
        "import logging.config; from exports.telemetry import logs; "
        "logging.config.dictConfig(logs.configuration(as_json=True)); log = logging.getLogger('django.request'); "
        "[log.error('%s', status, extra={'status_code': status}) for status in (503, 500)]"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert [json.loads(line)["event"] for line in done.stderr.splitlines()] == ["500"]
