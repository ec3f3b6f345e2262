"""MetadataLog: epochs, commits, snapshots, what it takes over and what it refuses."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from tailrace.log.disk.checkpoints import CorruptCheckpoint, DirectoryIdentity, write_clean_shutdown
from tailrace.metadata.image.features import record_versions
from tailrace.metadata.image.image import MetadataImage
from tailrace.metadata.image.loader import QuorumFacts
from tailrace.metadata.image.registrations import Endpoint, InconsistentMetadata, fresh_id
from tailrace.metadata.quorum.quorum_state import QuorumState
from tailrace.metadata.storage.metadata_log import MetadataLog, MetadataLogFailed, NotTheOnlyVoter
from tailrace.metadata.storage.metadata_log_settings import MetadataLogSettings
from tailrace.metadata.storage.metadata_snapshot import (
    SnapshotId,
    UnreadableSnapshot,
    snapshot_batches,
    write_snapshot_file,
)
from tailrace.metadata.storage.record_framing import frames_of
from tailrace.metadata.storage.storage_format import (
    WrongDirectory,
    bootstrap_records,
    format_directory,
    is_formatted,
    prepare_directories,
    read_identity,
)
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicId
from tailrace.protocol import messages as m
from tailrace.protocol.message import Message
from tailrace.records.batch import CorruptBatch, split_batches
from tailrace.records.control_records import Voter
from tests.support.batches import batch
from tests.support.controller_twin import counted_ids
from tests.support.faulty_files import FaultyFiles
from tests.support.memory_files import MemoryFiles
from tests.support.metadata_snapshots import write_snapshot

ENDPOINTS = (Endpoint("CONTROLLER", "127.0.0.1", 9093),)


def text_of(raw: bytes) -> str:
    return str(TopicId(UUID(bytes=raw)))


IDENTITY = DirectoryIdentity(text_of(b"some cluster id "), 1, text_of(b"some directory id"[:16]))
FOLDER = "/data/__cluster_metadata-0"


def formatted() -> MemoryFiles:
    files = MemoryFiles()
    format_directory(files, "/data", IDENTITY, controller_endpoints=ENDPOINTS, now_ms=5)
    return files


def open_log(files: MemoryFiles, now_ms: int = 10, **settings: int | None) -> MetadataLog:
    return MetadataLog(
        files,
        "/data",
        read_identity(files, "/data"),
        MetadataLogSettings(**settings),  # type: ignore[arg-type]
        controller_endpoints=ENDPOINTS,
        now_ms=now_ms,
    )


def begun(files: MemoryFiles, **settings: int | None) -> MetadataLog:
    log = open_log(files, **settings)
    log.begin_epoch(11)
    if log.is_empty:
        log.commit(bootstrap_records(files, "/data"), 11, transaction="Bootstrap records")
    return log


def topic(number: int, size: int = 10) -> list[Message]:
    topic_id = number.to_bytes(16, "big")
    return [
        m.TopicRecord(name=f"topic-{number}", topic_id=topic_id),
        m.PartitionRecord(
            partition_id=0, topic_id=topic_id, replicas=[1], isr=[1], leader=1, leader_epoch=0, partition_epoch=0
        ),
        m.ConfigRecord(resource_type=2, resource_name=f"topic-{number}", name="x", value="v" * size),
    ]


def names(files: MemoryFiles) -> list[str]:
    return sorted(entry.name for entry in files.entries(FOLDER))


def test_a_new_log_begins_with_its_leader_and_the_features() -> None:
    files = formatted()
    assert is_formatted(files, "/data")
    log = open_log(files)
    assert log.is_empty
    assert log.image == MetadataImage(cluster_id=IDENTITY.cluster_id)
    log = begun(files)
    assert log.epoch == 1
    assert log.image.metadata_version == 30
    assert log.image.offset == log.next_offset - 1 == 10
    assert files.read(f"{FOLDER}/partition.metadata") == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    assert files.read(f"{FOLDER}/leader-epoch-checkpoint") == b"0\n1\n1 0\n"
    assert json.loads(files.read(f"{FOLDER}/quorum-state")) == {
        "leaderId": 1,
        "leaderEpoch": 1,
        "votedId": -1,
        "votedDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA",
        "data_version": 1,
    }


def test_every_start_is_a_new_epoch_and_keeps_what_was_committed() -> None:
    files = formatted()
    log = begun(files)
    change = log.commit(topic(1), 20)
    assert dict(change.delta.topics.created) == {"topic-1": (1).to_bytes(16, "big")}
    assert change.image is log.image
    before = log.image
    log.abandon()
    for epoch in (2, 3, 4):
        log = open_log(files)
        assert log.image == before
        log.begin_epoch(30)
        log.flush(30)
        assert log.epoch == epoch
        before = log.image
        log.close(31)
    assert [entry.epoch for entry in log.log.epochs.entries] == [1, 2, 3, 4]


def test_an_epoch_is_new_even_if_nothing_of_the_last_one_reached_the_log() -> None:
    files = formatted()
    log = begun(files)
    QuorumState(1, 17).write(files, f"{FOLDER}/quorum-state", 1)
    log.abandon()
    assert begun(files).epoch == 18


def test_records_that_contradict_the_image_are_never_written() -> None:
    files = formatted()
    log = begun(files)
    log.commit(topic(1), 20)
    end = log.next_offset
    with pytest.raises(InconsistentMetadata):
        log.commit(topic(1), 21)
    assert log.next_offset == end
    log.commit(topic(2), 22)


@pytest.mark.long
def test_very_many_records_are_one_transaction() -> None:
    files = formatted()
    log = begun(files)
    start = log.next_offset
    log.commit([record for number in range(1, 5001) for record in topic(number)], 20)
    assert log.next_offset == start + 15_000 + 2
    before = log.image
    log.abandon()
    log = open_log(files)
    assert log.image == before
    assert len(log.image.topics) == 5000
    begun(files).commit([record for n in range(6001, 11001) for record in topic(n)], 20, atomic=False)
    assert len(open_log(files).image.topics) == 10_000


def test_a_transaction_that_a_crash_left_open_is_aborted() -> None:
    files = formatted()
    log = begun(files)
    log.commit(topic(1), 20)
    before = log.image
    versions = log.image.record_versions
    log._append_frames(list(frames_of([m.BeginTransactionRecord(name=None), *topic(2)], versions)), versions, 21)
    log.abandon()
    log = open_log(files)
    assert log.ends_in_transaction
    assert log.image == before
    log.begin_epoch(30)
    log.commit(topic(3), 31)
    log.abandon()
    assert set(open_log(files).image.topics) == {"topic-1", "topic-3"}


def test_a_failed_log_refuses_every_further_commit() -> None:
    files: Any = FaultyFiles(formatted())
    log = begun(files)
    log.commit(topic(1), 20)
    before = log.image
    files.fail("sync", errno.EIO, path=".log", times=1)
    with pytest.raises(MetadataLogFailed, match=r"00000000000000000000\.log"):
        log.commit(topic(2), 21)
    assert log.image is before
    with pytest.raises(KafkaError) as refusal:
        log.commit(topic(3), 22)
    assert refusal.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    log.close(23)


# Snapshots


def test_a_snapshot_is_due_when_the_log_has_grown() -> None:
    files = formatted()
    log = begun(files, snapshot_after_bytes=3000)
    assert not log.tick(12)
    assert log.next_deadline_ms() == 10 + 3_600_000
    log.commit(topic(1, 3000), 20)
    assert log.next_deadline_ms() == 0
    assert log.tick(21)
    while log.tick(21):
        pass
    snapshot = SnapshotId(log.next_offset, 1)
    assert snapshot.file_name in names(files)
    assert log.snapshots.latest == snapshot
    before = log.image
    log.commit(topic(2), 22)
    log.abandon()
    files.remove(f"{FOLDER}/00000000000000000000-0000000000.checkpoint")
    again = open_log(files)
    assert set(again.image.topics) == {"topic-1", "topic-2"}
    assert again.quorum.voters_offset == before.offset
    assert again.image.topics["topic-1"] == before.topics["topic-1"]


def test_a_snapshot_is_due_when_the_log_has_grown_by_more_than_the_metadata() -> None:
    """A restart replays the log after the latest snapshot, so its length is bounded by the size of the metadata."""
    files, megabyte = formatted(), 1 << 20
    log = begun(files)
    resources = iter(range(1_000_000))

    def grown_by(*, is_new: bool) -> int:
        """Change 30 KB at a time until a snapshot is due, either new configs or always the same one."""
        before = log.log.size
        while log.next_deadline_ms() != 0:
            name = f"topic-{next(resources) if is_new else 0}"
            log.commit([m.ConfigRecord(resource_type=2, resource_name=name, name="x", value="v" * 30_000)], 21)
        return log.log.size - before

    assert 2 * megabyte - 10_000 < grown_by(is_new=True) < 2 * megabyte + 40_000
    while log.tick(22):
        pass
    latest = log.snapshots.latest
    assert latest is not None
    size = files.size(f"{FOLDER}/{latest.file_name}")
    assert 2 * size <= grown_by(is_new=False) < 2 * size + 40_000
    log.abandon()
    assert open_log(files).next_deadline_ms() == 0  # also after a restart


def test_a_snapshot_is_due_when_an_hour_has_passed_and_something_is_new() -> None:
    files = formatted()
    log = begun(files)
    log.flush(11)
    assert not log.tick(10 + 3_599_999)
    assert log.tick(10 + 3_600_000)
    while log.tick(10 + 3_600_000):
        pass
    assert log.snapshots.latest == SnapshotId(log.next_offset, 1)
    assert not log.tick(10**12), "nothing is new since"


def test_the_image_is_the_same_from_a_snapshot_and_from_the_log() -> None:
    files = formatted()
    log = begun(files)
    user = [m.ClientQuotaRecord.EntityData(entity_type="user", entity_name="u")]
    log.commit(
        [
            *topic(1),
            m.RegisterBrokerRecord(broker_id=1, broker_epoch=3, incarnation_id=b"i" * 16, log_dirs=[b"d" * 16]),
            m.RegisterControllerRecord(controller_id=1, incarnation_id=b"c" * 16),
            m.PartitionChangeRecord(
                topic_id=(1).to_bytes(16, "big"), partition_id=0, isr=[], leader=-1, eligible_leader_replicas=[1]
            ),
            m.ClientQuotaRecord(entity=user, key="producer_byte_rate", value=2.5),
            m.ProducerIdsRecord(broker_id=1, broker_epoch=3, next_producer_id=3000),
            m.AccessControlEntryRecord(id=b"a" * 16, resource_name="t"),
            m.UserScramCredentialRecord(name="u", mechanism=2, salt=b"s", stored_key=b"k", server_key=b"e"),
            m.DelegationTokenRecord(token_id="t", owner="User:x", requester="User:x"),
        ],
        20,
    )
    before = log.image
    write_snapshot(log, 21)
    log.abandon()
    from_snapshot = open_log(files)
    assert from_snapshot.image == before
    files.remove(f"{FOLDER}/{SnapshotId(before.offset + 1, 1).file_name}")
    assert open_log(files).image == before


def test_old_snapshots_and_segments_above_the_retention_size_are_removed() -> None:
    files = formatted()
    log = begun(files, retention_bytes=6000)
    for number in range(1, 9):
        log.commit(topic(number, 1000), 20 + number)
        write_snapshot(log, 20 + number)
    kept = [name for name in names(files) if name.endswith((".log", ".checkpoint"))]
    assert len([name for name in kept if name.endswith(".checkpoint")]) == 1, "a snapshot alone is that large"
    assert log.log.log_start_offset == log.snapshots.latest.end_offset  # type: ignore[union-attr]
    before = log.image
    log.tick(29 + 60_000)
    assert not [name for name in names(files) if name.endswith(".deleted")]
    log.close(29)
    again = open_log(files)
    assert again.image == before
    assert again.log.log_start_offset == again.snapshots.latest.end_offset  # type: ignore[union-attr]


def test_snapshots_above_the_retention_time_are_removed() -> None:
    files = formatted()
    log = begun(files, retention_ms=1000)
    for moment in (100, 600, 1200):
        log.commit(topic(moment), moment)
        write_snapshot(log, moment)
    assert [one.end_offset for one in log.snapshots.ids] == [17, 20], "the first is older than a second"
    assert log.log.log_start_offset == 17


def test_an_unfinished_snapshot_is_removed_at_the_start() -> None:
    files = formatted()
    log = begun(files)
    log.commit(topic(1), 20)
    log.snapshots.begin(log.image, log.quorum, 21)
    log.snapshots.step(log.log, log.image, log.quorum, 21)
    assert [name for name in names(files) if name.endswith(".part")]
    log.abandon()
    before = log.image
    again = open_log(files)
    assert again.image == before
    assert not [name for name in names(files) if name.endswith(".part")]


def test_a_snapshot_that_cannot_be_written_is_tried_again_later() -> None:
    files: Any = FaultyFiles(formatted())
    log = begun(files, snapshot_after_ms=1000)
    log.commit(topic(1), 20)
    files.fail("write", errno.ENOSPC, path=".part")
    assert log.tick(2000)
    assert not log.tick(2000)
    assert log.snapshots.latest == SnapshotId(0, 0)
    assert not [entry.name for entry in files.entries(FOLDER) if entry.name.endswith(".part")]
    files.heal()
    log.commit(topic(2), 2500)
    assert not log.tick(2999)
    while log.tick(3000):
        pass
    assert log.snapshots.latest == SnapshotId(log.next_offset, 1)


def test_a_snapshot_that_is_ahead_of_the_log_replaces_it() -> None:
    """The log of a node that received only a snapshot: from an export, or after it was far behind."""
    files = formatted()
    quorum = QuorumFacts(1, (Voter(1, TopicId.parse(IDENTITY.directory_id).value, (), 0, 1),))
    batches = snapshot_batches(
        [*bootstrap_records(files, "/data"), *topic(1)],
        record_versions(30),
        quorum=quorum,
        epoch=7,
        last_contained_timestamp=99,
        now_ms=1,
    )
    write_snapshot_file(files, f"{FOLDER}/{SnapshotId(1000, 7).file_name}", batches)
    log = open_log(files)
    assert (log.image.offset, log.image.epoch, log.image.timestamp_ms) == (999, 7, 99)
    assert log.log.log_start_offset == log.next_offset == 1000
    log.begin_epoch(20)
    assert log.epoch == 8
    log.commit(topic(2), 21)
    log.abandon()
    assert set(open_log(files).image.topics) == {"topic-1", "topic-2"}


def test_a_log_without_its_beginning_needs_a_snapshot() -> None:
    files = formatted()
    log = begun(files, retention_bytes=1)
    log.commit(topic(1), 20)
    write_snapshot(log, 21)
    log.close(22)
    latest = log.snapshots.latest
    assert latest is not None
    path = f"{FOLDER}/{latest.file_name}"
    data = files.read(path)
    files.write(path, data[:-10], sync=True)
    with pytest.raises(UnreadableSnapshot, match=r"\.checkpoint"):
        open_log(files)
    whole = b"".join(bytes(batch.view) for batch in list(split_batches(data))[:-1])
    files.write(path, whole, sync=True)
    with pytest.raises(UnreadableSnapshot, match="no footer"):
        open_log(files)
    files.remove(path)
    with pytest.raises(InconsistentMetadata, match="no snapshot"):
        open_log(files)


# Whose directory it is


def test_a_quorum_of_several_cannot_be_led_alone() -> None:
    files = formatted()
    voters = tuple(Voter(number, UUID(int=number), (), 0, 1) for number in (1, 2, 3))
    batches = snapshot_batches(
        [], record_versions(30), quorum=QuorumFacts(1, voters), epoch=0, last_contained_timestamp=0, now_ms=1
    )
    write_snapshot_file(files, f"{FOLDER}/{SnapshotId(0, 0).file_name}", batches)
    with pytest.raises(NotTheOnlyVoter, match=r"\[1, 2, 3\]"):
        open_log(files).begin_epoch(10)


def test_a_copy_of_the_voters_directory_is_refused() -> None:
    files = formatted()
    replace(IDENTITY, directory_id=text_of(b"another directory"[:16])).write(files, "/data/meta.properties")
    with pytest.raises(NotTheOnlyVoter, match="it is a copy"):
        open_log(files).begin_epoch(10)


def test_a_static_quorum_of_one_stays_one() -> None:
    """kraft.version 0: the voters are in nobody's log, only in the configuration and in quorum-state."""
    files = formatted()
    files.remove(f"{FOLDER}/{SnapshotId(0, 0).file_name}")
    log = begun(files)
    assert log.quorum.kraft_version == 0
    reported = json.loads(files.read(f"{FOLDER}/quorum-state"))
    assert reported["data_version"] == 0
    assert reported["currentVoters"] == [{"voterId": 1}]
    assert log.next_offset == 1 + 8
    log.abandon()
    files.write(
        f"{FOLDER}/quorum-state", json.dumps({**reported, "currentVoters": [{"voterId": 2}]}).encode(), sync=True
    )
    with pytest.raises(NotTheOnlyVoter):
        open_log(files).begin_epoch(10)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"leaderId": 1, "leaderEpoch": 1, "data_version": 2}'])
