import pytest

from exports.telemetry import trace

HEADER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_new_traceparent_is_one_that_the_parser_takes():
    made = trace.new_traceparent()
    assert trace.parse_traceparent(made) == made


def test_two_new_traceparents_differ():
    assert trace.new_traceparent() != trace.new_traceparent()


@pytest.mark.parametrize("header", [HEADER, f"  {HEADER}\t", HEADER.replace("-01", "-00")])
def test_a_right_header_is_taken(header):
    assert trace.parse_traceparent(header) == header.strip()


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "00",
        HEADER.upper(),
        HEADER + "-extra",
        "ff" + HEADER[2:],
        "0" + HEADER,
        HEADER[:-1],
        HEADER + "\n",
        HEADER.replace("4bf92f3577b34da6a3ce929d0e0e4736", "0" * 32),
        HEADER.replace("00f067aa0ba902b7", "0" * 16),
        HEADER.replace("4bf9", "4bg9"),
        HEADER.replace("4", "４"),
        HEADER.replace("-", "_"),
    ],
)
def test_a_wrong_header_is_none(header):
    assert trace.parse_traceparent(header) is None


def test_a_later_version_is_read_by_its_first_four_fields():
    assert trace.parse_traceparent("cc" + HEADER[2:] + "-what-the-future-brings") == HEADER


def test_the_trace_id_is_the_32_digits():
    assert trace.trace_id(HEADER) == "4bf92f3577b34da6a3ce929d0e0e4736"


def test_the_current_trace_ends_with_its_block():
    with trace.tracing(HEADER):
        assert trace.current.get() == HEADER
    assert trace.current.get() is None
