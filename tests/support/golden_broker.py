"""The golden directories of a whole broker: one after a clean stop, one after a kill.

They hold topics of every kind, offsets of a group, committed, aborted and open transactions, a topic that is being
deleted, checkpoints, the metadata log with its snapshots, and the clean-shutdown marker.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.golden import pack
from tests.support.golden_recorder import plain
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_client import KafkaClient
from tests.support.kafka_install import KafkaInstallation
from tests.support.log_oracle import START_MS, LogOracle
from tests.support.oracle_types import OracleRecord

NAMES = ("broker-clean", "broker-crashed")

# Small index files, checkpoints twice a second, a cleaner that checks ten times a second.
PROPERTIES = {
    "log.index.size.max.bytes": "1024",
    "log.index.interval.bytes": "256",
    "log.flush.offset.checkpoint.interval.ms": "500",
    "log.flush.start.offset.checkpoint.interval.ms": "500",
    "replica.high.watermark.checkpoint.interval.ms": "500",
    "log.cleaner.backoff.ms": "100",
    "log.retention.check.interval.ms": "500",
}

DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
}


def make_broker_directory(
    installation: KafkaInstallation, oracle: LogOracle, name: str, target: Path
) -> dict[str, Any]:
    """Fill a broker, end it, pack its log directory into target. Return the manifest."""
    manifest: dict[str, Any] = {
        "kind": "data_dir",
        "about": "A broker's whole log directory after " + ("a clean stop." if name == "broker-clean" else "kill -9."),
        "kafka": installation.version,
        "ended": "clean" if name == "broker-clean" else "crashed",
    }
    with (
        tempfile.TemporaryDirectory() as scratch,
        KafkaBroker(installation, Path(scratch), properties=PROPERTIES) as broker,
    ):
        with oracle.connect(broker.bootstrap) as client:
            topics = _fill(client, broker)
            manifest["partitions"] = [_view(client, topic, n) for topic, count in topics.items() for n in range(count)]
        if name == "broker-clean":
            broker.stop()
        else:
            broker.crash()
        pack(broker.data, target, "files", manifest)
        _dump(oracle, broker.data, target / "dumps")
    return manifest


def _records(first: int, count: int) -> list[OracleRecord]:
    return [
        OracleRecord(
            key=None if n % 5 == 4 else b"key-%d" % (n % 7),
            value=b"value-%d" % n,
            timestamp=START_MS + 100 * n - 350 * (n % 3 == 0),
            headers=((b"trace", b"%d" % n), (b"none", None)) if n % 4 == 3 else (),
        )
        for n in range(first, first + count)
    ]


def _fill(client: KafkaClient, broker: KafkaBroker) -> dict[str, int]:
    """Write to topics of every kind. Return the number of partitions of each topic that stays."""
    client.create_topic("orders", 2)
    for n, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd") * 2):
        client.produce("orders", n % 2, _records(n * 6, 6), config={"compression.type": codec})
    client.produce("orders", 1, *(_records(n, 2) for n in range(60, 76, 2)), config={"enable.idempotence": "true"})

    client.create_topic("events", 1, {"message.timestamp.type": "LogAppendTime"})
    client.produce("events", 0, _records(0, 5), _records(5, 5), config={"compression.type": "lz4"})

    client.create_topic("payments", 1)
    client.transaction("payer-1", "payments", 0, _records(0, 3), _records(3, 2), end="commit")
    client.transaction("payer-2", "payments", 0, _records(5, 4), end="abort")
    client.produce("payments", 0, _records(9, 2))
    client.transaction("payer-3", "payments", 0, _records(11, 3), end="open")
    client.transaction("payer-1", "payments", 0, _records(14, 2), end="commit")

    client.create_topic("audit", 1)
    client.produce("audit", 0, *(_records(n, 4) for n in range(0, 40, 4)))
    client.delete_records("audit", 0, 22)

    compact = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "300"}
    client.create_topic("users", 1, compact)
    keyed = [OracleRecord(key=b"user-%d" % (n % 4), value=b"name %d" % n, timestamp=START_MS + n) for n in range(20)]
    client.produce("users", 0, keyed[:8], [OracleRecord(key=b"user-9", value=None, timestamp=START_MS + 8)], keyed[8:])
    time.sleep(0.5)  # past segment.ms, so that the next batch seals the segment
    client.produce("users", 0, [OracleRecord(key=b"user-5", value=b"last", timestamp=START_MS + 1_000_000)])
    checkpoint = broker.data / "cleaner-offset-checkpoint"
    _wait_for("the cleaner", lambda: "users 0" in checkpoint.read_text())

    client.commit("readers", "orders", 0, 17, "half way")
    client.commit("readers", "orders", 1, 4)
    client.commit("auditors", "audit", 0, 30)

    time.sleep(1.5)  # the checkpoints catch up; later records are only in the logs
    client.produce("orders", 0, _records(90, 4), config={"compression.type": "zstd"})
    client.create_topic("gone", 1)
    client.produce("gone", 0, _records(0, 2))
    client.delete_topic("gone")
    _wait_for("the deletion", lambda: any(broker.data.glob("gone-0.*-delete")))
    return {"orders": 2, "events": 1, "payments": 1, "audit": 1, "users": 1}


def _wait_for(what: str, is_there: Callable[[], bool], timeout_s: float = 30) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_there():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s:g} s for {what}")
        time.sleep(0.1)


def _view(client: KafkaClient, topic: str, partition: int) -> dict[str, Any]:
    """Return the records and offsets of a partition as the Java consumer sees them."""

    def fields(records: list[OracleRecord]) -> Any:
        return plain([[r.offset, r.timestamp, r.key, r.value, r.headers] for r in records])

    records = client.consume(topic, partition)
    times = sorted({near for r in records for near in (r.timestamp, r.timestamp + 1)})[:40]
    found = [(time_ms, client.offset_for_time(topic, partition, time_ms)) for time_ms in times]
    start, end = client.bounds(topic, partition)
    return {
        "topic": topic,
        "partition": partition,
        "start_offset": start,
        "end_offset": end,
        "stable_offset": client.bounds(topic, partition, "read_committed")[1],
        "records": fields(records),
        "committed": [r.offset for r in client.consume(topic, partition, isolation="read_committed")],
        "times": [[t, None if at is None else [at.timestamp, at.offset, at.leader_epoch]] for t, at in found],
    }


def _dump(oracle: LogOracle, data: Path, target: Path) -> None:
    """Write the output of DumpLogSegments for every file that it supports, with paths as in files/."""
    for path in sorted(data.glob("*/*")):
        if path.suffix not in (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint"):
            continue
        topic = path.parent.name.rpartition("-")[0]
        decoder = DECODERS.get(topic, "--print-data-log")
        options = ("--deep-iteration", decoder) if path.suffix in (".log", ".checkpoint") else ()
        text = oracle.dump(path, options=options).replace(f"{data}/", "")
        name = target / f"{path.relative_to(data)}.txt"
        name.parent.mkdir(parents=True, exist_ok=True)
        name.write_text(text)
