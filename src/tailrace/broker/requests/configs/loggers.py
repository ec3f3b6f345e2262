"""Loggers: the levels of this process's loggers, by the names that Kafka has for levels.

A broker's loggers are a resource of their own (BROKER_LOGGER, named by the broker's id): a client may look at them and
set them while the broker runs; nothing of it is kept. Those of Tailrace are told, and the root.
"""

from __future__ import annotations

import logging
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
    """Set levels, or let loggers follow their parents again: all of them, or none and a KafkaError."""
    _check_broker(node_id, name)
    loggers = _loggers()
    if len({change.name for change in changes}) < len(changes):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a logger is named twice")
    for change in changes:
        if change.config_operation == Operation.SET and change.value is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"logger {change.name} is given no level")
    for change in changes:
        _check_change(change, loggers)
    if validate_only:
        return
    for change in changes:
        is_set = change.config_operation == Operation.SET
        loggers[change.name].setLevel(LEVELS[change.value] if is_set else logging.NOTSET)


def _check_broker(node_id: int, name: str) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "loggers need the id of their broker")
    if name != str(node_id):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"these are the loggers of broker {node_id}, not of {name}")


def _check_change(change: Any, loggers: dict[str, logging.Logger]) -> None:
    if change.config_operation not in (Operation.SET, Operation.DELETE):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"the level of {change.name} can be set or deleted, nothing else")
    if change.name not in loggers:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"there is no logger {change.name}")
    if change.config_operation == Operation.DELETE and change.name == ROOT:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the root logger needs a level")
    if change.config_operation == Operation.SET and change.value not in LEVELS:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"{change.value} is none of {', '.join(LEVELS)}")


def _loggers() -> dict[str, logging.Logger]:
    """Those there are by now; one is made when its module is first used."""
    known = logging.root.manager.loggerDict.items()
    ours = {name: one for name, one in list(known) if name.split(".")[0] == _OURS and isinstance(one, logging.Logger)}
    return {ROOT: logging.root, **ours}


def _level(logger: logging.Logger) -> str:
    """The level that counts, under the next name below it."""
    level = logger.getEffectiveLevel()
    return next((name for name, lowest in reversed(LEVELS.items()) if level >= lowest), "TRACE")
