"""The `tailrace log` commands on the directory of a running broker: they see what a consumer sees, and
change nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tests.support.command import tailrace
from tests.support.kafka_broker import KafkaBroker
from tests.support.log_oracle import LogOracle
from tests.support.oracle_types import OracleRecord

pytestmark = pytest.mark.kafka

RECORDS = 1200


def test_log_commands_read_the_directory_of_a_running_broker(
    kafka_broker: Callable[..., KafkaBroker], log_oracle: LogOracle
) -> None:
    broker = kafka_broker(properties={"log.segment.bytes": "1048576", "log.index.interval.bytes": "1000"})
    broker.start()
    path = broker.log_dirs[0]
    with log_oracle.connect(broker.bootstrap) as client:
        client.create_topic("orders", partitions=1)

        def produce() -> None:
            for first in range(0, RECORDS, 20):
                records = [
                    OracleRecord(key=b"key-%d" % n, value=b"%d" % n * 300, timestamp=1_700_000_000_000 + n)
                    for n in range(first, first + 20)
                ]
                client.produce("orders", 0, records)

        producer = threading.Thread(target=produce)
        producer.start()
        looks = []
        while producer.is_alive() or len(looks) < 3:
            for verb in ("ls", "verify", "cat"):
                ran = tailrace("log", verb, path)
                looks.append((verb, ran.status, ran.err))
        producer.join()
        consumed = [record.offset for record in client.consume("orders", 0)]
    assert len(consumed) == RECORDS
    assert [look for look in looks if look[1:] != (0, "")] == []
    assert len(list((path / "orders-0").glob("*.log"))) > 1
    shown = tailrace("log", "cat", path, "--topic", "orders", "--json").json_lines
    assert [record["offset"] for record in shown] == consumed
    refused = tailrace("log", "repair", path)
    assert (refused.status, refused.out) == (2, "")
    assert "in use" in refused.err
    broker.stop()
    assert tailrace("log", "verify", path, "--deep").status == 0
