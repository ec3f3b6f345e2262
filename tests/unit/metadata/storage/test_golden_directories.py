"""`__cluster_metadata-0` of Kafka's broker: read to an image, and written again to the same bytes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tailrace.log.disk.files import DiskFiles
from tailrace.metadata.image.features import BOOTSTRAP_LEVELS, record_versions
from tailrace.metadata.image.image import ConfigResource, MetadataImage
from tailrace.metadata.image.registrations import Endpoint
from tailrace.metadata.quorum.quorum_state import QUORUM_STATE, QuorumState
from tailrace.metadata.storage.metadata_log import MetadataLog
from tailrace.metadata.storage.metadata_snapshot import FORMATTED, read_snapshot, snapshot_batches
from tailrace.metadata.storage.record_framing import build_batch, build_control_batch, records_in, version_of
from tailrace.metadata.storage.storage_format import METADATA_FOLDER, read_identity
from tailrace.protocol.internal_records.metadata_frames import decode_frame
from tailrace.records.batch import split_batches
from tailrace.records.control_records import parse_control
from tailrace.records.record import iter_records
from tests.support.golden import golden

NAMES = ["broker-clean", "broker-crashed"]
LOG = f"{METADATA_FOLDER}/00000000000000000000.log"


def load(folder: Path) -> MetadataLog:
    identity = read_identity(DiskFiles(), str(folder))
    endpoints = (Endpoint("CONTROLLER", "127.0.0.1", 9093),)
    return MetadataLog(DiskFiles(), str(folder), identity, controller_endpoints=endpoints, now_ms=0)


def records_that_kafka_dumped(name: str) -> list[tuple[str, dict[str, Any]]]:
    """Return (type, data) of every record that kafka-dump-log printed."""
    text = (golden(name).path / "dumps" / f"{LOG}.txt").read_text()
    reported = [json.loads(found) for found in re.findall(r"payload: (\{.*\})$", text, re.MULTILINE)]
    return [(record["type"], record["data"]) for record in reported]


@pytest.mark.parametrize("name", NAMES)
def test_the_image_equals_kafkas_dump(name: str, tmp_path: Path) -> None:
    image = load(golden(name).unpack(tmp_path)).image
    topics: dict[str, str] = {}
    partitions: dict[tuple[str, int], list[int]] = {}  # leader, leader epoch, partition epoch
    configs: dict[ConfigResource, dict[str, str]] = {}
    features: dict[str, int] = {}
    for kind, data in records_that_kafka_dumped(name):
        if kind == "TOPIC_RECORD":
            topics[data["topicId"]] = data["name"]
        elif kind == "PARTITION_RECORD":
            partitions[data["topicId"], data["partitionId"]] = [
                data["leader"],
                data["leaderEpoch"],
                data["partitionEpoch"],
            ]
        elif kind == "PARTITION_CHANGE_RECORD":
            state = partitions[data["topicId"], data["partitionId"]]
            if "leader" in data:
                state[0] = data["leader"]
                state[1] += 1
            state[2] += 1
        elif kind == "REMOVE_TOPIC_RECORD":
            configs.pop(ConfigResource(2, topics.pop(data["topicId"])), None)
        elif kind == "CONFIG_RECORD":
            resource = ConfigResource(data["resourceType"], data["resourceName"])
            configs.setdefault(resource, {})[data["name"]] = data["value"]
        elif kind == "FEATURE_LEVEL_RECORD":
            features[data["name"]] = data["featureLevel"]
    assert len(topics) > 3
    assert {str(topic.topic_id): topic.name for topic in image.topics.values()} == topics
    assert {
        (str(topic.topic_id), number): [one.leader, one.leader_epoch, one.partition_epoch]
        for topic, number, one in image.partitions()
    } == {key: state for key, state in partitions.items() if key[0] in topics}
    assert image.configs == configs
    assert image.features == features == BOOTSTRAP_LEVELS
    assert image.next_producer_id == 1000


@pytest.mark.parametrize("name", NAMES)
def test_our_batches_equal_kafkas_byte_for_byte(name: str, tmp_path: Path) -> None:
    data = (golden(name).unpack(tmp_path) / LOG).read_bytes()
    versions = record_versions(30)
    for batch in split_batches(data):
        place: Any = {"base_offset": batch.base_offset, "leader_epoch": batch.leader_epoch}
        if batch.is_control:
            values = [value for value in map(parse_control, iter_records(batch)) if value is not None]
            ours = build_control_batch(values, timestamp_ms=batch.max_timestamp, **place)
        else:
            for record in iter_records(batch):
                frame = decode_frame(record.value or b"")
                assert version_of(frame.message, versions) == frame.version
            ours = build_batch(records_in(batch), versions, timestamp_ms=batch.max_timestamp, **place)
        assert ours == bytes(batch.view)


@pytest.mark.parametrize("name", NAMES)
def test_snapshots_of_a_new_directory_equal_kafkas_byte_for_byte(name: str, tmp_path: Path) -> None:
    folder = golden(name).unpack(tmp_path)
    for path in (folder / "bootstrap.checkpoint", folder / METADATA_FOLDER / FORMATTED.file_name):
        data = path.read_bytes()
        times = [batch.max_timestamp for batch in split_batches(data)]
        found = read_snapshot(DiskFiles(), str(path))
        ours = [
            next(
                one
                for number, one in enumerate(
                    snapshot_batches(
                        found.records,
                        record_versions(30),
                        quorum=found.quorum,
                        epoch=0,
                        last_contained_timestamp=found.last_contained_timestamp,
                        now_ms=moment,
                    )
                )
                if number == place
            )
            for place, moment in enumerate(times)
        ]
        assert b"".join(ours) == data


@pytest.mark.parametrize("name", NAMES)
def test_a_new_epoch_is_one_above_kafkas(name: str, tmp_path: Path) -> None:
    folder = golden(name).unpack(tmp_path)
    log = load(folder)
    before: MetadataImage = log.image
    end = log.next_offset
    log.begin_epoch(5)
    log.flush(5)
    assert log.epoch == before.epoch + 1 == 2
    assert log.image.offset == end + 2  # leader change, and the voters with the controller's new address
    log.abandon()
    again = load(folder)
    assert again.image.epoch == 2
    assert again.image.topics == before.topics
    assert again.quorum.voters[0].endpoints[0].port == 9093
    assert QuorumState.read(DiskFiles(), f"{folder}/{METADATA_FOLDER}/{QUORUM_STATE}") == QuorumState(1, 2)
    again.begin_epoch(6)
    assert again.image.offset == again.next_offset - 1 == end + 3  # the voters are known by now
