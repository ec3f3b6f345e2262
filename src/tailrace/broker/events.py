"""Events: named events of a broker, each with its listeners.

The part of the broker that detects an event calls it: `events.directory_failed(directory, error)`. The listeners are
called at once, in the order of their registration. `startup/open_broker.py` registers all of them in one function.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Generic, ParamSpec

from tailrace.log.directories.log_directory import LogDirectory
from tailrace.metadata.image.image import MetadataImage, TopicImage
from tailrace.metadata.image.loader import Change
from tailrace.metadata.image.partition_registration import PartitionRegistration
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import AccessControlEntryRecord
from tailrace.replication.isr.isr_state import IsrProposal
from tailrace.replication.partition import Partition
from tailrace.waiting.purgatory import DelayedOperation

P = ParamSpec("P")


class Event(Generic[P]):
    """One kind of event and its listeners."""

    __slots__ = ("_listeners",)

    def __init__(self) -> None:
        self._listeners: list[Callable[P, object]] = []

    def listen(self, *listeners: Callable[P, object]) -> None:
        """Register listeners."""
        self._listeners += listeners

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Notify all listeners."""
        for listener in self._listeners:
            listener(*args, **kwargs)


class Events:
    def __init__(self) -> None:
        # Metadata: (…, now_ms). Listeners get a new image before the response to the request that changed it is sent.
        self.metadata_changed: Event[[Change, int]] = Event()
        self.partition_hosted: Event[[Partition, PartitionRegistration, int]] = Event()  # after it has its role
        self.partition_deleted: Event[[TopicPartition, int]] = Event()  # before its log is deleted
        self.topics_deleted: Event[[Sequence[TopicImage], int]] = Event()
        self.settings_changed: Event[[MetadataImage]] = Event()  # settings of this broker
        self.topic_settings_changed: Event[[MetadataImage, Collection[str]]] = Event()  # settings of these topics
        self.acls_changed: Event[[Mapping[bytes, AccessControlEntryRecord | None]]] = Event()
        self.client_metrics_changed: Event[[str, Mapping[str, str]]] = Event()  # a subscription and its settings
        # Replication
        self.isr_proposed: Event[[TopicPartition, IsrProposal]] = Event()
        # Failures
        self.partition_failed: Event[[Partition, OSError]] = Event()
        self.directory_failed: Event[[LogDirectory, OSError]] = Event()
        self.operation_failed: Event[[DelayedOperation, Exception, int]] = Event()  # a delayed operation has raised
