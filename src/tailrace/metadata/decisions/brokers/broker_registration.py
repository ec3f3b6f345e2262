"""Decisions about a broker's life: it registers, is unfenced, leaves, is unregistered.

    register ──► fenced ──unfence──► active ──leave──► in controlled shutdown ──fence──► fenced ──► (unregister)

Each start is a new registration, with a new incarnation id and epoch. If the previous run stopped cleanly, its
partitions got new leaders when it left. If not, they get them now, and its replicas lose their eligibility as leaders,
because they may have lost records.

In a large cluster these partitions are many. With `later=True` a plan has only the change of the broker, and the caller
starts a sweep over the partitions (`partition_sweep.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from tailrace.metadata.controller.control_state import ControlState, Plan
from tailrace.metadata.decisions.replicas.leadership import (
    leader_and_isr_changes,
    partitions_in_sync_at,
    partitions_without_leader,
)
from tailrace.metadata.image.features import DISABLED, KRAFT_VERSION, METADATA_VERSION
from tailrace.metadata.image.image import MetadataImage, TopicImage
from tailrace.metadata.image.partition_registration import PartitionRegistration
from tailrace.metadata.image.registrations import BrokerRegistration, is_reserved
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import BrokerId, Offset
from tailrace.protocol import messages
from tailrace.protocol.message import Message


class Swept(NamedTuple):
    """Partitions that were changed before a registration, as they are since then."""

    partitions: dict[tuple[bytes, int], PartitionRegistration]

    def has(self, topic: TopicImage, number: int) -> bool:
        return self.partitions.get((topic.id, number)) is topic.partitions[number]

    def note(self, image: MetadataImage, topic_id: bytes, number: int) -> None:
        topic = image.topics_by_id.get(topic_id)
        if topic is not None and number in topic.partitions:
            self.partitions[topic_id, number] = topic.partitions[number]


def check_registration(state: ControlState, new: BrokerRegistration, kraft_version: int = 0) -> None:
    """Raise KafkaError if a broker must not register. `kraft_version` is the finalized level of the quorum, which is
    not in the image."""
    _check_directories(state, new)
    _check_features(new, {**state.image.features, KRAFT_VERSION: kraft_version})


def plan_register(
    state: ControlState,
    new: BrokerRegistration,
    *,
    next_offset: Offset,
    previous_epoch: int,
    kraft_version: int = 0,
    swept: Swept | None = None,
) -> Plan[int]:
    """Plan a registration; the result is the broker's epoch. `previous_epoch`: stored by its last clean stop, or -1.
    `swept` partitions have ended the previous run already."""
    check_registration(state, new, kraft_version)
    image = state.image
    existing = image.brokers.get(new.id)
    if existing is not None and existing.incarnation_id == new.incarnation_id:
        amended = replace(
            new,
            epoch=existing.epoch,
            fenced=existing.fenced,
            in_controlled_shutdown=existing.in_controlled_shutdown,
        )
        return Plan([amended.to_record(image.record_versions)], existing.epoch)
    records = end_previous_run(state, new.id, previous_epoch, partitions_of(state, new, previous_epoch, swept))
    registered = replace(new, epoch=next_offset, fenced=True, in_controlled_shutdown=False)
    records.append(registered.to_record(image.record_versions))
    return Plan(records, next_offset)


def partitions_of(
    state: ControlState, new: BrokerRegistration, previous_epoch: int, swept: Swept | None = None
) -> list[tuple[TopicImage, int]]:
    """Return the partitions that change when a broker registers again, without the `swept` ones."""
    existing = state.image.brokers.get(new.id)
    if existing is not None and existing.incarnation_id == new.incarnation_id:
        return []
    both = (False, True) if _has_lost_eligibility(state, new.id, previous_epoch) else (False,)
    return [
        (topic, number)
        for elr in both
        for topic, number in partitions_in_sync_at(state, new.id, elr=elr)
        if swept is None or not swept.has(topic, number)
    ]


def end_previous_run(
    state: ControlState, broker_id: BrokerId, previous_epoch: int, partitions: Iterable[tuple[TopicImage, int]]
) -> list[Message]:
    """Return the records with which a broker leaves partitions, because it has started again."""
    if _has_lost_eligibility(state, broker_id, previous_epoch):
        return leader_and_isr_changes(state, partitions, stopped_uncleanly=broker_id)
    return leader_and_isr_changes(state, partitions, removed=broker_id)


def _has_lost_eligibility(state: ControlState, broker_id: BrokerId, previous_epoch: int) -> bool:
    existing = state.image.brokers.get(broker_id)
    stopped_cleanly = previous_epoch == (-2 if existing is None else existing.epoch)
    return state.image.elr_enabled and not stopped_cleanly


def _check_directories(state: ControlState, new: BrokerRegistration) -> None:
    if not state.image.record_versions.has_directories:
        return
    if not new.directories:
        raise KafkaError(
            ErrorCode.INVALID_REGISTRATION,
            f"broker {new.id} registers without a log directory; this metadata.version needs at least one",
        )
    if any(map(is_reserved, new.directories)):
        raise KafkaError(
            ErrorCode.INVALID_REGISTRATION, f"a log directory of broker {new.id} has a reserved id; format it again"
        )
    if len(set(new.directories)) < len(new.directories):
        raise KafkaError(
            ErrorCode.INVALID_REGISTRATION,
            f"two log directories of broker {new.id} have the same id: one is a copy of the other",
        )
    directories = set(new.directories)
    for broker in state.image.brokers.values():
        if broker.id != new.id and not directories.isdisjoint(broker.directories):
            raise KafkaError(
                ErrorCode.INVALID_REGISTRATION, f"broker {new.id} registers a log directory of broker {broker.id}"
            )


def _check_features(new: BrokerRegistration, finalized: Mapping[str, int]) -> None:
    """Raise UNSUPPORTED_VERSION if the broker does not support the finalized level of a feature."""
    if METADATA_VERSION not in new.features:
        raise KafkaError(
            ErrorCode.INVALID_REGISTRATION, f"broker {new.id} does not report the metadata.version it supports"
        )
    levels = {name: finalized.get(name, 0) for name in new.features} | dict(finalized)
    for name, level in levels.items():
        supported = new.features.get(name, DISABLED)
        if level not in supported:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, f"{name} is finalized at {level}; broker {new.id} supports {supported}"
            )


def _registered(state: ControlState, broker_id: BrokerId) -> BrokerRegistration:
    broker = state.image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {broker_id} is not registered")
    return broker


def check_epoch(state: ControlState, broker_id: BrokerId, epoch: int) -> None:
    """Raise STALE_BROKER_EPOCH unless a broker is registered with that epoch."""
    broker = state.image.brokers.get(broker_id)
    if broker is None or broker.epoch != epoch:
        known = "it is not registered" if broker is None else f"its epoch is {broker.epoch}"
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, f"broker {broker_id} has sent the epoch {epoch}, but {known}")


def plan_unfence(state: ControlState, broker_id: BrokerId, *, later: bool = False) -> Plan[None]:
    """Unfence a broker, and elect leaders for partitions that were waiting for it."""
    broker = _registered(state, broker_id)
    records: list[Message] = [
        messages.BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, fenced=-1)
    ]
    if not later:
        records += leader_and_isr_changes(state, partitions_without_leader(state), added=broker_id)
    return Plan(records, None)


def plan_fence(state: ControlState, broker_id: BrokerId, *, later: bool = False) -> Plan[None]:
    """Fence a broker: it loses its leaderships and leaves every ISR."""
    broker = _registered(state, broker_id)
    partitions = () if later else partitions_in_sync_at(state, broker_id, elr=False)
    records = leader_and_isr_changes(state, partitions, removed=broker_id)
    records.append(messages.BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, fenced=1))
    return Plan(records, None)


def plan_leave(state: ControlState, broker_id: BrokerId, *, later: bool = False) -> Plan[None]:
    """Begin a controlled shutdown: other brokers become leaders of its partitions."""
    broker = _registered(state, broker_id)
    records: list[Message] = []
    if not broker.in_controlled_shutdown:
        records.append(
            messages.BrokerRegistrationChangeRecord(
                broker_id=broker_id, broker_epoch=broker.epoch, in_controlled_shutdown=1
            )
        )
    if not later:
        records += leader_and_isr_changes(state, partitions_in_sync_at(state, broker_id, elr=False), removed=broker_id)
    return Plan(records, None)


def plan_unregister(state: ControlState, broker_id: BrokerId) -> Plan[None]:
    """Remove a broker's registration."""
    broker = _registered(state, broker_id)
    records: list[Message] = []
    for elr in (False, True):
        records += leader_and_isr_changes(state, partitions_in_sync_at(state, broker_id, elr=elr), removed=broker_id)
    records.append(messages.UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.epoch))
    return Plan(records, None)


def plan_directories(
    state: ControlState,
    broker_id: BrokerId,
    *,
    online: tuple[bytes, ...] | None = None,
    cordoned: tuple[bytes, ...] | None = None,
    later: bool = False,
) -> Plan[None]:
    """Record a broker's online directories, and those that take no new replicas."""
    broker = _registered(state, broker_id)
    records: list[Message] = []
    lost = set(broker.directories) - set(online) if online is not None else set()
    if lost:
        partitions = [
            (topic, number)
            for topic, number, partition in (() if later else state.image.partitions())
            if broker_id in partition.replicas and partition.directory_of(broker_id) in lost
        ]
        records += leader_and_isr_changes(state, partitions, removed=broker_id)
        records.append(
            messages.BrokerRegistrationChangeRecord(
                broker_id=broker_id,
                broker_epoch=broker.epoch,
                log_dirs=[one for one in broker.directories if one not in lost],
            )
        )
    known = broker.cordoned_directories
    if cordoned is not None and (known is None or set(known) != set(cordoned)):
        records.append(
            messages.BrokerRegistrationChangeRecord(
                broker_id=broker_id, broker_epoch=broker.epoch, cordoned_log_dirs=list(cordoned)
            )
        )
    return Plan(records, None)
