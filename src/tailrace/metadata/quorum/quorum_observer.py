"""QuorumObserver: follows the metadata log of a quorum in which this node has no vote.

    who leads? ──► Fetch from the leader ──► append, read what is committed ──► Fetch …
        ▲            │ diverging epoch: cut the log     │ snapshot id: FetchSnapshot until it is complete
        └────────────┴── another leader, no response, or unknown: ask the next controller ────────────────┘

Any controller can be asked: one that does not lead returns the leader and its address. Requests contain the epoch
known here, and a response with an older epoch is ignored. After a response that cannot be used, because it is damaged
or contradicts the log, the next fetch follows a second later. `leader` is the address of the active controller.
`on_leader` is called when it changes, `on_change` when the image changes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from tailrace.diagnostics.limited_log import LimitedLog
from tailrace.log.disk.file_names import CLUSTER_METADATA_TOPIC
from tailrace.log.segments.segment import SegmentOverflow
from tailrace.metadata.image.loader import Change
from tailrace.metadata.image.registrations import InconsistentMetadata
from tailrace.metadata.quorum.observed_log import ObservedLog
from tailrace.metadata.storage.metadata_snapshot import SnapshotId, UnreadableSnapshot
from tailrace.metadata.storage.storage_format import METADATA_TOPIC_ID
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import Offset, TopicId
from tailrace.model.log_fields import fields
from tailrace.model.shortage import is_shortage
from tailrace.protocol.codegen.field_versions import FETCH_REPLICA_STATE
from tailrace.protocol.errors import ProtocolError
from tailrace.protocol.messages import FetchRequest, FetchSnapshotRequest
from tailrace.records.batch import CorruptBatch
from tailrace.waiting.outbox import Failure, Outbox, Peer

CHANNEL: Final = "metadata"
_MAX_BYTES: Final = 8 * 1024 * 1024
_UNUSABLE_REST_MS: Final = 1_000  # after a response that cannot be used
_UNUSABLE: Final = (
    CorruptBatch,
    SegmentOverflow,
    KafkaError,
    ProtocolError,
    InconsistentMetadata,
    UnreadableSnapshot,
)
_STALE: Final = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER)

_log = logging.getLogger(__name__)


class ControllerAddress(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class ObserverSettings(NamedTuple):
    """Kafka's controller.quorum.* keys."""

    bootstrap: Sequence[ControllerAddress]
    listener: str  # listener of the controllers, whose address is used
    fetch_wait_ms: int = 500
    request_timeout_ms: int = 2_000
    retry_backoff_ms: int = 20


