"""The subscriptions and assignments that classic consumers embed in JoinGroup and SyncGroup.

Two bytes of version, then the message. An unknown newer version is read as the newest known version, as consumers do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from struct import pack

from tailrace.metadata.image.image import MetadataImage
from tailrace.protocol.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from tailrace.protocol.primitives import Reader

_VERSION_SIZE = 2


def read_subscription(embedded: bytes) -> ConsumerProtocolSubscription:
    """Return the subscription. Raise a ProtocolError if it cannot be decoded."""
    version = _version(embedded, ConsumerProtocolSubscription.SCHEMA.versions.high)
    subscription, _ = ConsumerProtocolSubscription.read(embedded, version, _VERSION_SIZE)
    return subscription


def read_assignment(embedded: bytes) -> ConsumerProtocolAssignment:
    version = _version(embedded, ConsumerProtocolAssignment.SCHEMA.versions.high)
    assignment, _ = ConsumerProtocolAssignment.read(embedded, version, _VERSION_SIZE)
    return assignment


def write_assignment(partitions: Mapping[bytes, Iterable[int]], image: MetadataImage, subscription: bytes) -> bytes:
    """Return the assignment in the version of the member's subscription."""
    version = _version(subscription, ConsumerProtocolAssignment.SCHEMA.versions.high)
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.TopicPartition(
                topic=image.topics_by_id[topic].name, partitions=sorted(partitions[topic])
            )
            for topic in partitions
            if topic in image.topics_by_id
        ],
        user_data=None,
    )
    return pack(">h", version) + assignment.encode(version)


def _version(embedded: bytes, newest: int) -> int:
    return min(max(Reader(embedded, what="consumer protocol").int16(), 0), newest)
