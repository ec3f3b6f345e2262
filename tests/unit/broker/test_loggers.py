"""Clients can describe and set the log levels of a broker's loggers."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tailrace.metadata.decisions.config_changes import Operation
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import DescribeConfigsRequest, IncrementalAlterConfigsRequest
from tests.support.memory_node import Client, start

NAME = "tailrace.broker.broker"


@pytest.fixture
def client() -> Iterator[Client]:
    before = logging.getLogger(NAME).level
    yield Client(start())
    logging.getLogger(NAME).setLevel(before)


def levels(client: Client) -> dict[str, str]:
    asked = DescribeConfigsRequest.DescribeConfigsResource(resource_type=8, resource_name="1")
    (reported,) = client.ask(DescribeConfigsRequest(resources=[asked]), 4).results
    assert reported.error_code == 0
    assert {one.config_source for one in reported.configs} == {6}
    return {one.name: one.value for one in reported.configs}


def alter(client: Client, name: str, operation: int, value: str | None, **options: Any) -> int:
    request = IncrementalAlterConfigsRequest(**options)
    config = request.AlterableConfig(name=name, config_operation=operation, value=value)
    request.resources = [request.AlterConfigsResource(resource_type=8, resource_name="1", configs=[config])]
    (reported,) = client.ask(request, 1).responses
    return int(reported.error_code)


def test_loggers_are_described_with_their_effective_level(client: Client) -> None:
    logging.getLogger(NAME).setLevel(logging.WARNING)
    reported = levels(client)
    assert reported[NAME] == "WARN"
    assert "root" in reported
    assert all(name == "root" or name.startswith("tailrace") for name in reported)


def test_a_log_level_can_be_set_and_reset(client: Client) -> None:
    assert alter(client, NAME, Operation.SET, "TRACE") == 0
    assert logging.getLogger(NAME).level == 5
    assert levels(client)[NAME] == "TRACE"
    assert alter(client, NAME, Operation.DELETE, None) == 0
    assert logging.getLogger(NAME).level == logging.NOTSET


def test_validate_only_does_not_change_log_levels(client: Client) -> None:
    before = levels(client)
    assert alter(client, NAME, Operation.SET, "FATAL", validate_only=True) == 0
    assert levels(client) == before


@pytest.mark.parametrize(
    ("name", "operation", "value", "code"),
    [
        ("tailrace.no.such", Operation.SET, "INFO", ErrorCode.INVALID_CONFIG),
        (NAME, Operation.SET, "LOUD", ErrorCode.INVALID_CONFIG),
        (NAME, Operation.SET, None, ErrorCode.INVALID_REQUEST),
        (NAME, Operation.APPEND, "INFO", ErrorCode.INVALID_REQUEST),
        ("root", Operation.DELETE, None, ErrorCode.INVALID_REQUEST),
    ],
)
def test_an_invalid_change_of_a_log_level_is_refused(
    client: Client, name: str, operation: Operation, value: str | None, code: ErrorCode
) -> None:
    before = levels(client)
    assert alter(client, name, operation, value) == code
    assert levels(client) == before
