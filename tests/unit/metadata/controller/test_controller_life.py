"""LocalController: random lives, and crashes at every moment: what is on disk is what was answered."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.metadata.image.image import MetadataImage
from tailrace.metadata.storage.metadata_log import MetadataLog
from tailrace.metadata.storage.storage_format import prepare_directories, read_identity
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol import messages as m
from tailrace.protocol.internal_records.metadata_frames import decode_frame
from tailrace.records.batch import split_batches
from tailrace.records.record import iter_records
from tests.support.controller_twin import NOW_MS, LocalNode, counted_ids
from tests.support.crash_states import crash_points, describe
from tests.support.memory_files import MemoryFiles, memory_files
from tests.support.metadata_snapshots import write_snapshot
from tests.support.recording_files import RecordingFiles

create = m.CreateTopicsRequest
alter = m.IncrementalAlterConfigsRequest
TOPICS = ["a", "b", "c.d", "c_d", "bad name"]
SMALL = {
    "metadata.log.max.record.bytes.between.snapshots": "1500",
    "metadata.max.retention.bytes": "4000",
    "internal.metadata.log.segment.bytes": "900",
}


def create_topic(node: LocalNode, name: str, partitions: int = 1, retention: str | None = None) -> Any:
    configs = [] if retention is None else [create.CreatableTopicConfig(name="retention.ms", value=retention)]
    topic = create.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=configs)
    return node.controller.create_topics(create(topics=[topic]), node.now_ms)


def delete_topic(node: LocalNode, name: str) -> Any:
    delete = m.DeleteTopicsRequest
    return node.controller.delete_topics(delete(topics=[delete.DeleteTopicState(name=name)]), node.now_ms)


def set_config(node: LocalNode, kind: int, name: str, key: str, value: str | None) -> Any:
    change = alter.AlterableConfig(name=key, config_operation=int(value is None), value=value)
    resource = alter.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[change])
    return node.controller.incremental_alter_configs(alter(resources=[resource]), node.now_ms)


def set_quota(node: LocalNode, user: str | None, rate: float | None) -> Any:
    quota = m.AlterClientQuotasRequest
    op = quota.OpData(key="producer_byte_rate", value=rate or 0.0, remove=rate is None)
    entry = quota.EntryData(entity=[quota.EntityData(entity_type="user", entity_name=user)], ops=[op])
    return node.controller.alter_client_quotas(quota(entries=[entry]), node.now_ms)


def grow(node: LocalNode, name: str, count: int) -> Any:
    more = m.CreatePartitionsRequest
    topic = more.CreatePartitionsTopic(name=name, count=count, assignments=None)
    return node.controller.create_partitions(more(topics=[topic]), node.now_ms)


steps = st.one_of(
    st.tuples(st.just(create_topic), st.sampled_from(TOPICS), st.integers(-1, 3), st.sampled_from([None, "5", "-9"])),
    st.tuples(st.just(delete_topic), st.sampled_from(TOPICS)),
    st.tuples(st.just(grow), st.sampled_from(TOPICS), st.integers(0, 4)),
    st.tuples(
        st.just(set_config), st.just(2), st.sampled_from(TOPICS), st.just("segment.ms"), st.sampled_from([None, "7"])
    ),
    st.tuples(st.just(set_config), st.just(4), st.just(""), st.just("log.retention.ms"), st.sampled_from([None, "8"])),
    st.tuples(
        st.just(set_config), st.just(32), st.just("g"), st.just("share.isolation.level"), st.just("read_committed")
    ),
    st.tuples(st.just(set_quota), st.sampled_from([None, "u"]), st.sampled_from([None, 5.0, -1.0])),
    st.tuples(st.just(lambda node: node.controller.allocate_producer_ids(node.now_ms))),
    st.tuples(st.just(lambda node: node.controller.unregister_broker(1, node.now_ms))),
    st.tuples(st.just(lambda node: write_snapshot(node.log, node.now_ms))),
    st.tuples(st.just(lambda node: node.controller.tick(node.now_ms))),
    st.just(("stop",)),
    st.just(("crash",)),
)


def reloaded(files: MemoryFiles, node: LocalNode) -> MetadataImage:
    log = MetadataLog(
        files,
        "/data",
        read_identity(files, "/data"),
        node.config.metadata_log,
        controller_endpoints=node.config.controller_endpoints(),
        now_ms=node.now_ms,
    )
    log.abandon()
    return log.image


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(st.lists(steps, max_size=25))
def test_a_restart_loads_the_same_image(life: list[tuple[Any, ...]]) -> None:
    files = MemoryFiles()
    new_id = counted_ids()
    node = LocalNode(files, settings=SMALL, new_id=new_id)
    ids: set[int] = set()
    for action, *arguments in life:
        if action in ("stop", "crash"):
            previous = -1
            if action == "stop":
                previous = node.stop()
            else:
                node.log.abandon()
            before = node.image
            node = LocalNode(files, settings=SMALL, new_id=new_id, previous_epoch=previous)
            assert node.loaded == before
            assert node.log.epoch == before.epoch + 1
            assert all(one.leader == 1 for _, _, one in node.image.partitions())
        else:
            found = action(node, *arguments)
            if isinstance(found, range):
                assert ids.isdisjoint(found)
                ids.update(found)
    assert_consistent(node.image)
    node.log.abandon()
    assert reloaded(files, node) == node.image


def assert_consistent(image: MetadataImage) -> None:
    assert {topic.id: topic for topic in image.topics.values()} == image.topics_by_id
    for topic, number, one in image.partitions():
        assert set(topic.partitions) == set(range(len(topic.partitions))), topic
        assert set(one.isr) <= set(one.replicas), number
        assert not set(one.isr) & set(one.elr)
        assert len(one.directories) == len(one.replicas)
    for resource in image.configs:
        assert resource.type != 2 or resource.name in image.topics


@pytest.mark.long
def test_a_crash_loses_at_most_changes_without_a_response() -> None:
    """Every crash point of some changes, with what a disk may have kept of unsynced writes."""
    files = RecordingFiles(empty_directory().root)
    new_id = counted_ids()
    node = LocalNode(
        files, settings={**SMALL, "metadata.log.max.record.bytes.between.snapshots": "1000"}, new_id=new_id
    )
    answered: list[tuple[int, MetadataImage]] = [(len(files.trace), node.image)]

    def does(action: Callable[..., Any], *arguments: Any) -> None:
        action(node, *arguments)
        answered.append((len(files.trace), node.image))

    for number in range(4):
        does(create_topic, f"topic-{number}", 2, "77")
        does(set_config, 2, f"topic-{number}", "segment.ms", "12345")
        while node.controller.tick(node.now_ms):
            pass
    does(delete_topic, "topic-1")
    does(set_quota, "u", 3.0)
    assert node.log.snapshots.latest.end_offset > 0  # type: ignore[union-attr]
    first = answered[0][0]
    logging.getLogger("tailrace.log").setLevel(logging.CRITICAL)
    try:
        tried = _explore(files, node, answered, first)
    finally:
        logging.getLogger("tailrace.log").setLevel(logging.NOTSET)
    assert tried > 200


def empty_directory() -> MemoryFiles:
    files = MemoryFiles()
    files.make_directory("/data")
    return files


@pytest.mark.long
def test_a_cluster_can_be_started_after_a_crash_during_its_first_start() -> None:
    files = RecordingFiles(empty_directory().root)
    LocalNode(files)
    rng = Random(4)
    seen = set()
    for point in crash_points(files):
        for state in point.states(rng):
            key = hashlib.sha1(repr(sorted(state.tree.items())).encode()).digest()
            if key in seen:
                continue
            seen.add(key)
            tree = memory_files(state.tree)
            tree.make_directory("/data")
            try:
                node = LocalNode(tree, new_id=counted_ids(5000))
                create_topic(node, "t")
            except Exception as error:
                raise AssertionError(f"{error!r}\n{describe(state, files)}") from error
            assert node.image.is_active(1)
            assert node.image.metadata_version == 30
    assert len(seen) > 100


def _explore(files: RecordingFiles, node: LocalNode, answered: list[tuple[int, MetadataImage]], first: int) -> int:
    rng = Random(3)
    seen: dict[bytes, MetadataImage] = {}
    for point in crash_points(files, first=first):
        allowed = [image for place, image in answered if place <= point.index][-1:]
        allowed += [image for place, image in answered if place > point.index][:1]
        for state in point.states(rng):
            key = hashlib.sha1(repr(sorted(state.tree.items())).encode()).digest()
            if key not in seen:
                try:
                    seen[key] = reloaded(memory_files(state.tree), node)
                except Exception as error:
                    raise AssertionError(f"{error!r}\n{describe(state, files)}") from error
            assert seen[key] in allowed, describe(state, files)
    return len(seen)


# What a life is made of


def test_a_clean_stop_keeps_the_replicas_eligible() -> None:
    files = MemoryFiles()
    node = LocalNode(files)
    create_topic(node, "t")
    epoch = node.stop()
    stopped = node.image.topics["t"].partitions[0]
    assert (stopped.leader, stopped.isr, stopped.elr, stopped.last_known_elr) == (-1, (), (1,), (1,))
    assert node.image.brokers[1].fenced
    started = LocalNode(files, previous_epoch=epoch).image.topics["t"].partitions[0]
    assert (started.leader, started.isr, started.elr, started.last_known_elr) == (1, (1,), (), ())
    assert (started.leader_epoch, started.partition_epoch, started.leader_recovery_state) == (2, 2, 0)


def test_after_a_crash_the_only_replica_leads_and_is_marked_as_recovering() -> None:
    files = MemoryFiles()
    node = LocalNode(files)
    create_topic(node, "t")
    node.log.abandon()
    one = LocalNode(files).image.topics["t"].partitions[0]
    assert (one.leader, one.isr, one.leader_epoch, one.leader_recovery_state) == (1, (1,), 2, 1)


def test_a_broker_epoch_is_the_offset_of_its_registration() -> None:
    node = LocalNode()
    assert node.broker_epoch == node.image.brokers[1].epoch == 13
    assert node.image.brokers[1].endpoints["PLAINTEXT"].port == 9092
    assert node.image.controllers[1].endpoints["CONTROLLER"].port == 9093
    assert node.image.is_active(1)


def test_the_listener_is_called_before_the_response() -> None:
    node = LocalNode()
    node.changes.clear()
    answer = create_topic(node, "t", 2)
    assert answer.topics[0].error_code == 0
    (change,) = node.changes
    assert change.image is node.image
    assert [str(one.partition) for one in change.delta.local_changes(1).leaders] == ["t-0", "t-1"]
    create_topic(node, "t")
    assert len(node.changes) == 1, "nothing changed"


def test_blocks_of_producer_ids_continue_after_a_restart() -> None:
    files = MemoryFiles()
    node = LocalNode(files)
    assert node.controller.allocate_producer_ids(1) == range(1000)
    assert node.controller.allocate_producer_ids(1) == range(1000, 2000)
    node.log.abandon()
    assert LocalNode(files).controller.allocate_producer_ids(1) == range(2000, 3000)


def test_a_running_broker_registers_again_after_it_was_unregistered() -> None:
    node = LocalNode()
    create_topic(node, "t")
    epoch = node.image.brokers[1].epoch
    node.controller.unregister_broker(1, node.now_ms)
    assert node.image.brokers[1].epoch > epoch
    assert node.image.topics["t"].partitions[0].leader == 1
    with pytest.raises(KafkaError) as refusal:
        node.controller.unregister_broker(2, node.now_ms)
    assert refusal.value.code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_describe_quorum_lists_the_only_voter() -> None:
    node = LocalNode()
    describe_quorum = m.DescribeQuorumRequest
    topic = describe_quorum.TopicData(
        topic_name="__cluster_metadata", partitions=[describe_quorum.PartitionData(partition_index=0)]
    )
    answer: Any = node.ask(describe_quorum(topics=[topic]), 2)
    partition = answer.topics[0].partitions[0]
    assert (partition.leader_id, partition.leader_epoch, partition.high_watermark) == (1, 1, node.log.next_offset)
    assert [(one.replica_id, one.log_end_offset) for one in partition.current_voters] == [(1, node.log.next_offset)]
    assert answer.nodes[0].listeners[0].port == 9093
    for version in (0, 1):
        node.ask(describe_quorum(topics=[topic]), version)
    other: Any = node.ask(describe_quorum(topics=[describe_quorum.TopicData(topic_name="t")]), 2)
    assert other.topics[0].partitions == []


def test_log_directories_fail_and_replicas_move_between_them() -> None:
    node = LocalNode()
    create_topic(node, "t")
    topic = node.image.topics["t"]
    (directory,) = node.image.brokers[1].directories
    codes = node.controller.assign_directories(
        [(b"new" + bytes(13), topic.id, 0), (directory, topic.id, 9), (directory, b"x" * 16, 0)], node.now_ms
    )
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID]
    # The directory is not online, so nobody can lead the partition.
    assert node.image.topics["t"].partitions[0].leader == -1
    create_topic(node, "u")
    node.controller.directories_online([], node.now_ms)
    assert node.image.topics["u"].partitions[0].leader == -1


@pytest.mark.parametrize("level", [7, 8, 13, 15, 17, 22, 23, 29, 30])
def test_records_are_written_in_the_versions_of_an_older_clusters_metadata_version(level: int) -> None:
    """A directory that an older Kafka formatted, or that was never upgraded."""
    files = MemoryFiles()
    config = BrokerConfig.of(log_dirs=["/data"], port=9092)
    prepare_directories(
        files,
        ["/data"],
        node_id=1,
        cluster_id=None,
        controller_endpoints=config.controller_endpoints(),
        new_id=counted_ids(9000),
        levels={"metadata.version": level},
        now_ms=NOW_MS,
    )
    node = LocalNode(files)
    assert node.image.metadata_version == level
    create_topic(node, "t", 2, "5")
    epoch = node.stop()
    node = LocalNode(files, previous_epoch=epoch)
    assert [one.leader for one in node.image.topics["t"].partitions.values()] == [1, 1]
    write_snapshot(node.log, node.now_ms)
    node.log.abandon()
    assert reloaded(files, node) == node.image
    seen = {
        (frame.name, frame.version)
        for batch in split_batches(files.read("/data/__cluster_metadata-0/00000000000000000000.log"))
        if not batch.is_control
        for frame in (decode_frame(record.value or b"") for record in iter_records(batch))
    }
    assert ("PartitionRecord", 2 if level >= 23 else 1 if level >= 17 else 0) in seen
    assert ("RegisterBrokerRecord", 4 if level >= 30 else 3 if level >= 17 else 2 if level >= 8 else 1) in seen
    assert (("RegisterControllerRecord", 0) in seen) == (level >= 15)
    assert (("BeginTransactionRecord", 0) in seen) == (level >= 13)
