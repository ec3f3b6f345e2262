"""The wire transport of the Spark source at Apache Kafka, without Spark: it reads the same records as the Java
consumer.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.golden import golden
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_install import KafkaInstallation
from tests.support.source_rows import offsets, read

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("name", ["broker-clean", "broker-crashed"])
def test_the_wire_transport_reads_the_records_of_the_java_consumer(
    name: str, kafka: KafkaInstallation, tmp_path: Path
) -> None:
    manifest = golden(name).manifest
    golden(name).unpack(tmp_path / "data")
    with KafkaBroker(kafka, tmp_path, after_crash=manifest["ended"] == "crashed") as broker:
        for expected in manifest["partitions"]:
            chosen = {
                "kafka.bootstrap.servers": broker.bootstrap,
                "assign": f'{{"{expected["topic"]}":[{expected["partition"]}]}}',
            }
            found = read(chosen)
            assert [[row["OFFSET"], row["TIMESTAMP"] // 1000] for row in found] == [
                record[:2] for record in expected["records"]
            ]
            for size in ("1048576", "150"):
                committed = {
                    **chosen,
                    "kafka.isolation.level": "read_committed",
                    "kafka.max.partition.fetch.bytes": size,
                }
                assert offsets(read(committed)) == expected["committed"]
            # Read the same files in place, with the running broker's bounds.
            assert read({**chosen, "path": str(tmp_path / "data")}) == found
