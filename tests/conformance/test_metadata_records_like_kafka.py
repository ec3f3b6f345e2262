"""The same starts, clean stops, crashes, topics, configs and producer ids leave the same records in the metadata log.

The records are compared with Kafka's own log. Values that must differ are replaced: ids by names, broker epochs by the
number of the registration, ports and times by words. NoOpRecords, which we do not write, are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tailrace.protocol import messages as m
from tailrace.protocol.internal_records.metadata_frames import decode_frame
from tailrace.protocol.json_form import to_dict
from tailrace.protocol.message import Message
from tailrace.records.batch import RecordBatch, split_batches
from tailrace.records.control_records import parse_control
from tailrace.records.record import iter_records
from tests.support.controller_twin import LocalNode, counted_ids, raw_request
from tests.support.kafka_broker import KafkaBroker
from tests.support.memory_files import MemoryFiles

pytestmark = pytest.mark.kafka

create = m.CreateTopicsRequest
alter = m.IncrementalAlterConfigsRequest
FIRST_LIFE: list[tuple[Message, int]] = [
    (
        create(
            topics=[
                create.CreatableTopic(
                    name="orders",
                    num_partitions=2,
                    replication_factor=1,
                    configs=[create.CreatableTopicConfig(name="min.insync.replicas", value="1")],
                ),
                create.CreatableTopic(name="plain", num_partitions=1, replication_factor=1),
            ]
        ),
        7,
    ),
    (
        alter(
            resources=[
                alter.AlterConfigsResource(
                    resource_type=2,
                    resource_name="plain",
                    configs=[alter.AlterableConfig(name="segment.ms", value="9")],
                ),
                alter.AlterConfigsResource(
                    resource_type=4, configs=[alter.AlterableConfig(name="log.retention.ms", value="99999")]
                ),
            ]
        ),
        1,
    ),
    (
        m.AlterClientQuotasRequest(
            entries=[
                m.AlterClientQuotasRequest.EntryData(
                    entity=[m.AlterClientQuotasRequest.EntityData(entity_type="user", entity_name=None)],
                    ops=[m.AlterClientQuotasRequest.OpData(key="producer_byte_rate", value=5e6)],
                )
            ]
        ),
        1,
    ),
]
SECOND_LIFE: list[tuple[Message, int]] = [
    (m.DeleteTopicsRequest(topics=[m.DeleteTopicsRequest.DeleteTopicState(name="plain")], timeout_ms=30_000), 6),
    (
        m.CreatePartitionsRequest(
            topics=[m.CreatePartitionsRequest.CreatePartitionsTopic(name="orders", count=3, assignments=None)],
            timeout_ms=30_000,
        ),
        3,
    ),
    (
        m.UpdateFeaturesRequest(
            feature_updates=[
                m.UpdateFeaturesRequest.FeatureUpdateKey(feature="streams.version", max_version_level=0, upgrade_type=2)
            ]
        ),
        2,
    ),
]


def kafkas_life(broker: KafkaBroker) -> list[list[RecordBatch]]:
    """Run starts, a clean stop and a crash at Kafka, and return the log of each run."""

    def live(requests: list[tuple[Message, int]], end: Callable[[], None]) -> None:
        broker.start()
        for request, version in requests:
            raw_request(broker.port, request, version)
        end()

    live(FIRST_LIFE, broker.stop)
    live(SECOND_LIFE, broker.crash)
    live([], broker.stop)
    data = next(path for path in (broker.data / "__cluster_metadata-0").glob("*.log"))
    return by_epoch(data.read_bytes())


def our_life() -> list[list[RecordBatch]]:
    files = MemoryFiles()
    new_id = counted_ids()
    node = LocalNode(files, new_id=new_id)
    for request, version in FIRST_LIFE:
        node.ask(request, version)
    epoch = node.stop()
    node = LocalNode(files, new_id=new_id, previous_epoch=epoch)
    for request, version in SECOND_LIFE:
        node.ask(request, version)
    node.log.abandon()
    node = LocalNode(files, new_id=new_id)
    node.stop()
    return by_epoch(files.read("/data/__cluster_metadata-0/00000000000000000000.log"))


def by_epoch(data: bytes) -> list[list[RecordBatch]]:
    lives: dict[int, list[RecordBatch]] = {}
    for batch in split_batches(data):
        batch.check()
        lives.setdefault(batch.leader_epoch, []).append(batch)
    return list(lives.values())


class Story:
    """Records in a form in which two logs can be compared."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.epochs: list[int] = []

    def report(self, batches: list[RecordBatch]) -> list[Any]:
        reported: list[Any] = []
        for batch in batches:
            if batch.is_control:
                reported.append([type(parse_control(record)).__name__ for record in iter_records(batch)])
                continue
            for record in iter_records(batch):
                frame = decode_frame(record.value or b"")
                if frame.name != "NoOpRecord":
                    reported.append((frame.name, frame.version, self._plain(to_dict(frame.message, frame.version))))
        return [*_ordered(reported), *(one for one in reported if _is_about_cordons(one))]

    def _plain(self, form: dict[str, Any]) -> dict[str, Any]:
        if "topicId" in form and "name" in form:
            self.names[form["topicId"]] = form["name"]
        if "brokerEpoch" in form and form["brokerEpoch"] not in self.epochs:
            self.epochs.append(form["brokerEpoch"])
        plain = {}
        for key, value in form.items():
            if key == "topicId":
                value = self.names[value]
            elif key == "brokerEpoch":
                value = self.epochs.index(value)
            elif key in ("incarnationId", "logDirs", "directories"):
                value = "some" if value else value
            elif key == "endPoints":
                value = [{**one, "port": "some"} for one in value]
            elif key == "features":
                value = sorted(value, key=str)
            plain[key] = value
        return plain


