"""MetadataLoader: batches to images; transactions; what control records say."""

from __future__ import annotations

from uuid import UUID

import pytest

from tailrace.metadata.image.features import record_versions
from tailrace.metadata.image.loader import MetadataLoader
from tailrace.metadata.image.registrations import InconsistentMetadata
from tailrace.metadata.storage.record_framing import build_batch, build_control_batch, in_batches, version_of
from tailrace.protocol import messages as m
from tailrace.protocol.message import Message
from tailrace.records.batch import RecordBatch
from tailrace.records.control_records import KRaftVersion, KRaftVoters, LeaderChange, Voter

VERSIONS = record_versions(30)
BEGIN, END, ABORT = m.BeginTransactionRecord(name="x"), m.EndTransactionRecord(), m.AbortTransactionRecord(reason="y")


def level(value: int) -> Message:
    return m.FeatureLevelRecord(name="group.version", feature_level=value)


class Feeder:
    def __init__(self) -> None:
        self.loader = MetadataLoader()
        self.offset = 0

    def feed(self, *records: Message, epoch: int = 1) -> None:
        data = build_batch(
            records, VERSIONS, base_offset=self.offset, leader_epoch=epoch, timestamp_ms=self.offset + 100
        )
        self.offset += len(records)
        self.loader.feed(RecordBatch(data))


def test_each_take_returns_the_changes_since_the_one_before() -> None:
    feeder = Feeder()
    assert feeder.loader.take() is None
    feeder.feed(level(1), m.NoOpRecord())
    feeder.feed(m.FeatureLevelRecord(name="share.version", feature_level=1), epoch=2)
    first = feeder.loader.take()
    assert first is not None
    assert first.image.features == {"group.version": 1, "share.version": 1}
    assert (first.image.offset, first.image.epoch, first.image.timestamp_ms) == (2, 2, 102)
    feeder.feed(level(0))
    second = feeder.loader.take()
    assert second is not None
    assert second.delta.features == {"group.version": None}
    assert second.delta.image is first.image
    assert feeder.loader.take() is None


def test_a_transaction_takes_effect_when_it_ends() -> None:
    feeder = Feeder()
    feeder.feed(m.NoOpRecord(), BEGIN, level(1))
    assert feeder.loader.in_transaction
    assert feeder.loader.take() is None, "the image stays before the transaction's batch"
    feeder.feed(m.FeatureLevelRecord(name="share.version", feature_level=1))
    feeder.feed(END, m.FeatureLevelRecord(name="streams.version", feature_level=1))
    change = feeder.loader.take()
    assert change is not None
    assert set(change.image.features) == {"group.version", "share.version", "streams.version"}
    assert change.image.offset == 5


def test_an_aborted_transaction_leaves_nothing() -> None:
    feeder = Feeder()
    feeder.feed(BEGIN, level(1))
    feeder.feed(ABORT)
    change = feeder.loader.take()
    assert change is not None
    assert change.image.features == {}
    assert change.image.offset == 2


@pytest.mark.parametrize("records", [(END,), (ABORT,), (BEGIN, BEGIN), (BEGIN, END, END)])
def test_misplaced_transaction_records_are_refused(records: tuple[Message, ...]) -> None:
    with pytest.raises(InconsistentMetadata, match="transaction"):
        Feeder().feed(*records)


def test_control_batches_set_the_voters_and_advance_the_image_offset() -> None:
    loader = MetadataLoader()
    voter = Voter(1, UUID(int=5), (), 0, 1)
    values = [LeaderChange(0, 1, (1,), (1,)), KRaftVersion(0, 1), KRaftVoters(0, (voter,))]
    loader.feed(RecordBatch(build_control_batch(values, base_offset=7, leader_epoch=4, timestamp_ms=1)))
    assert (loader.quorum.kraft_version, loader.quorum.voters, loader.quorum.voters_offset) == (1, (voter,), 9)
    change = loader.take()
    assert change is not None
    assert (change.image.offset, change.image.epoch) == (9, 4)


def test_records_are_written_in_the_version_that_the_cluster_agreed_on() -> None:
    partition, register = m.PartitionRecord(), m.RegisterBrokerRecord()
    assert [version_of(partition, record_versions(one)) for one in (16, 17, 22, 23, 30)] == [0, 1, 1, 2, 2]
    assert [version_of(register, record_versions(one)) for one in (7, 8, 16, 17, 29, 30)] == [1, 2, 2, 3, 3, 4]
    change = m.BrokerRegistrationChangeRecord
    assert [
        version_of(one, VERSIONS)
        for one in (
            change(fenced=1),
            change(in_controlled_shutdown=1),
            change(log_dirs=[b"d" * 16]),
            change(cordoned_log_dirs=[]),
        )
    ] == [0, 1, 2, 3]


def test_frames_are_grouped_by_number_and_size() -> None:
    assert [len(group) for group in in_batches([b"x"] * 25_000, 10**9)] == [10_000, 10_000, 5_000]
    assert list(in_batches([b"aa", b"bb", b"cccccc", b"d"], 4)) == [[b"aa", b"bb"], [b"cccccc"], [b"d"]]
