"""RemoteController: the controller quorum of a cluster, as one of its brokers sees it.

    quorum_observer.py     follows the metadata log; every new image goes to `listener(change, now_ms)`
    broker_lifecycle.py    registration and heartbeats, on a thread of their own
    controller_channel.py  requests to the active controller

    begin ──► (catch up; load the logs that the image names) ──► start_broker ──► … ──► prepare_stop ──► close

Requests on the broker's own behalf are retried until there is a response.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final

from tailrace.metadata.controller.controller_channel import ControllerChannel
from tailrace.metadata.image.image import MetadataImage
from tailrace.metadata.image.loader import Change
from tailrace.metadata.quorum.broker_lifecycle import FATAL, BrokerLifecycle, LifecycleState
from tailrace.metadata.quorum.observed_log import ObservedLog
from tailrace.metadata.quorum.quorum_observer import ObserverSettings, QuorumObserver
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.message import Message
from tailrace.protocol.messages import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
    EnvelopeRequest,
)
from tailrace.waiting.outbox import Answered, Failed, Failure, Outbox

FORWARDING: Final = "forwarding"
ALTER_PARTITION: Final = "alter-partition"
DIRECTORIES: Final = "directories"
ALLOCATE_IDS: Final = "producer-ids"
RETRY_MS: Final = 500
FAREWELL_MS_MAX: Final = 300_000
LINGER_MS: Final = 100  # time for clients and other brokers to learn that this broker leads nothing any more
ASSIGNMENTS_MAX: Final = 2_250  # in one request, as in Kafka's brokers

_log = logging.getLogger(__name__)

# (directory, topic id, partition)
Assignment = tuple[bytes, bytes, int]


class RemoteController:
    def __init__(
        self,
        log: ObservedLog,
        outbox: Outbox,
        settings: ObserverSettings,
        lifecycle: BrokerLifecycle,
        *,
        listener: Callable[[Change, int], None] = lambda change, now_ms: None,
        uses_controlled_shutdown: bool = True,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        """`uses_controlled_shutdown`: use a controlled shutdown (controlled.shutdown.enable). `on_end` stops the
        heartbeats."""
        self.log = log
        self.outbox = outbox
        self.node_id = log.identity.node_id
        self.lifecycle = lifecycle
        self._listener = listener
        self._uses_controlled_shutdown = uses_controlled_shutdown
        self._on_end = on_end
        self.channel = ControllerChannel(outbox, lambda: self.observer.leader)
        self.observer = QuorumObserver(
            log, outbox, settings, on_change=self._changed, on_leader=self.channel.leader_changed
        )
        self._ready: Callable[[], None] | None = None  # called when the controllers let the broker stop
        self._has_left = False  # the state LEFT was reached and not yet handled
        self._producer_ids: range | None = None
        self._is_allocating = False
        self._assignments: dict[tuple[bytes, int], bytes] = {}  # to report: (topic id, partition) → directory
        self._is_assigning = False
        self._cordoned: tuple[bytes, ...] = ()
        self._retries: list[tuple[int, Callable[[int], None]]] = []  # (due at, action)
        self._note_offset()

    @property
    def image(self) -> MetadataImage:
        return self.log.image

    @property
    def leader_id(self) -> int:
        return self.log.leader_id if self.observer.leader is not None else -1

    @property
    def broker_epoch(self) -> int:
        return self.lifecycle.epoch

    # Lifecycle

    def begin(self, now_ms: int) -> None:
        self.observer.start(now_ms)

    @property
    def has_caught_up(self) -> bool:
        """True if the image contains the registration of this broker. Raise KafkaError if the controller refuses it."""
        self._check_refusal()
        return self.lifecycle.has_caught_up

    @property
    def is_unfenced(self) -> bool:
        """True if the image has this broker as unfenced."""
        broker = self.image.brokers.get(self.node_id)
        return broker is not None and broker.epoch == self.lifecycle.epoch and not broker.fenced

    def not_ready_reason(self) -> str | None:
        """Return a reason if the image or the active controller has this broker as fenced."""
        if self.lifecycle.is_fenced or not self.is_unfenced:
            return "the controllers have fenced this broker"
        return None

    def _check_refusal(self) -> None:
        refusal = self.lifecycle.refusal
        if refusal is not None and refusal.code in FATAL and self.lifecycle.state is LifecycleState.REGISTERING:
            raise refusal

    def start_broker(self, now_ms: int) -> None:
        """Ask to be unfenced, now that the broker's logs are open."""
        if self.image.record_versions.has_cordoned_directories:
            self.lifecycle.report_cordoned(self._cordoned)
        self.lifecycle.report_ready()
        self._allocate(now_ms)

    def prepare_stop(self, now_ms: int, ready: Callable[[], None]) -> None:
        if not self._uses_controlled_shutdown:
            ready()
            return
        self._ready = ready
        self._retries.append((now_ms + FAREWELL_MS_MAX, self._stop_anyway))
        self.lifecycle.leave()
        self.lifecycle_changed()

    def lifecycle_changed(self) -> None:
        """Note, on the heartbeats' thread, that the lifecycle has changed its state."""
        self._has_left = self.lifecycle.state is LifecycleState.LEFT

    def _linger(self, now_ms: int) -> None:
        """Keep serving for LINGER_MS, so that clients learn the new leaders; then stop."""
        self._has_left = False
        self._retries.append((now_ms + LINGER_MS, self._call_ready))

    def _stop_anyway(self, now_ms: int) -> None:
        if self._ready is not None:
            _log.warning("the controllers have not confirmed the controlled shutdown in time; the broker stops anyway")
            self._call_ready(now_ms)

    def _call_ready(self, now_ms: int) -> None:
        if self._ready is not None:
            ready, self._ready = self._ready, None
            ready()

    def stop_broker(self, now_ms: int) -> int:
        return self.lifecycle.epoch

    def close(self, now_ms: int) -> None:
        self._on_end()
        self.log.close(now_ms)

    def abandon(self) -> None:
        self._on_end()
        self.log.abandon()

    def tick(self, now_ms: int) -> bool:
        self.observer.tick(now_ms)
        self.channel.tick(now_ms)
        if self._has_left:
            self._linger(now_ms)
        due = [what for when_ms, what in self._retries if when_ms <= now_ms]
        self._retries = [one for one in self._retries if one[0] > now_ms]
        for what in due:
            what(now_ms)
        return self.log.tick(now_ms)

    def next_deadline_ms(self) -> int | None:
        if self._has_left:
            return 0
        deadline_ms = self.log.next_deadline_ms()
        for other_ms in (self.observer.next_deadline_ms(), self.channel.next_deadline_ms()):
            if other_ms is not None and (deadline_ms is None or other_ms < deadline_ms):
                deadline_ms = other_ms
        for other_ms, _ in self._retries:
            if deadline_ms is None or other_ms < deadline_ms:
                deadline_ms = other_ms
        return deadline_ms

    # Metadata

    def _changed(self, change: Change, now_ms: int) -> None:
        self._listener(change, now_ms)
        self._note_offset()
        self._note_version(change)

    def _note_offset(self) -> None:
        self.lifecycle.report_metadata(self.image.offset)

    def _note_version(self, change: Change) -> None:
        """Report what a newer metadata.version added: cordoned directories, or a registration with directories."""
        versions = self.image.record_versions
        if not change.delta.features or not self.lifecycle.inputs.is_ready:
            return
        if versions.has_cordoned_directories:
            self.lifecycle.report_cordoned(self._cordoned)
        known = self.image.brokers.get(self.node_id)
        if versions.has_directories and known is not None and not known.directories:
            self.lifecycle.register_again()

    # Requests of the broker

    def ask(self, channel: str, body: Message, answered: Answered, failed: Failed, now_ms: int) -> None:
        """Send a request to the active controller, with a timeout of one minute."""
        self.channel.send(channel, body, answered, failed, now_ms=now_ms)

    def forward(
        self, request: bytes, principal: bytes, client_address: bytes, answered: Answered, failed: Failed, now_ms: int
    ) -> None:
        """Forward a client's unchanged request to the controller; `answered` gets the EnvelopeResponse."""
        envelope = EnvelopeRequest(
            request_data=request, request_principal=principal, client_host_address=client_address
        )
        self.ask(FORWARDING, envelope, answered, failed, now_ms)

    def alter_partition(
        self, topics: Sequence[AlterPartitionRequest.TopicData], answered: Answered, failed: Failed, now_ms: int
    ) -> None:
        """Propose in-sync replicas of partitions led here. Broker id and epoch are filled in.

        `answered` gets the AlterPartitionResponse, whose `error_code` is about the request as a whole
        (STALE_BROKER_EPOCH, …). `failed` is called if no controller has responded within a minute.
        """
        body = AlterPartitionRequest(broker_id=self.node_id, broker_epoch=self.broker_epoch, topics=list(topics))
        self.ask(ALTER_PARTITION, body, answered, failed, now_ms)

    # Producer ids

    def allocate_producer_ids(self, now_ms: int) -> range:
        block, self._producer_ids = self._producer_ids, None
        self._allocate(now_ms)
        if block is None:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                "the controller has not allocated producer ids to this broker yet; retry",
            )
        return block

    def _allocate(self, now_ms: int) -> None:
        """Request the next block when the one before is begun, so that it arrives in time."""
        if self._is_allocating or self._producer_ids is not None:
            return
        self._is_allocating = True

        def answered(response: Any, now_ms: int) -> None:
            if response.error_code:
                _log.warning("the controller refused to allocate producer ids: %s", ErrorCode(response.error_code).name)
                failed(Failure.LOST, now_ms)
                return
            self._is_allocating = False
            start = response.producer_id_start
            self._producer_ids = range(start, start + response.producer_id_len)

        def failed(_: Failure, now_ms: int) -> None:
            self._is_allocating = False
            self._retries.append((now_ms + RETRY_MS, self._allocate))

        body = AllocateProducerIdsRequest(broker_id=self.node_id, broker_epoch=self.broker_epoch)
        self.ask(ALLOCATE_IDS, body, answered, failed, now_ms)

    # Directories

    def directories_online(self, directories: Sequence[bytes], now_ms: int) -> None:
        self.lifecycle.report_offline(
            tuple(one for one in self.lifecycle.registration.directories if one not in directories)
        )

    def cordon(self, directories: Sequence[bytes]) -> None:
        self._cordoned = tuple(directories)
        if self.lifecycle.inputs.cordoned is not None:
            self.lifecycle.report_cordoned(self._cordoned)
            self.lifecycle.send_soon()

    def assign_directories(self, assignments: Sequence[Assignment], now_ms: int) -> None:
        for directory, topic_id, partition in assignments:
            self._assignments[topic_id, partition] = directory
        self._assign(now_ms)

    def _assign(self, now_ms: int) -> None:
        if self._is_assigning or not self._assignments:
            return
        self._is_assigning = True
        sent = dict(list(self._assignments.items())[:ASSIGNMENTS_MAX])
        body = AssignReplicasToDirsRequest(
            broker_id=self.node_id, broker_epoch=self.broker_epoch, directories=_by_directory(sent)
        )
        self.ask(DIRECTORIES, body, partial(self._assigned, sent), self._assignment_failed, now_ms)

    def _assigned(self, sent: dict[tuple[bytes, int], bytes], response: Any, now_ms: int) -> None:
        if response.error_code:
            _log.warning(
                "the controller refused the replicas' log directories: %s", ErrorCode(response.error_code).name
            )
            self._assignment_failed(Failure.LOST, now_ms)
            return
        self._is_assigning = False
        refused = {
            (topic.topic_id, one.partition_index)
            for directory in response.directories
            for topic in directory.topics
            for one in topic.partitions
            if one.error_code and one.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        }
        for key, directory in sent.items():
            if key not in refused and self._assignments.get(key) == directory:
                del self._assignments[key]
        if refused:
            self._retries.append((now_ms + RETRY_MS, self._assign))
        else:
            self._assign(now_ms)

    def _assignment_failed(self, _: Failure, now_ms: int) -> None:
        self._is_assigning = False
        self._retries.append((now_ms + RETRY_MS, self._assign))


def _by_directory(places: dict[tuple[bytes, int], bytes]) -> list[AssignReplicasToDirsRequest.DirectoryData]:
    """Group assignments by directory, topic and partitions, as the request needs them."""
    ordered = sorted((directory, topic_id, partition) for (topic_id, partition), directory in places.items())
    return [
        AssignReplicasToDirsRequest.DirectoryData(
            id=directory,
            topics=[
                AssignReplicasToDirsRequest.TopicData(
                    topic_id=topic_id,
                    partitions=[
                        AssignReplicasToDirsRequest.PartitionData(partition_index=partition)
                        for _, _, partition in group
                    ],
                )
                for topic_id, group in groupby(of_directory, key=lambda one: one[1])
            ],
        )
        for directory, of_directory in groupby(ordered, key=lambda one: one[0])
    ]
