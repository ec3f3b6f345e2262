"""Log lines as text and as JSON."""

from __future__ import annotations

import json
import logging
import sys

from tailrace.cli.serving.log_format import JsonLines, TextLines, set_up_logging
from tailrace.model.log_fields import fields
from tests.support.command import unchanged_process


def record(message: str = "topic created", **about: object) -> logging.LogRecord:
    made = logging.LogRecord("tailrace.broker", logging.INFO, "file.py", 1, message, (), None)
    made.created, made.msecs = 1_769_860_800.123, 123
    made.__dict__.update(fields(**about))
    return made


def test_text_has_time_level_logger_message_and_fields() -> None:
    line = TextLines().format(record(topic="orders", partitions=3, took_ms=1.23456, nothing=None))
    assert (
        line
        == "2026-01-31T12:00:00.123Z INFO    tailrace.broker: topic created topic=orders partitions=3 took_ms=1.235"
    )


def test_control_characters_in_a_log_line_are_escaped() -> None:
    line = TextLines().format(record("bad\nINFO forged", client_id='a b" x=1\n2026 INFO forged'))
    assert "\n" not in line
    assert line.endswith('bad\\nINFO forged client_id="a b\\" x=1\\n2026 INFO forged"')


def test_a_json_log_line_has_a_member_for_each_field() -> None:
    line = JsonLines().format(record(topic="orders", partitions=3, dirs=("a", "b"), error=OSError("disk")))
    assert json.loads(line) == {
        "time": "2026-01-31T12:00:00.123Z",
        "level": "info",
        "logger": "tailrace.broker",
        "message": "topic created",
        "topic": "orders",
        "partitions": 3,
        "dirs": ["a", "b"],
        "error": "disk",
    }
    assert "\n" not in line


def test_a_field_named_level_does_not_override_the_level() -> None:
    assert json.loads(JsonLines().format(record(level="none")))["level"] == "info"


def test_a_traceback_is_logged_in_text_and_json() -> None:
    made = record()
    try:
        raise ValueError("why")
    except ValueError:
        made.exc_info = sys.exc_info()
    assert "ValueError: why" in TextLines().format(made)
    assert "ValueError: why" in json.loads(JsonLines().format(made))["exception"]


def test_lines_of_a_shard_have_its_number() -> None:
    with unchanged_process():
        set_up_logging("info", "text", 2)
        (handler,) = logging.getLogger().handlers
        line = record(topic="orders")
        assert handler.filter(line)
        assert handler.format(line).endswith("topic created shard=2 topic=orders")
        plain = record()
        handler.filter(plain)
        assert handler.format(plain).endswith("topic created shard=2")