def test_a_quorum_state_that_cannot_be_read_is_an_error(text: str) -> None:
    files = formatted()
    files.write(f"{FOLDER}/quorum-state", text.encode(), sync=True)
    with pytest.raises(CorruptCheckpoint, match="quorum-state"):
        open_log(files).begin_epoch(10)


def test_new_log_directories_get_the_cluster_id_of_the_others() -> None:
    files = MemoryFiles()
    new_id = counted_ids()
    settings: dict[str, object] = {"node_id": 1, "controller_endpoints": ENDPOINTS, "new_id": new_id, "now_ms": 5}
    first = prepare_directories(files, ["/a"], cluster_id=None, **settings)  # type: ignore[arg-type]
    both = prepare_directories(files, ["/a", "/b"], cluster_id=None, **settings)  # type: ignore[arg-type]
    assert both[0] == first[0]
    assert both[1].cluster_id == first[0].cluster_id
    assert both[1].directory_id != first[0].directory_id
    assert files.exists("/a/__cluster_metadata-0")
    assert not files.exists("/b/__cluster_metadata-0")
    assert files.exists("/b/bootstrap.checkpoint")
    with pytest.raises(WrongDirectory, match="different clusters"):
        prepare_directories(files, ["/a"], cluster_id="other", **settings)  # type: ignore[arg-type]
    with pytest.raises(WrongDirectory, match="belongs to node 1"):
        prepare_directories(files, ["/a"], cluster_id=None, **{**settings, "node_id": 2})  # type: ignore[arg-type]


