"""Joining a cluster: the start of a broker whose controllers are other nodes.

    1  open the copy of the metadata log, to fetch from the quorum from its end on (`open_remote_controller`)
    2  register, and report the metadata offset until the controller considers the broker caught up (`catch_up`)
    3  load the partition logs (`storage/`)
    4  ask to be unfenced, and wait until the broker's own metadata has it as unfenced (`join_cluster`)

The process that opens the broker supplies the `Network`, which runs until a condition is true and returns the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from tailrace.broker.cluster.directory_assignments import DirectoryAssignments
from tailrace.broker.cluster.forwarding import Forwarding
from tailrace.broker.cluster.replication import Replication
from tailrace.broker.cluster.share_state_peers import ShareStatePeers
from tailrace.broker.cluster.transaction_peers import TransactionPeers
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.handling.round import Round
from tailrace.broker.replies import Replies
from tailrace.log.directories.log_directories import LogDirectories
from tailrace.log.disk import file_names
from tailrace.log.disk.checkpoints import DirectoryIdentity, read_clean_shutdown
from tailrace.log.disk.files import Files, join
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.metadata.controller.remote_controller import RemoteController
from tailrace.metadata.image.features import SUPPORTED
from tailrace.metadata.image.loader import Change
from tailrace.metadata.image.registrations import BrokerRegistration, Endpoint, endpoints_by_name, fresh_id
from tailrace.metadata.quorum.broker_lifecycle import BrokerLifecycle
from tailrace.metadata.quorum.observed_log import ObservedLog
from tailrace.metadata.quorum.quorum_observer import ControllerAddress, ObserverSettings
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.waiting.outbox import Outbox


class Network(Protocol):
    """The network of a broker whose server does not run yet."""

    def follow(self, controller: RemoteController) -> None:
        """Begin to send the requests in the broker's outbox."""

    def join(self) -> None:
        """Begin the broker's heartbeats."""

    def run_until(self, condition: Callable[[], bool], goal: str) -> int:
        """Send, receive and tick until the condition is true. Return the current time. `goal` describes the
        condition."""

    def call_soon(self, function: Callable[[], None]) -> bool:
        """Run a function on the broker's thread; called from any thread. Return False if there is no loop."""

    def stop(self) -> None:
        """End the heartbeats, because the broker stops or its start has failed."""


def observer_settings(config: BrokerConfig) -> ObserverSettings:
    return ObserverSettings(
        bootstrap=[ControllerAddress(host, port) for host, port in config.roles.controllers],
        listener=config.roles.controller_listener,
        request_timeout_ms=config.integer("controller.quorum.request.timeout.ms"),
        retry_backoff_ms=config.integer("controller.quorum.retry.backoff.ms"),
    )


def open_remote_controller(
    files: Files,
    config: BrokerConfig,
    identity: DirectoryIdentity,
    *,
    outbox: Outbox,
    endpoints: Sequence[Endpoint],
    directories: Mapping[str, bytes],
    new_id: Callable[[], bytes],
    network: Network,
    listener: Callable[[Change, int], None],
    now_ms: int,
) -> RemoteController:
    """Open the copy of the metadata log, without sending a request. `directories` are the directory ids by path."""
    log = ObservedLog(files, config.metadata_log_dir, identity, config.metadata_log, now_ms=now_ms)
    lifecycle = BrokerLifecycle(
        BrokerRegistration(
            id=config.node_id,
            epoch=-1,
            incarnation_id=fresh_id(new_id),
            endpoints=endpoints_by_name(endpoints),
            features=SUPPORTED,
            rack=config.rack,
            directories=tuple(directories.values()),
        ),
        identity.cluster_id,
        previous_epoch=_previous_epoch(files, directories),
        heartbeat_interval_ms=config.integer("broker.heartbeat.interval.ms"),
        state_changed=lambda: network.call_soon(controller.lifecycle_changed),
    )
    controller = RemoteController(
        log,
        outbox,
        observer_settings(config),
        lifecycle,
        listener=listener,
        uses_controlled_shutdown=config.flag("controlled.shutdown.enable"),
        on_end=network.stop,
    )
    return controller


def catch_up(controller: RemoteController, network: Network, now_ms: int) -> int:
    """Follow the quorum until the metadata is current. Return the current time."""
    controller.begin(now_ms)
    network.follow(controller)
    if controller.lifecycle.previous_epoch >= 0:
        network.run_until(lambda: controller.observer.is_current, "a controller sends the current metadata")
        controller.lifecycle.resume_registration(controller.image.brokers.get(controller.node_id))
    network.join()
    return network.run_until(
        lambda: controller.has_caught_up, "the controller registers this broker and its metadata is current"
    )


class ClusterParts(NamedTuple):
    """The services that send requests to the controllers and to other brokers."""

    forwarding: Forwarding | None  # None: this node is the controller
    transaction_peers: TransactionPeers
    share_peers: ShareStatePeers
    replication: Replication
    assignments: DirectoryAssignments


def cluster_parts(
    config: BrokerConfig,
    controller: LocalController | RemoteController,
    outbox: Outbox,
    logs: LogDirectories,
    partitions: HostedPartitions,
    replies: Replies,
    current_round: Round,
    *,
    now_ms: int,
) -> ClusterParts:
    listener, timeout_ms = config.inter_broker_listener.name, config.integer("request.timeout.ms")
    if isinstance(controller, LocalController):
        forwarding, report = None, controller.own_broker.assign_directories_soon
    else:
        forwarding, report = Forwarding(replies, controller, timeout_ms=timeout_ms), controller.assign_directories
    return ClusterParts(
        forwarding,
        TransactionPeers(outbox, lambda: controller.image, listener=listener, timeout_ms=timeout_ms),
        ShareStatePeers(
            outbox,
            lambda: controller.image,
            listener=listener,
            node_id=controller.node_id,
            # A working coordinator responds within this time, even if its own write times out.
            timeout_ms=2 * config.integer("share.coordinator.write.timeout.ms"),
        ),
        Replication(config, controller, partitions, outbox, current_round.appended, now_ms),
        DirectoryAssignments(controller, report, logs, partitions),
    )


def start_beside_controller(parts: ClusterParts, now_ms: int) -> None:
    """Begin to replicate, at a node that is the controller of its cluster."""
    parts.assignments.check_all(now_ms)
    parts.replication.start()


def join_cluster(controller: RemoteController, network: Network, parts: ClusterParts, now_ms: int) -> None:
    """Wait until the controller unfences the broker. Called when all logs are loaded."""
    parts.assignments.check_all(now_ms)
    controller.start_broker(now_ms)
    network.run_until(lambda: controller.is_unfenced, "this broker is unfenced")
    parts.replication.start()


def _previous_epoch(files: Files, directories: Mapping[str, bytes]) -> int:
    """Return the broker epoch of the last stop, or -1 unless the stop was clean in every directory."""
    noted = [read_clean_shutdown(files, join(path, file_names.CLEAN_SHUTDOWN)) for path in directories]
    return min(-1 if one is None else one for one in noted)
