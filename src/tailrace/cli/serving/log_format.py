"""Formats log lines as text for people or JSON for programs. Each is one line; in text, a traceback follows it.

2026-01-31T12:00:00.123Z INFO  tailrace.broker: topic created topic=orders partitions=3
{"time": "2026-01-31T12:00:00.123Z", "level": "info", "logger": "tailrace.broker", "message": "topic created",
 "topic": "orders", "partitions": 3}
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections.abc import Mapping
from typing import Any, Final

from tailrace.model.log_fields import FIELDS

LEVELS: Final = ("debug", "info", "warning", "error")
FORMATS: Final = ("text", "json")
_PLAIN: Final = re.compile(r"[^\s\"=\x00-\x1f\x7f]+")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def set_up_logging(level: str, form: str, shard: int | None = None) -> None:
    """Log to standard error, in the given format. The number of a shard becomes a field of each line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    if shard is not None:
        handler.addFilter(lambda record: _add_field(record, "shard", shard))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())


class TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        message = _CONTROL.sub(lambda found: repr(found[0])[1:-1], record.getMessage())
        pairs = "".join(f" {name}={_shown(value)}" for name, value in _fields(record).items())
        line = f"{_time(record)} {record.levelname:<7} {record.name}: {message}{pairs}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        # A field never overrides one of the four standard fields.
        line.update((name, value) for name, value in _fields(record).items() if name not in line)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def _add_field(record: logging.LogRecord, name: str, value: object) -> bool:
    setattr(record, FIELDS, {name: value, **_fields(record)})
    return True


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    found: Mapping[str, Any] = getattr(record, FIELDS, {})
    return found


def _time(record: logging.LogRecord) -> str:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{stamp}.{int(record.msecs):03d}Z"


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