def _is_about_cordons(one: Any) -> bool:
    """Return True for changes of cordoned directories, which Kafka sends with any heartbeat, before or
    after unfencing.
    """
    return one[0] == "BrokerRegistrationChangeRecord" and "cordonedLogDirs" in one[2]


def _ordered(reported: list[Any]) -> Iterator[Any]:
    """Yield the records in our order, where Kafka writes changes in the order of a hash table."""
    run: list[Any] = []
    for one in reported:
        if _is_about_cordons(one):
            continue
        if one[0] in ("PartitionChangeRecord", "ConfigRecord"):
            run.append(one)
            continue
        yield from sorted(run, key=str)
        run = []
        yield one
    yield from sorted(run, key=str)


def from_registration(story: list[Any]) -> list[Any]:
    """Return the records from the registration after a crash on.

    Before it, Kafka may first find that the old session has expired and fence the broker, or first see the new broker.
    """
    names = [one[0] for one in story]
    place = names.index("RegisterBrokerRecord")
    changes = ("PartitionChangeRecord", "BrokerRegistrationChangeRecord")
    return [one for number, one in enumerate(story) if number >= place or one[0] not in changes]


def test_our_metadata_log_has_the_same_records_as_kafkas(kafka_broker: Callable[..., KafkaBroker]) -> None:
    theirs, ours = kafkas_life(kafka_broker()), our_life()
    assert len(theirs) == len(ours) == 3
    kafka, tailrace = Story(), Story()
    for life, (expected, actual) in enumerate(zip(theirs, ours, strict=True)):
        expected_story, actual_story = kafka.report(expected), tailrace.report(actual)
        if life == 2:
            expected_story, actual_story = from_registration(expected_story), from_registration(actual_story)
        for number, (one, other) in enumerate(zip(expected_story, actual_story, strict=False)):
            assert one == other, f"record {number} of life {life}"
        assert len(expected_story) == len(actual_story), f"life {life}"
