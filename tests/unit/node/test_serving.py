"""Random ids and settings of a broker process."""

from __future__ import annotations

import uuid

import pytest

from tailrace.model.topic_config import InvalidConfig
from tailrace.node.serving import has_telemetry, random_id


def test_a_random_id_is_a_uuid_of_version_4() -> None:
    ids = {random_id() for _ in range(200)}
    assert len(ids) == 200
    assert {(uuid.UUID(bytes=one).version, uuid.UUID(bytes=one).variant) for one in ids} == {(4, uuid.RFC_4122)}


def test_telemetry_is_off_unless_it_is_enabled() -> None:
    assert not has_telemetry({})
    assert not has_telemetry({"tailrace.telemetry.enable": "false"})
    assert has_telemetry({"tailrace.telemetry.enable": "True", "tailrace.metrics.port": "0"})


def test_telemetry_needs_a_metrics_port_and_a_boolean() -> None:
    with pytest.raises(InvalidConfig, match=r"set tailrace\.metrics\.port as well"):
        has_telemetry({"tailrace.telemetry.enable": "true"})
    with pytest.raises(InvalidConfig, match="'yes' must be true or false"):
        has_telemetry({"tailrace.telemetry.enable": "yes"})
