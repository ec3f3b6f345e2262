"""A node hands its metadata over to controllers: all of it, to them alone, whenever the machine stops."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from tailrace.log.disk.checkpoints import write_clean_shutdown
from tailrace.log.disk.files import Files
from tailrace.metadata.image.image import MetadataImage
from tailrace.metadata.image.registrations import Endpoint
from tailrace.metadata.quorum.observed_log import ObservedLog
from tailrace.metadata.storage import migration as steps
from tailrace.metadata.storage.metadata_log import MetadataLog, NotTheOnlyVoter
from tailrace.metadata.storage.migration import CannotMigrate, NewController, read_node_metadata
from tailrace.metadata.storage.record_framing import frames_of
from tailrace.metadata.storage.storage_format import is_formatted, read_identity
from tailrace.protocol import messages as m
from tests.support.controller_listener import PlayedController
from tests.support.controller_twin import NOW_MS, LocalNode, counted_ids
from tests.support.crash_states import DROPPED, CrashPoint, CrashState, crash_points, describe
from tests.support.memory_files import MemoryFiles, memory_files
from tests.support.recording_files import RecordingFiles

OLD = "/data"
ONE = [NewController(3000, "c1", 9093, "/cluster/controller-3000/data")]
THREE = [NewController(3000 + n, f"c{n}", 9093, f"/cluster/controller-{3000 + n}/data") for n in range(3)]


def a_node(files: Files, *, is_clean: bool = True) -> MetadataImage:
    """Make a node and change its metadata. Return its last image."""
    node = LocalNode(files, OLD)
    create = m.CreateTopicsRequest
    config = create.CreatableTopicConfig(name="retention.ms", value="1234")
    topic = create.CreatableTopic(name="orders", num_partitions=2, replication_factor=1, configs=[config])
    node.controller.create_topics(create(topics=[topic]), NOW_MS)
    quota = m.AlterClientQuotasRequest
    entry = quota.EntryData(
        entity=[quota.EntityData(entity_type="user", entity_name="alice")],
        ops=[quota.OpData(key="producer_byte_rate", value=7.0, remove=False)],
    )
    node.controller.alter_client_quotas(quota(entries=[entry]), NOW_MS)
    node.controller.allocate_producer_ids(NOW_MS)
    node.log.commit(
        [m.AccessControlEntryRecord(id=bytes(range(16)), resource_type=2, resource_name="orders", host="*")], NOW_MS
    )
    if is_clean:
        epoch = node.controller.stop_broker(NOW_MS)
        node.controller.close(NOW_MS)
        write_clean_shutdown(files, f"{OLD}/.kafka_cleanshutdown", epoch)
    else:
        node.controller.abandon()
    return node.image


def migrate(files: Files, controllers: list[NewController], *, is_dynamic: bool = True) -> None:
    """Run the migration like the command, from its present state."""
    node = read_node_metadata(files, OLD, NOW_MS)
    if node.is_alone or not steps.is_committed(node, controllers):
        plan = steps.plan_migration(node, controllers, is_dynamic=is_dynamic, new_id=counted_ids(), now_ms=NOW_MS + 1)
        steps.check_targets(files, controllers)
        steps.prepare(files, plan, NOW_MS)
        steps.commit(files, plan, NOW_MS)
    steps.finish(files, node, controllers)


def can_lead(files: Files, path: str, host: str = "h", port: int = 9093) -> bool:
    """Return True if a node starts there as a standalone controller."""
    if not is_formatted(files, path):
        return False
    identity = read_identity(files, path)
    endpoint = Endpoint("CONTROLLER", host, port)
    log = MetadataLog(files, path, identity, controller_endpoints=(endpoint,), now_ms=NOW_MS)
    try:
        log.begin_epoch(NOW_MS)
    except NotTheOnlyVoter:
        return False
    return True


def handed_over(files: Files, path: str) -> MetadataImage:
    return ObservedLog(files, path, read_identity(files, path), now_ms=NOW_MS).image


def nowhere(image: MetadataImage) -> MetadataImage:
    """Return an image without its position in a log, and without the controllers."""
    return replace(image, offset=0, epoch=0, timestamp_ms=0, controllers={})


@pytest.mark.parametrize("is_dynamic", [True, False])
@pytest.mark.parametrize("controllers", [ONE, THREE], ids=["one", "three"])
def test_the_new_controllers_have_all_metadata_but_the_old_controller(
    controllers: list[NewController], is_dynamic: bool
) -> None:
    files = MemoryFiles()
    before = a_node(files)
    migrate(files, controllers, is_dynamic=is_dynamic)
    for path in [OLD, *(one.path for one in controllers)]:
        image = handed_over(files, path)
        assert nowhere(image) == nowhere(before)
        assert image.controllers == {}
        assert image.offset > before.offset
        assert image.epoch > before.epoch
        node = read_node_metadata(files, path, NOW_MS)
        assert node.voters == tuple(one.node_id for one in controllers)
        assert node.kraft_version == int(is_dynamic)
    cluster = read_identity(files, OLD).cluster_id
    assert [read_identity(files, one.path).node_id for one in controllers] == [one.node_id for one in controllers]
    assert {read_identity(files, one.path).cluster_id for one in controllers} == {cluster}
    assert not can_lead(files, OLD)


def extremes(point: CrashPoint) -> list[CrashState]:
    """Return the two extreme states of a crash: all pending changes are written, or none."""
    return [point.state({}), point.state({index: DROPPED for index, _ in point.pending})]


@pytest.mark.parametrize(
    ("is_dynamic", "is_thorough"),
    [
        (True, False),
        pytest.param(True, True, marks=pytest.mark.slow),
        pytest.param(False, True, marks=pytest.mark.slow),
    ],
)
def test_after_a_crash_at_any_step_there_is_at_most_one_controller_and_the_migration_can_be_resumed(
    is_dynamic: bool, is_thorough: bool
) -> None:
    files = MemoryFiles()
    before = a_node(files)
    recording = RecordingFiles(files.root)
    migrate(recording, ONE, is_dynamic=is_dynamic)
    assert can_lead(memory_files(recording.tree()), ONE[0].path)
    seen: set[bytes] = set()
    logging.getLogger("tailrace").setLevel(logging.CRITICAL)
    try:
        for point in crash_points(recording):
            for state in point.states(Random(3)) if is_thorough else extremes(point):
                key = hashlib.sha256(repr(sorted(state.tree.items())).encode()).digest()
                if key in seen:
                    continue
                seen.add(key)
                how = describe(state, recording)
                leaders = [path for path in (OLD, ONE[0].path) if can_lead(memory_files(dict(state.tree)), path)]
                assert len(leaders) <= 1, how
                again = memory_files(dict(state.tree))
                migrate(again, ONE, is_dynamic=is_dynamic)
                assert nowhere(handed_over(again, ONE[0].path)) == nowhere(before), how
                assert can_lead(again, ONE[0].path), how
                assert not can_lead(again, OLD), how
    finally:
        logging.getLogger("tailrace").setLevel(logging.NOTSET)
    assert len(seen) > (150 if is_thorough else 20)


def test_a_broker_that_crashed_is_fenced_and_leads_nothing() -> None:
    files = MemoryFiles()
    before = a_node(files, is_clean=False)
    assert not before.brokers[1].fenced
    node = read_node_metadata(files, OLD, NOW_MS)
    assert not node.was_clean
    migrate(files, ONE)
    image = handed_over(files, ONE[0].path)
    assert image.brokers[1].fenced
    assert {one.leader for _, _, one in image.partitions()} == {-1}
    assert [one.elr for _, _, one in image.partitions()] == [(1,), (1,)]


def test_a_metadata_transaction_without_an_end_is_not_handed_over() -> None:
    files = MemoryFiles()
    node = LocalNode(files, OLD)
    versions = node.log.image.record_versions
    for record in (m.BeginTransactionRecord(name="half"), m.TopicRecord(name="ghost", topic_id=bytes(range(16)))):
        node.log._append_frames(list(frames_of([record], versions)), versions, NOW_MS)
    end = node.log.next_offset
    node.log.flush(NOW_MS)
    node.controller.abandon()
    migrate(files, ONE)
    image = handed_over(files, ONE[0].path)
    assert "ghost" not in image.topics
    assert image.offset >= end


def test_a_migration_that_is_not_possible_is_refused() -> None:
    files = MemoryFiles()
    a_node(files)
    node = read_node_metadata(files, OLD, NOW_MS)

    def plan(*controllers: NewController, **more: Any) -> None:
        steps.plan_migration(node, controllers, new_id=counted_ids(), now_ms=NOW_MS, **more)

    with pytest.raises(CannotMigrate, match="node 1 is a broker"):
        plan(ONE[0]._replace(node_id=1))
    with pytest.raises(CannotMigrate, match="two controllers have the node id 3000"):
        plan(ONE[0], ONE[0]._replace(port=1))
    with pytest.raises(CannotMigrate, match="the same address"):
        plan(ONE[0], ONE[0]._replace(node_id=5))
    node.image = replace(node.image, features={"metadata.version": 20})
    with pytest.raises(CannotMigrate, match=r"3\.8-IV0.*at least 3\.9-IV0"):
        plan(*ONE, is_dynamic=True)
    with pytest.raises(CannotMigrate, match="no metadata log"):
        read_node_metadata(files, "/nothing", NOW_MS)
    migrate(files, ONE)
    with pytest.raises(CannotMigrate, match="voters 3000, not to a standalone node"):
        migrate(files, THREE)


def test_directories_of_other_nodes_are_not_changed() -> None:
    files = MemoryFiles()
    a_node(files)
    LocalNode(files, ONE[0].path).controller.close(NOW_MS)
    with pytest.raises(CannotMigrate, match="belongs to node 1 of cluster"):
        steps.check_targets(files, ONE)
    files.make_directory(f"{THREE[1].path}/photos")
    with pytest.raises(CannotMigrate, match="not empty: it contains photos"):
        steps.check_targets(files, THREE[1:])


def test_a_node_that_is_only_a_controller_hands_its_brokers_over() -> None:
    files = MemoryFiles()
    played = PlayedController(files=files)
    played.brokers(2)
    played.create_topic("orders", [[1, 2], [2, 1]], min_insync_replicas="2")
    before, path = played.image, played.node.services.config.metadata_log_dir
    played.node.close(NOW_MS)
    node = read_node_metadata(files, path, NOW_MS)
    assert node.is_only_controller
    with pytest.raises(CannotMigrate, match="node 3000 is the old controller"):
        steps.plan_migration(node, ONE, new_id=counted_ids(), now_ms=NOW_MS)
    others = [one._replace(node_id=one.node_id + 100) for one in THREE]
    plan = steps.plan_migration(node, others, new_id=counted_ids(), now_ms=NOW_MS)
    assert plan.other_brokers == [1, 2]
    assert nowhere(plan.image) == nowhere(before)
    assert {one.leader for _, _, one in plan.image.partitions()} == {1, 2}
    migrate(files, others)
    assert not can_lead(files, path)