def test_reserved_ids_and_ids_with_a_leading_dash_are_not_allocated() -> None:
    candidates = iter([bytes(16), bytes(15) + b"c", b"\xf8" + bytes(15), b"\xfb" * 16, b"\xfc" + bytes(15)])
    found = fresh_id(lambda: next(candidates))
    assert found == b"\xfc" + bytes(15)
    assert text_of(b"\xf8" + bytes(15)).startswith("-")
    assert text_of(b"\xfb" * 16).startswith("-")


# Damage after a clean stop


def stopped(files: MemoryFiles, *, is_clean: bool) -> str:
    """Make a log with three topics and stop it. Return the path of its file."""
    log = begun(files)
    for number in range(1, 4):
        log.commit(topic(number), 20)
    log.close(30)
    if is_clean:
        write_clean_shutdown(files, "/data/.kafka_cleanshutdown", 1)
    return f"{FOLDER}/00000000000000000000.log"


def flip(files: MemoryFiles, path: str, position: int) -> None:
    file = files.open(path)
    (byte,) = file.read(position, 1)
    file.write(position, bytes([byte ^ 1]))


def test_a_flipped_bit_after_a_clean_stop_refuses_to_start_and_names_the_remedy() -> None:
    size = (plain := formatted()).size(stopped(plain, is_clean=True))
    refusals = 0
    for position in range(0, size, 7):
        files = formatted()
        path = stopped(files, is_clean=True)
        flip(files, path, position)
        before = files.read(path)
        refused = refusal_of(files)
        if refused is None:
            # A batch's leader epoch is not covered by its checksum.
            assert open_log(files).log.log_end_offset == open_log(plain).log.log_end_offset
            continue
        refusals += 1
        assert refused.startswith(f"{path} at position ")
        assert "remove /data/.kafka_cleanshutdown" in refused
        assert files.read(path) == before, "nothing is cut"
    assert refusals > 0.9 * size / 7


