"""Controller: the cluster's controller as a broker sees it.

    LocalController     in the broker itself, for a node that is alone (`local_controller.py`)
    RemoteController    a quorum of other nodes, whose metadata log is followed (`remote_controller.py`)

Both give the current metadata and take the broker's own reports. Requests of clients to a controller (topics, configs,
quotas, …) are not part of this interface: a LocalController decides them, a remote one gets them forwarded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tailrace.metadata.image.image import MetadataImage
from tailrace.metadata.image.loader import QuorumFacts


class ControllerLog(Protocol):
    """The node's copy of the metadata log."""

    @property
    def quorum(self) -> QuorumFacts: ...

    @property
    def epoch(self) -> int: ...

    @property
    def log(self) -> Any: ...

    @property
    def failure(self) -> OSError | None:
        """Return the error after which the log cannot be written, or None."""


class Controller(Protocol):
    node_id: int

    @property
    def log(self) -> ControllerLog: ...

    @property
    def image(self) -> MetadataImage:
        """The current metadata."""

    @property
    def leader_id(self) -> int:
        """The id of the active controller; -1 if unknown."""

    @property
    def broker_epoch(self) -> int:
        """The epoch of this broker's registration."""

    def assign_directories(self, assignments: Sequence[tuple[bytes, bytes, int]], now_ms: int) -> Any:
        """Report the log directories of replicas on this broker, as (directory, topic id, partition)."""

    def directories_online(self, directories: Sequence[bytes], now_ms: int) -> None:
        """Report the directories that are left after some have failed."""

    def cordon(self, directories: Sequence[bytes]) -> None:
        """Report the directories that get no new replicas, with the next heartbeat or tick."""

    def allocate_producer_ids(self, now_ms: int) -> range:
        """Allocate a block of producer ids to this broker alone. Raise KafkaError if none is available now."""

    def not_ready_reason(self) -> str | None:
        """Return why the cluster does not count on this broker now, or None if it does."""

    def prepare_stop(self, now_ms: int, ready: Callable[[], None]) -> None:
        """Prepare a controlled shutdown. `ready` is called, now or later, when other brokers lead its partitions."""

    def stop_broker(self, now_ms: int) -> int:
        """Report a clean stop. Return the epoch to store for the next start."""

    def tick(self, now_ms: int) -> bool: ...

    def next_deadline_ms(self) -> int | None: ...

    def close(self, now_ms: int) -> None: ...

    def abandon(self) -> None:
        """Release everything without writing, as a crash would."""
