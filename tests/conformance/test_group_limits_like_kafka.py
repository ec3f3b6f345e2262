"""Group settings outside the broker's limits, at Apache Kafka and at Tailrace: both move them within the limits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tailrace.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    ShareGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequest,
)
from tests.conformance.test_groups_like_kafka import is_loaded, start_with_groups
from tests.support.kafka_broker import KafkaBroker
from tests.support.raw_client import RawClient
from tests.support.tailrace_process import TailraceProcess

pytestmark = pytest.mark.kafka

SETTINGS = {"offsets.topic.num.partitions": "1"}
LIMITS = {f"group.{kind}.max.heartbeat.interval.ms": "10000" for kind in ("consumer", "share", "streams")}
GROUP = 32  # resource type of a group's configs

_Streams = StreamsGroupHeartbeatRequest
HEARTBEATS: tuple[Any, ...] = (
    ConsumerGroupHeartbeatRequest(
        group_id="consumer",
        member_id="m",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["missing"],
        topic_partitions=[],
    ),
    ShareGroupHeartbeatRequest(group_id="share", member_id="m", subscribed_topic_names=["missing"]),
    _Streams(
        group_id="streams",
        member_id="m",
        process_id="p",
        rebalance_timeout_ms=60_000,
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        topology=_Streams.Topology(
            epoch=0, subtopologies=[_Streams.Subtopology(subtopology_id="0", source_topics=["missing"])]
        ),
    ),
)


def set_heartbeat_intervals(client: RawClient) -> None:
    change = IncrementalAlterConfigsRequest
    resources = [
        change.AlterConfigsResource(
            resource_type=GROUP,
            resource_name=kind,
            configs=[change.AlterableConfig(name=f"{kind}.heartbeat.interval.ms", value="15000")],
        )
        for kind in ("consumer", "share", "streams")
    ]
    answer = client.ask(change(resources=resources), 1)
    assert [one.error_code for one in answer.responses] == [0, 0, 0]


def heartbeat_intervals(client: RawClient) -> list[int]:
    answers = [client.ask(beat, 1 if beat.SCHEMA.api_key != _Streams.SCHEMA.api_key else 0) for beat in HEARTBEATS]
    assert [answer.error_code for answer in answers] == [0, 0, 0]
    return [answer.heartbeat_interval_ms for answer in answers]


def test_kafka_moves_group_settings_within_changed_limits(
    kafka_broker: Callable[..., KafkaBroker], tmp_path: Path
) -> None:
    first = kafka_broker(directory=tmp_path / "kafka", properties=dict(SETTINGS))
    first.start()
    with RawClient(first.bootstrap) as client:
        set_heartbeat_intervals(client)
    first.stop()
    again = start_with_groups(
        lambda properties: kafka_broker(directory=tmp_path / "kafka", properties=properties), {**SETTINGS, **LIMITS}
    )
    with RawClient(again.bootstrap) as client:
        assert heartbeat_intervals(client) == [10_000] * 3


def test_tailrace_moves_group_settings_within_changed_limits(tmp_path: Path) -> None:
    def options(settings: dict[str, str]) -> list[str]:
        return [part for name, value in settings.items() for part in ("-o", f"{name}={value}")]

    with TailraceProcess(tmp_path, *options(SETTINGS)) as broker, RawClient(broker.bootstrap) as client:
        set_heartbeat_intervals(client)
    with TailraceProcess(tmp_path, *options({**SETTINGS, **LIMITS})) as broker, RawClient(broker.bootstrap) as client:
        while client.ask(FindCoordinatorRequest(key="any"), 1).error_code or not is_loaded(client):
            pass
        assert heartbeat_intervals(client) == [10_000] * 3
