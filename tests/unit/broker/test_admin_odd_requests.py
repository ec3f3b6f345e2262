"""Odd and hostile requests in every version that is served, also those that Kafka no longer has: always an answer."""

from __future__ import annotations

from itertools import count

import pytest

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.requests.api_table import API_TABLE
from tailrace.broker.startup.open_broker import open_broker
from tailrace.protocol.errors import UnwritableMessage
from tailrace.protocol.messages import CreateTopicsRequest
from tests.support.api_cases import cluster, configs, records, topics
from tests.support.api_cases.common import Case
from tests.support.api_twins import OurSide
from tests.support.memory_files import MemoryFiles
from tests.support.memory_node import NOW_MS

CASES: dict[str, list[Case]] = {
    "topics": [*topics.topic_cases(), *topics.metadata_cases()],
    "records": [
        *records.produce_cases(NOW_MS),
        *records.fetch_cases(),
        *records.offset_cases(NOW_MS),
        *records.producer_id_cases(),
    ],
    "configs": list(configs.config_cases()),
    "cluster": [*cluster.quota_cases(), *cluster.cluster_cases()],
    "deletion": list(topics.delete_topic_cases()),
}


@pytest.mark.parametrize("what", CASES)
def test_every_odd_request_is_answered_in_every_version(what: str) -> None:
    ids = count(1_000_000)
    broker = open_broker(
        MemoryFiles(),
        BrokerConfig.of(log_dirs=["/data"], port=9092, settings={"auto.create.topics.enable": "false"}),
        now_ms=NOW_MS,
        new_id=lambda: next(ids).to_bytes(16, "big"),
        next_int=lambda limit: next(ids) % limit,
    )
    side = OurSide(broker)
    wanted = [
        CreateTopicsRequest.CreatableTopic(name=name, num_partitions=3, replication_factor=1)
        for name in ("orders", "compacted", "timed", "empty", "sequenced", "small")
    ]
    side.ask(CreateTopicsRequest(topics=wanted, timeout_ms=1000), 7)
    side.learn()
    answered = 0
    for name, make in CASES[what]:
        key = make(side).SCHEMA.api_key
        row = API_TABLE[key]
        for version in range(row.min_version, row.max_version + 1):
            try:
                body = make(side).encode(version)
            except UnwritableMessage:
                continue  # this version cannot carry it
            answer = side.send(key, version, body)
            assert answer is not None or "acks 0" in name, f"{row.key.name} v{version} {name}: closed"
            answered += 1
    assert answered > len(CASES[what])
