"""RemoteMetadata: the segments that a cluster has copied to its remote store, from `__remote_log_metadata`.

The records of a partition are in one partition of that topic. It is read from its start once, and then from where the
last reading ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from tailrace.client.batches import FetchOptions, fetch
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.errors import UnknownTopic
from tailrace.client.offsets import earliest_offsets, latest_offsets
from tailrace.model.ids import Offset, TopicId, TopicPartition
from tailrace.protocol.errors import MalformedMessage, UnknownRecordType
from tailrace.protocol.internal_records.metadata_frames import decode_frame
from tailrace.protocol.messages import RemoteLogSegmentMetadataRecord, RemoteLogSegmentMetadataUpdateRecord
from tailrace.records.batch import RecordBatch
from tailrace.records.conversion import split_any
from tailrace.records.record import iter_records
from tailrace.spark.source.errors import UnknownLog, Unreadable
from tailrace.tiers.metadata.metadata_partition import metadata_partition
from tailrace.tiers.remote_segment import RemoteSegment, RemoteSegmentId, RemoteSegmentState

TOPIC: Final = "__remote_log_metadata"
_FETCH: Final = FetchOptions(max_wait_ms=500, partition_max_bytes=8 * 1024 * 1024)


class RemoteMetadata:
    def __init__(self) -> None:
        self._segments: dict[RemoteSegmentId, RemoteSegment] = {}
        self._positions: dict[TopicPartition, Offset] = {}
        self.topics: set[TopicId] = set()  # all that the records name, also deleted ones

    def read(self, cluster: ClusterClient, partitions: Iterable[tuple[TopicId, int]]) -> None:
        """Read the records about these partitions that were added since the last call."""
        try:
            count = len(cluster.topic(TOPIC).topic_partitions)
        except UnknownTopic:
            raise UnknownLog(
                f"the cluster has no topic {TOPIC}, so no topic is tiered: leave out remote.path"
            ) from None
        self._read(
            cluster, {TopicPartition(TOPIC, metadata_partition(topic, number, count)) for topic, number in partitions}
        )

    def is_there(self, cluster: ClusterClient) -> bool:
        """Return True if the cluster has a topic of remote metadata."""
        try:
            cluster.topic(TOPIC)
        except UnknownTopic:
            return False
        return True

    def read_all(self, cluster: ClusterClient) -> None:
        """Read the records about all partitions."""
        self._read(cluster, set(cluster.topic(TOPIC).topic_partitions))

    def _read(self, cluster: ClusterClient, wanted: set[TopicPartition]) -> None:
        new = wanted - self._positions.keys()
        self._positions.update(earliest_offsets(cluster, new) if new else {})
        ends = latest_offsets(cluster, wanted)
        budget = cluster.retry_budget()
        while waiting := {one: self._positions[one] for one in wanted if self._positions[one] < ends[one]}:
            moved = False
            for partition, fetched in fetch(cluster, waiting, _FETCH).items():
                for batch in split_any(fetched.records):
                    if not isinstance(batch, RecordBatch):
                        raise Unreadable(f"{TOPIC} has messages of an old format")
                    for record in iter_records(batch):
                        self._apply(record.value)
                position = fetched.next_position(self._positions[partition])
                moved = moved or position > self._positions[partition]
                self._positions[partition] = position
            if moved:
                budget = cluster.retry_budget()
            elif not budget.pause():
                raise Unreadable(f"{TOPIC} cannot be read from {waiting} on: the cluster returns no records")

    def finished(self, topic_id: TopicId, partition: int) -> Iterator[RemoteSegment]:
        """Yield the segments of a partition that can be read."""
        for segment in self._segments.values():
            one = segment.segment_id
            is_finished = segment.state is RemoteSegmentState.COPY_SEGMENT_FINISHED
            if is_finished and (one.topic_id, one.partition) == (topic_id, partition):
                yield segment

    def segments(self) -> Iterator[RemoteSegment]:
        """Yield the segments whose deletion has not finished."""
        yield from self._segments.values()

    def _apply(self, value: Any) -> None:
        if value is None:
            return
        try:
            found = decode_frame(value, "remote_log").message
        except UnknownRecordType:
            return  # of a newer release
        except MalformedMessage as error:
            raise Unreadable(f"a record of {TOPIC} cannot be decoded: {error}") from None
        if isinstance(found, RemoteLogSegmentMetadataRecord):
            segment = _segment(found)
            self._segments[segment.segment_id] = segment
            self.topics.add(segment.segment_id.topic_id)
        elif isinstance(found, RemoteLogSegmentMetadataUpdateRecord):
            key = _segment_id(found.remote_log_segment_id)
            self.topics.add(key.topic_id)
            state = RemoteSegmentState(found.remote_log_segment_state)
            if state is RemoteSegmentState.DELETE_SEGMENT_FINISHED:
                self._segments.pop(key, None)
            elif key in self._segments:
                self._segments[key] = replace(self._segments[key], state=state, custom_metadata=found.custom_metadata)


def _segment_id(found: Any) -> RemoteSegmentId:
    place = found.topic_id_partition
    return RemoteSegmentId(TopicId(UUID(bytes=place.id)), place.name, place.partition, UUID(bytes=found.id))


def _segment(found: RemoteLogSegmentMetadataRecord) -> RemoteSegment:
    return RemoteSegment(
        _segment_id(found.remote_log_segment_id),
        found.start_offset,
        found.end_offset,
        found.broker_id,
        found.max_timestamp_ms,
        found.event_timestamp_ms,
        tuple((one.leader_epoch, one.offset) for one in found.segment_leader_epochs),
        found.segment_size_in_bytes,
        found.custom_metadata,
        RemoteSegmentState(found.remote_log_segment_state),
        found.txn_index_empty,
    )
