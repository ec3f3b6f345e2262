"""Controller: what a broker has of the cluster's controller, wherever that is.

    LocalController     in the broker itself, for a node that is alone (`local_controller.py`)
    RemoteController    a quorum of other nodes, which is followed, and asked (`remote_controller.py`)

Both give the metadata as it is now, and take what a broker has to tell. What clients ask of a controller (topics,
configs, quotas, …) is not here: it is decided by a LocalController, and forwarded to a remote one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tailrace.metadata.image.image import MetadataImage
from tailrace.metadata.image.loader import QuorumFacts


class ControllerLog(Protocol):
    """The metadata log, as this node has it."""

    @property
    def quorum(self) -> QuorumFacts: ...

    @property
    def epoch(self) -> int: ...

    @property
    def log(self) -> Any: ...

    @property
    def failure(self) -> OSError | None:
        """Why it can be written to no more."""


class Controller(Protocol):
    node_id: int

    @property
    def log(self) -> ControllerLog: ...

    @property
    def image(self) -> MetadataImage:
        """The metadata as it is now."""

    @property
    def leader_id(self) -> int:
        """The active controller; -1 while none is known."""

    @property
    def broker_epoch(self) -> int:
        """The epoch that this broker is registered with."""

    def assign_directories(self, assignments: Sequence[tuple[bytes, bytes, int]], now_ms: int) -> Any:
        """Where replicas on this broker lie: (directory, topic id, partition) each."""

    def directories_online(self, directories: Sequence[bytes], now_ms: int) -> None:
        """Some of this broker's directories failed: these are the ones left."""

    def cordon(self, directories: Sequence[bytes]) -> None:
        """Which of this broker's directories get no new replicas; told with the next heartbeat, or tick."""

    def allocate_producer_ids(self, now_ms: int) -> range:
        """A block of producer ids that nobody else has got or will get; KafkaError while there is none to be had."""

    def prepare_stop(self, now_ms: int, ready: Callable[[], None]) -> None:
        """The broker wants to stop: `ready` is called, now or later, when what it leads is in other hands."""

    def stop_broker(self, now_ms: int) -> int:
        """The broker is about to stop, cleanly; the epoch that it has to note for its next start."""

    def tick(self, now_ms: int) -> bool: ...

    def next_deadline_ms(self) -> int | None: ...

    def close(self, now_ms: int) -> None: ...

    def abandon(self) -> None:
        """Let go of everything without writing anything, as a crash would."""
