"""Loggers: the log levels of this process, with Kafka's names for levels.

A broker's loggers are a config resource (type BROKER_LOGGER, named by the broker's id). Clients can read and set the
levels while the broker runs. Changes are lost at a restart. The resource contains Tailrace's loggers and the root.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tailrace.broker.config.config_description import DescribedConfig
from tailrace.metadata.decisions.config_changes import Operation
from tailrace.metadata.image.effective_config import ConfigSource
from tailrace.model.errors import ErrorCode, KafkaError

ROOT = "root"
_OURS = "tailrace"
LEVELS = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}


def describe_loggers(node_id: int, name: str) -> list[DescribedConfig]:
    _check_broker(node_id, name)
    return [
        DescribedConfig(one, _level(logger), ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG, False, False, 0, ())
        for one, logger in sorted(_loggers().items())
    ]


def alter_loggers(node_id: int, name: str, changes: Sequence[Any], *, validate_only: bool) -> None:
    """Set levels, or reset loggers to the levels of their parents. Raise KafkaError, and change none, if one fails."""
    _check_broker(node_id, name)
    loggers = _loggers()
    for logger, count in Counter(change.name for change in changes).items():
        if count > 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"logger {logger} is listed twice")
    for change in changes:
        if change.config_operation == Operation.SET and change.value is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"the level of logger {change.name} is missing")
    for change in changes:
        _check_change(change, loggers)
    if validate_only:
        return
    for change in changes:
        is_set = change.config_operation == Operation.SET
        loggers[change.name].setLevel(LEVELS[change.value] if is_set else logging.NOTSET)


def _check_broker(node_id: int, name: str) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the resource name of loggers must be the broker's id; it is empty")
    if name != str(node_id):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"this is broker {node_id}; send the request to broker {name}")


def _check_change(change: Any, loggers: dict[str, logging.Logger]) -> None:
    if change.config_operation not in (Operation.SET, Operation.DELETE):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"the level of {change.name} can only be set or deleted")
    if change.name not in loggers:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"logger {change.name} does not exist")
    if change.config_operation == Operation.DELETE and change.name == ROOT:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the level of the root logger cannot be deleted")
    if change.config_operation == Operation.SET and change.value not in LEVELS:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"{change.value} is not a level; use one of {', '.join(LEVELS)}")


def _loggers() -> dict[str, logging.Logger]:
    """Return the loggers that exist now. A logger is created when its module is imported."""
    known = logging.root.manager.loggerDict.items()
    ours = {name: one for name, one in list(known) if name.split(".")[0] == _OURS and isinstance(one, logging.Logger)}
    return {ROOT: logging.root, **ours}


def _level(logger: logging.Logger) -> str:
    """Return the name of the effective level, rounded down to one of `LEVELS`."""
    level = logger.getEffectiveLevel()
    return next((name for name, lowest in reversed(LEVELS.items()) if level >= lowest), "TRACE")
