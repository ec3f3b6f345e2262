"""`tailrace tier verify` and `gc` at a broker with tiered storage, on a folder and on a bucket."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tailrace
from tests.support.command import tailrace as command
from tests.support.s3_server import KEYS, S3Server, s3_server

KAFKAS = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
AIVENS = "io.aiven.kafka.tieredstorage"
SETTINGS = {
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": "100",
    "log.initial.task.delay.ms": "0",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "2",
}
TOPIC = {"remote.storage.enable": "true", "internal.segment.bytes": "300", "segment.bytes": "1048576"}
PATIENCE_S = 60


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def fill(broker: tailrace.Broker, directory: Path) -> None:
    broker.create_topic("orders", config=TOPIC)
    record = directory / "record"
    record.write_text("v" * 200)
    for _ in range(8):
        ran = command("produce", "orders", "--file", record, "--bootstrap", broker.bootstrap)
        assert ran.status == 0, ran


def test_orphans_in_a_folder_are_reported_and_deleted(tmp_path: Path) -> None:
    settings = {**SETTINGS, "remote.log.storage.manager.class.name": KAFKAS, "rsm.config.dir": str(tmp_path / "tier")}
    with tailrace.Broker(config=settings) as broker:
        fill(broker, tmp_path)
        until(lambda: len(list(tmp_path.rglob("*.snapshot"))) >= 4)
        connection = ("--bootstrap", broker.bootstrap)
        ran = command("tier", "verify", tmp_path / "tier", *connection)
        assert (ran.status, ran.err) == (0, "")
        (log, *_) = sorted(tmp_path.rglob("*.log"))
        orphan = log.with_name(f"{0:020d}-{'A' * 22}.log")
        orphan.write_bytes(b"x")
        foreign = log.parents[1] / f"other-0-{'B' * 22}" / log.name
        foreign.parent.mkdir()
        foreign.write_bytes(b"x")
        kinds = [
            one["kind"] for one in command("tier", "verify", tmp_path / "tier", *connection, "--json").json["findings"]
        ]
        assert kinds == ["foreign", "orphan"]
        ran = command("tier", "gc", tmp_path / "tier", *connection)
        assert ran.status == 1
        assert "A" * 22 in ran.out
        assert orphan.exists()
        ran = command("tier", "gc", tmp_path / "tier", *connection, "--yes", "--json")
        assert (ran.status, [one["kind"] for one in ran.json["deleted"]]) == (0, ["orphan"])
        assert not orphan.exists()
        assert foreign.exists()
        assert command("tier", "gc", tmp_path / "tier", *connection, "--yes", "--foreign").status == 0
        assert not foreign.exists()
        log.unlink()
        ran = command("tier", "verify", tmp_path / "tier", *connection, "--json")
        assert (ran.status, [one["kind"] for one in ran.json["findings"]]) == (1, ["missing"])


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    pytest.importorskip("moto")
    pytest.importorskip("pyarrow")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEYS["accessKey"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEYS["secretKey"])
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with s3_server() as server:
        yield server


def test_uploads_to_a_bucket_that_were_not_completed_are_ended(s3: S3Server, tmp_path: Path) -> None:
    s3.backend.create_bucket("tier", "us-east-1")
    settings = {
        **SETTINGS,
        "remote.log.storage.manager.class.name": f"{AIVENS}.RemoteStorageManager",
        "rsm.config.chunk.size": "4096",
        "rsm.config.storage.backend.class": f"{AIVENS}.storage.s3.S3Storage",
        "rsm.config.storage.s3.bucket.name": "tier",
        "rsm.config.storage.s3.endpoint.url": s3.endpoint,
        "rsm.config.storage.s3.region": "us-east-1",
    }

    def keys() -> list[str]:
        return [one.name for one in s3.backend.list_objects(s3.backend.get_bucket("tier"), None, None, None, None)[0]]

    with tailrace.Broker(config=settings) as broker:
        fill(broker, tmp_path)
        until(lambda: sum(name.endswith(".rsm-manifest") for name in keys()) >= 4)
        where = (f"s3://tier?endpoint_override={s3.endpoint}&region=us-east-1", "--bootstrap", broker.bootstrap)
        assert command("tier", "verify", *where).status == 0
        folder = keys()[0].rpartition("/")[0]
        name = f"{folder}/{0:020d}-{'A' * 22}"
        s3.backend.put_object("tier", f"{name}.indexes", b"x")
        s3.backend.create_multipart_upload("tier", f"{name}.log", {}, "STANDARD", [], None, None, {})
        found = command("tier", "verify", *where, "--json").json["findings"]
        assert [one["kind"] for one in found] == ["orphan", "upload"]
        assert command("tier", "gc", *where, "--yes").status == 0
        assert f"{name}.indexes" not in keys()
        assert command("tier", "verify", *where).status == 0
