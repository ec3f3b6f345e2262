"""Tiered storage while the metadata is not read yet, or its topic is not there."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.topic_config import InvalidConfig
from tests.support.tiered_node import SETTINGS, TieredNode, keys_of


def stopped() -> TieredNode:
    """Return a node with remote segments that has stopped."""
    node = TieredNode()
    assert node.create({"local.retention.bytes": "1"}).error_code == 0
    node.produce(20)
    node.run_tasks()
    node.broker.close(node.now_ms)
    return node


def test_a_read_before_the_metadata_is_read_has_an_error_that_clients_retry() -> None:
    before = stopped()
    node = TieredNode(before.files, now_ms=before.now_ms + 1_000)
    answer = node.fetch(0)
    assert (answer.error_code, answer.records) == (ErrorCode.REPLICA_NOT_AVAILABLE, b"")
    node.tick(100)
    assert keys_of(node.fetch(0).records)[0] == 0


def test_a_lookup_by_time_before_the_metadata_is_read_does_not_answer_from_the_local_log() -> None:
    before = stopped()
    node = TieredNode(before.files, now_ms=before.now_ms + 1_000)
    assert node.offset_of(1)[0] == ErrorCode.REPLICA_NOT_AVAILABLE
    node.tick(100)
    assert node.offset_of(1) == (0, 0)


def test_tiered_storage_is_refused_on_a_controller_of_other_brokers() -> None:
    with pytest.raises(InvalidConfig, match="cannot be the controller of other brokers yet"):
        BrokerConfig(
            {
                **SETTINGS,
                "process.roles": "broker,controller",
                "log.dirs": "/data",
                "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": "1@localhost:9093",
                "node.id": "1",
            }
        )


def test_a_metadata_topic_that_cannot_be_created_is_tried_again_at_a_limited_rate(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = TieredNode()
    logs = node.broker.services.remote_logs
    assert logs is not None
    tries: list[int] = []

    def refuse(now_ms: int) -> Any:
        tries.append(now_ms)
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "too many topics")

    monkeypatch.setattr(logs._topic, "ensure", refuse)
    with caplog.at_level(logging.WARNING):
        node.create()
        for _ in range(50):
            node.tick(100)
    assert len(tries) == 6
    assert sum("cannot be created" in line.message for line in caplog.records) == 1
