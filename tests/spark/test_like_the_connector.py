"""The source returns the same columns, rows and errors as Spark's own Kafka connector for the same query."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tailrace
from tests.support.golden import golden

pytestmark = pytest.mark.slow

# Kafka wrote the golden directory: headers, tombstones, all codecs, open, committed and aborted transactions,
# compaction, deleted records.
TOPICS = "orders,payments,audit,events,users"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tailrace.Broker]:
    path: Path = golden("broker-clean").unpack(tmp_path_factory.mktemp("golden"))
    with tailrace.Broker(path) as broker:
        yield broker


def ends(offset: int) -> str:
    offsets: dict[str, dict[str, int]] = {}
    for partition in golden("broker-clean").manifest["partitions"]:
        offsets.setdefault(partition["topic"], {})[str(partition["partition"])] = offset
    return json.dumps({topic: offsets[topic] for topic in TOPICS.split(",")})


MIDDLE = "1700000000500"
QUERIES = {
    "everything": {"subscribe": TOPICS},
    "headers": {"subscribe": TOPICS, "includeHeaders": "true"},
    "pattern": {"subscribePattern": "(orders|user.).*"},
    "assigned": {"assign": '{"orders":[1],"audit":[0]}'},
    "committed": {"subscribe": TOPICS, "kafka.isolation.level": "read_committed"},
    "tuned": {"subscribe": TOPICS, "kafka.max.poll.records": "3", "minPartitions": "9"},
    "offsets": {"subscribe": TOPICS, "startingOffsets": ends(-2), "endingOffsets": ends(-1)},
    "middle": {
        "subscribe": "orders",
        "startingOffsets": '{"orders":{"0":3,"1":-2}}',
        "endingOffsets": '{"orders":{"0":9,"1":5}}',
    },
    "until": {"subscribe": TOPICS, "endingTimestamp": MIDDLE},
    "since": {"subscribe": TOPICS, "startingTimestamp": MIDDLE, "startingOffsetsByTimestampStrategy": "latest"},
    "times": {"subscribe": "orders", "startingOffsetsByTimestamp": '{"orders":{"0":1700000000000,"1":1700000000000}}'},
}  # fmt: skip


@pytest.mark.parametrize("name", QUERIES)
def test_the_source_returns_the_rows_of_the_kafka_connector(connector: Any, broker: tailrace.Broker, name: str) -> None:
    options = {"kafka.bootstrap.servers": broker.bootstrap, **QUERIES[name]}
    frames = [connector.read.format(source).options(**options).load() for source in ("kafka", "tailrace")]
    assert frames[0].schema == frames[1].schema
    theirs, ours = (sorted(frame.collect(), key=lambda row: (row.topic, row.partition, row.offset)) for frame in frames)
    assert ours == theirs
    assert ours


REFUSED = {
    "no topic": {"subscribe": "nope"},
    "two selections": {"subscribe": "orders", "assign": '{"orders":[0]}'},
    "no selection": {},
    "batch from latest": {"subscribe": "orders", "startingOffsets": "latest"},
    "batch to earliest": {"subscribe": "orders", "endingOffsets": "earliest"},
    "a partition left out": {"subscribe": "orders", "startingOffsets": '{"orders":{"0":1}}'},
    "a partition too many": {"subscribe": "orders", "startingOffsets": '{"orders":{"0":1,"1":1,"7":1}}'},
    "no such time": {"subscribe": "orders", "startingTimestamp": "1999999999999"},
    "a protected setting": {"subscribe": "orders", "kafka.auto.offset.reset": "latest"},
    "commits": {"subscribe": "orders", "kafka.enable.auto.commit": "true"},
    "before the start": {"subscribe": "audit", "startingOffsets": '{"audit":{"0":1}}'},
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_options_that_the_connector_refuses_are_refused(connector: Any, broker: tailrace.Broker, name: str) -> None:
    options = {"kafka.bootstrap.servers": broker.bootstrap, "kafka.default.api.timeout.ms": "5000", **REFUSED[name]}
    for source in ("kafka", "tailrace"):
        with pytest.raises(Exception, match=r"\w"):
            connector.read.format(source).options(**options).load().collect()
