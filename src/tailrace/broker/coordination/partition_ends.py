"""PartitionEnds: the high watermarks of partitions. Those led by other brokers are requested with ListOffsets."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, TypeAlias

from tailrace.broker.cluster.transaction_peers import peer_of
from tailrace.broker.requests.groups.merged_parts import MergedParts
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import BrokerId, TopicPartition
from tailrace.protocol.messages import ListOffsetsRequest
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.waiting.outbox import Outbox, Peer

CHANNEL: Final = "partition-ends"
_LATEST: Final = -1
_NO_REPLICA: Final = -1  # the replica id of a consumer

Ends: TypeAlias = dict[TopicPartition, "int | KafkaError"]


class PartitionEnds:
    def __init__(
        self,
        partitions: HostedPartitions,
        outbox: Outbox,
        image: Callable[[], MetadataImage],
        *,
        listener: str,
        node_id: BrokerId,
        timeout_ms: int,
    ) -> None:
        self._partitions = partitions
        self._outbox = outbox
        self._image = image
        self._listener = listener
        self._node_id = node_id
        self._timeout_ms = timeout_ms

    def ask(self, keys: Collection[TopicPartition], answer: Callable[[Ends, int], None], now_ms: int) -> None:
        by_leader: dict[BrokerId, list[TopicPartition]] = {}
        for key in keys:
            state = self._image().partition(key)
            by_leader.setdefault(-1 if state is None else state.leader, []).append(key)

        def done(parts: list[Ends], now_ms: int) -> None:
            answer({key: end for part in parts for key, end in part.items()}, now_ms)

        merged: MergedParts[Ends] = MergedParts(len(by_leader), done)
        for index, (leader, found) in enumerate(by_leader.items()):
            self._ask_leader(leader, found, merged.part(index), now_ms)
        merged.begin(now_ms)

    def _ask_leader(
        self, leader: BrokerId, keys: list[TopicPartition], take: Callable[[Ends, int], None], now_ms: int
    ) -> None:
        peer = None if leader < 0 else peer_of(self._image(), leader, self._listener, CHANNEL)
        if leader == self._node_id:
            take({key: self._end_here(key) for key in keys}, now_ms)
        elif peer is None:
            take(dict.fromkeys(keys, KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)), now_ms)
        else:
            self._send(peer, keys, take)

    def _end_here(self, key: TopicPartition) -> int | KafkaError:
        try:
            return self._partitions.find(key).log.high_watermark
        except KafkaError as error:
            return error

    def _send(self, peer: Peer, keys: list[TopicPartition], take: Callable[[Ends, int], None]) -> None:
        topics: dict[str, list[ListOffsetsRequest.ListOffsetsPartition]] = {}
        for key in keys:
            one = ListOffsetsRequest.ListOffsetsPartition(
                partition_index=key.partition, current_leader_epoch=-1, timestamp=_LATEST
            )
            topics.setdefault(key.topic, []).append(one)

        def answered(response: Any, now_ms: int) -> None:
            ends: Ends = dict.fromkeys(keys, KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            for topic in response.topics:
                for one in topic.partitions:
                    key = TopicPartition(topic.name, one.partition_index)
                    ends[key] = KafkaError(ErrorCode(one.error_code)) if one.error_code else one.offset
            take(ends, now_ms)

        self._outbox.send(
            peer,
            ListOffsetsRequest(
                replica_id=_NO_REPLICA,
                topics=[
                    ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=found) for name, found in topics.items()
                ],
            ),
            answered,
            lambda _, now_ms: take(dict.fromkeys(keys, KafkaError(ErrorCode.NETWORK_EXCEPTION)), now_ms),
            timeout_ms=self._timeout_ms,
            version_min=1,
        )
