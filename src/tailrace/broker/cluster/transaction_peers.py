"""TransactionPeers: requests to other brokers for transactions that span several brokers.

    WriteTxnMarkers       writes markers of this broker's coordinator to partitions that other brokers lead
    AddPartitionsToTxn    adds partitions led here to a transaction that another broker coordinates, or verifies that
                          they are part of it

A marker that could not be written is sent again, to the broker that leads the partition by then (`markers.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tailrace.coordinator.transactions.markers import Markers, TransactionEnd
from tailrace.coordinator.transactions.transaction_shard import ProducerIdAndEpoch
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import BrokerId, TopicPartition
from tailrace.protocol.codegen.field_versions import first_version_with
from tailrace.protocol.messages import AddPartitionsToTxnRequest, WriteTxnMarkersRequest
from tailrace.waiting.outbox import Failure, Outbox, Peer

CHANNEL: Final = "transactions"
_VERIFIES_FROM: Final = first_version_with("AddPartitionsToTxnRequest", "transactions")

Errors = dict[TopicPartition, ErrorCode]


def peer_of(image: MetadataImage, broker_id: BrokerId, listener: str, channel: str) -> Peer | None:
    """Return the address of a broker for other brokers, or None if it is not registered with that listener."""
    broker = image.brokers.get(broker_id)
    endpoint = None if broker is None else broker.endpoints.get(listener)
    return None if endpoint is None else Peer(channel, endpoint.host, endpoint.port)


class TransactionPeers:
    def __init__(
        self,
        outbox: Outbox,
        image: Callable[[], MetadataImage],
        *,
        listener: str,
        timeout_ms: int,
    ) -> None:
        self._outbox = outbox
        self._image = image
        self._listener = listener
        self._timeout_ms = timeout_ms

    # Markers

    def send_markers(self, markers: Markers, now_ms: int) -> None:
        """Send all markers that have to be written at other brokers."""
        for leader in list(markers.outgoing):
            taken = markers.take(leader)
            peer = peer_of(self._image(), leader, self._listener, CHANNEL)
            if peer is None:
                _report_results(markers, taken, {}, ErrorCode.NOT_LEADER_OR_FOLLOWER, now_ms)
            elif taken:
                self._send(peer, markers, taken)

    def _send(self, peer: Peer, markers: Markers, taken: Sequence[tuple[TransactionEnd, list[TopicPartition]]]) -> None:
        def answered(response: Any, now_ms: int) -> None:
            codes = {
                (marker.producer_id, TopicPartition(topic.name, one.partition_index)): ErrorCode(one.error_code)
                for marker in response.markers
                for topic in marker.topics
                for one in topic.partitions
            }
            _report_results(markers, taken, codes, ErrorCode.REQUEST_TIMED_OUT, now_ms)

        def failed(_: Failure, now_ms: int) -> None:
            _report_results(markers, taken, {}, ErrorCode.REQUEST_TIMED_OUT, now_ms)

        body = WriteTxnMarkersRequest(markers=[_marker(end, partitions) for end, partitions in taken])
        self._outbox.send(peer, body, answered, failed, timeout_ms=self._timeout_ms)

    # Partitions of transactions

    def ask_coordinator(
        self,
        coordinator: BrokerId,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Sequence[TopicPartition],
        answer: Callable[[Errors, int], None],
        now_ms: int,
        *,
        is_added: bool,
    ) -> None:
        """Add partitions to a transaction at its coordinator, or verify that they are part of it (not `is_added`)."""

        def all_of(code: ErrorCode, now_ms: int) -> None:
            answer(dict.fromkeys(partitions, code), now_ms)

        def answered(response: Any, now_ms: int) -> None:
            if response.error_code:
                code = ErrorCode(response.error_code)
                # This broker lacks the right to ask; the producer must not get an authorization error for it.
                refused = code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                all_of(ErrorCode.INVALID_TXN_STATE if refused else code, now_ms)
                return
            answer(
                {
                    TopicPartition(topic.name, one.partition_index): ErrorCode(one.partition_error_code)
                    for result in response.results_by_transaction
                    for topic in result.topic_results
                    for one in topic.results_by_partition
                },
                now_ms,
            )

        peer = peer_of(self._image(), coordinator, self._listener, CHANNEL)
        if peer is None:
            all_of(ErrorCode.COORDINATOR_NOT_AVAILABLE, now_ms)
            return
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        one = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            verify_only=not is_added,
            topics=[topic(name=name, partitions=found) for name, found in _by_topic(partitions).items()],
        )
        self._outbox.send(
            peer,
            AddPartitionsToTxnRequest(transactions=[one]),
            answered,
            lambda _, now_ms: all_of(ErrorCode.NETWORK_EXCEPTION, now_ms),
            timeout_ms=self._timeout_ms,
            version_min=_VERIFIES_FROM,
        )


def _report_results(
    markers: Markers,
    taken: Sequence[tuple[TransactionEnd, list[TopicPartition]]],
    codes: dict[tuple[int, TopicPartition], ErrorCode],
    otherwise: ErrorCode,
    now_ms: int,
) -> None:
    """Report the results of the markers that were sent to a broker."""
    for end, partitions in taken:
        for key in partitions:
            markers.result(end, key, codes.get((end.producer_id, key), otherwise), now_ms)


def _marker(end: TransactionEnd, partitions: Sequence[TopicPartition]) -> WriteTxnMarkersRequest.WritableTxnMarker:
    topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic
    return WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=end.producer_id,
        producer_epoch=end.producer_epoch,
        transaction_result=end.is_commit,
        topics=[topic(name=name, partition_indexes=found) for name, found in _by_topic(partitions).items()],
        coordinator_epoch=end.coordinator_epoch,
        transaction_version=end.transaction_version,
    )


def _by_topic(partitions: Sequence[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for key in partitions:
        found.setdefault(key.topic, []).append(key.partition)
    return found