class QuorumObserver:
    def __init__(
        self,
        log: ObservedLog,
        outbox: Outbox,
        settings: ObserverSettings,
        *,
        on_change: Callable[[Change, int], None] = lambda change, now_ms: None,
        on_leader: Callable[[int], None] = lambda now_ms: None,
    ) -> None:
        self._log = log
        self._outbox = outbox
        self._settings = settings
        self._directory_id = TopicId.parse(log.identity.directory_id).value.bytes
        self._high_watermark: Offset = -1  # from the leader's latest response
        self._asked = 0  # how many controllers were asked since the leader was lost
        self._retry_ms: int | None = None
        self.leader: ControllerAddress | None = None
        self.last_fetch_ms = -1  # time of the leader's latest response
        self._on_change = on_change
        self._on_leader = on_leader
        self._limited_log = LimitedLog(_log)

    @property
    def is_current(self) -> bool:
        """True if the image has everything that is committed according to the leader."""
        return 0 <= self._high_watermark <= self._log.image.offset + 1

    def start(self, now_ms: int) -> None:
        self._fetch(now_ms)

    def tick(self, now_ms: int) -> None:
        if self._retry_ms is not None and now_ms >= self._retry_ms:
            self._fetch(now_ms)

    def next_deadline_ms(self) -> int | None:
        return self._retry_ms

    def candidates(self) -> list[ControllerAddress]:
        """Return the controllers that may know the leader: the configured ones, and the voters in the log."""
        found = dict.fromkeys(self._settings.bootstrap)
        for voter in self._log.quorum.voters:
            for one in voter.endpoints:
                if one.name == self._settings.listener:
                    found[ControllerAddress(one.host, one.port)] = None
        return list(found)

    # Requests

    def _fetch(self, now_ms: int) -> None:
        self._retry_ms = None
        address = self.leader
        if address is None:
            candidates = self.candidates()
            address = candidates[self._asked % len(candidates)]
            self._asked += 1
        receiving = self._log.receiving if self.leader is not None else None
        self._outbox.send(
            Peer(CHANNEL, *address, is_controller=True),
            self._fetch_request() if receiving is None else self._snapshot_request(*receiving),
            self._fetched if receiving is None else self._snapshot_fetched,
            self._failed,
            timeout_ms=self._settings.request_timeout_ms + self._settings.fetch_wait_ms,
            version_min=FETCH_REPLICA_STATE if receiving is None else 0,
        )

    def _fetch_request(self) -> FetchRequest:
        log = self._log
        partition = FetchRequest.FetchPartition(
            partition=0,
            current_leader_epoch=log.epoch,
            fetch_offset=log.end_offset,
            last_fetched_epoch=log.last_epoch,
            replica_directory_id=self._directory_id,
            high_watermark=self._high_watermark,
        )
        return FetchRequest(
            cluster_id=log.identity.cluster_id,
            replica_state=FetchRequest.ReplicaState(replica_id=log.identity.node_id),
            max_wait_ms=self._settings.fetch_wait_ms,
            max_bytes=_MAX_BYTES,
            topics=[
                FetchRequest.FetchTopic(
                    topic=CLUSTER_METADATA_TOPIC, topic_id=METADATA_TOPIC_ID.value.bytes, partitions=[partition]
                )
            ],
        )

    def _snapshot_request(self, wanted: SnapshotId, position: int) -> FetchSnapshotRequest:
        partition = FetchSnapshotRequest.PartitionSnapshot(
            partition=0,
            current_leader_epoch=self._log.epoch,
            snapshot_id=FetchSnapshotRequest.SnapshotId(end_offset=wanted.end_offset, epoch=wanted.epoch),
            position=position,
            replica_directory_id=self._directory_id,
        )
        topic = FetchSnapshotRequest.TopicSnapshot(name=CLUSTER_METADATA_TOPIC, partitions=[partition])
        return FetchSnapshotRequest(
            cluster_id=self._log.identity.cluster_id,
            replica_id=self._log.identity.node_id,
            max_bytes=_MAX_BYTES,
            topics=[topic],
        )

    # Responses

    def _fetched(self, response: Any, now_ms: int) -> None:
        answer = _only([one for topic in response.responses for one in topic.partitions])
        if response.error_code or answer is None:
            self._refused(response.error_code, now_ms)
            return
        if self._take_leader(answer, response.node_endpoints, now_ms):
            return
        if answer.error_code:
            self._refused(answer.error_code, now_ms)
            return
        self.last_fetch_ms = now_ms
        try:
            self._handle_partition(answer, now_ms)
        except OSError as error:
            self._not_written(error, now_ms)
            return
        except _UNUSABLE as error:
            self._unusable(error, now_ms)
            return
        self._fetch(now_ms)

    def _handle_partition(self, answer: Any, now_ms: int) -> None:
        log = self._log
        if answer.diverging_epoch.epoch >= 0:
            log.truncate(answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset, now_ms)
            return
        if answer.snapshot_id.epoch >= 0:
            wanted = SnapshotId(answer.snapshot_id.end_offset, answer.snapshot_id.epoch)
            if log.receive_snapshot(wanted):
                _log.info("the metadata log continues from snapshot %s of the leader", wanted)
            return
        if answer.records:
            log.append(answer.records, now_ms)
        if answer.high_watermark >= 0:
            self._high_watermark = answer.high_watermark
            self._publish(log.advance(answer.high_watermark, now_ms), now_ms)

    def _snapshot_fetched(self, response: Any, now_ms: int) -> None:
        answer = _only([one for topic in response.topics for one in topic.partitions])
        if response.error_code or answer is None:
            self._log.drop_partial()
            self._refused(response.error_code, now_ms)
            return
        if self._take_leader(answer, response.node_endpoints, now_ms):
            return
        receiving = self._log.receiving
        reported = SnapshotId(answer.snapshot_id.end_offset, answer.snapshot_id.epoch)
        is_empty = not answer.unaligned_records and answer.position < answer.size
        if answer.error_code or is_empty or receiving != (reported, answer.position):
            self._log.drop_partial()  # the leader may have deleted it: the next fetch names another
            self._refused(answer.error_code, now_ms)
            return
        self.last_fetch_ms = now_ms
        try:
            self._log.add_to_snapshot(answer.unaligned_records)
            if answer.position + len(answer.unaligned_records) >= answer.size:
                self._publish(self._log.install_snapshot(now_ms), now_ms)
        except OSError as error:
            self._log.drop_partial()
            self._not_written(error, now_ms)
            return
        except _UNUSABLE as error:
            self._unusable(error, now_ms)
            return
        self._fetch(now_ms)

    def _publish(self, change: Change | None, now_ms: int) -> None:
        if change is not None:
            self._on_change(change, now_ms)

    def _take_leader(self, answer: Any, endpoints: Sequence[Any], now_ms: int) -> bool:
        """Take the leader from a response. Return True if the response has no other content. The next request is then
        sent or scheduled."""
        current = answer.current_leader
        if current.leader_epoch < self._log.epoch or answer.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH:
            self._lose_leader(now_ms)
            return True
        is_news = current.leader_epoch > self._log.epoch or answer.error_code in _STALE
        if not is_news and self.leader is not None:
            return False
        try:
            self._log.note_leader(current.leader_id, current.leader_epoch)
        except OSError as error:
            self._not_written(error, now_ms)
            return True
        address = self._address_of(current.leader_id, endpoints) if current.leader_id >= 0 else None
        if address is None:
            self._lose_leader(now_ms)
            return True
        self._follow(address, now_ms)
        if answer.error_code:
            self._fetch(now_ms)
            return True
        return False

    def _address_of(self, leader_id: int, endpoints: Sequence[Any]) -> ControllerAddress | None:
        for one in endpoints:
            if one.node_id == leader_id:
                return ControllerAddress(one.host, one.port)
        for voter in self._log.quorum.voters:
            for endpoint in voter.endpoints:
                if voter.voter_id == leader_id and endpoint.name == self._settings.listener:
                    return ControllerAddress(endpoint.host, endpoint.port)
        return None

    def _follow(self, address: ControllerAddress, now_ms: int) -> None:
        if address == self.leader:
            return
        self.leader = address
        self._asked = 0
        leader = fields(controller=self._log.leader_id, address=str(address), epoch=self._log.epoch)
        _log.info("the metadata quorum has a leader", extra=leader)
        self._on_leader(now_ms)

    def _lose_leader(self, now_ms: int) -> None:
        self.leader = None
        self._retry_ms = now_ms + self._settings.retry_backoff_ms

    def _not_written(self, error: OSError, now_ms: int) -> None:
        """Fetch again later if descriptors or memory are short. Any other error stops the broker."""
        if is_shortage(error):
            _log.warning("the metadata log cannot be written now and is fetched again later: %s", error)
            self._lose_leader(now_ms)
        else:
            self._log.fail(error)

    def _unusable(self, error: Exception, now_ms: int) -> None:
        """Fetch again later, after a response that is damaged or contradicts the log."""
        message = "the metadata log cannot be continued with the response of a controller, and is fetched again"
        self._limited_log.write(logging.ERROR, "unusable", now_ms, message, controller=self.leader, error=error)
        self._lose_leader(now_ms)
        self._retry_ms = now_ms + _UNUSABLE_REST_MS

    def _refused(self, code: int, now_ms: int) -> None:
        _log.warning("a controller responded with %s to a fetch of the metadata log", ErrorCode(code).name)
        self._lose_leader(now_ms)

    def _failed(self, failure: Failure, now_ms: int) -> None:
        if self.leader is not None:
            _log.info(
                "fetching the metadata log from controller %d at %s failed: %s",
                self._log.leader_id,
                self.leader,
                failure.value,
            )
        self._lose_leader(now_ms)


def _only(partitions: Sequence[Any]) -> Any:
    """Return the one partition of a response about the metadata log, or None if there is not one."""
    return partitions[0] if len(partitions) == 1 else None