def refusal_of(files: MemoryFiles) -> str | None:
    try:
        open_log(files)
    except CorruptBatch as error:
        return str(error)
    return None


def test_without_the_marker_of_a_clean_stop_a_damaged_log_is_cut() -> None:
    files = formatted()
    path = stopped(files, is_clean=False)
    flip(files, path, files.size(path) - 3)
    log = open_log(files)
    assert len(log.image.topics) == 2


def test_a_torn_tail_after_a_crash_is_cut() -> None:
    files = formatted()
    path = stopped(files, is_clean=False)
    size = files.size(path)
    files.open(path).truncate(size - 5)
    assert len(open_log(files).image.topics) == 2


@pytest.mark.parametrize(("code", "is_failed"), [(errno.EMFILE, False), (errno.EIO, True)])
def test_maintenance_survives_a_lack_of_descriptors_but_not_a_failed_disk(code: int, is_failed: bool) -> None:
    files: Any = FaultyFiles(formatted())
    log = begun(files)
    log.commit(topic(1), 20)
    log.log.append_as_leader(batch(b"x"), leader_epoch=log.epoch, now_ms=20)
    log.log.roll(21)
    files.fail("open" if code == errno.EMFILE else "sync", code)
    assert not log.tick(22)
    assert (log.failure is not None) is is_failed
    files.heal()
    if not is_failed:
        log.commit(topic(2), 23)
        assert log.log.recovery_point == log.next_offset
