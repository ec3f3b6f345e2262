"""MetadataDelta: the records since an image, what they changed, and the image they make.

    delta = MetadataDelta(image)
    for record in records:
        delta.replay(record)
    image = delta.apply(offset=…, epoch=…, timestamp_ms=…)

Every one of Kafka's 26 metadata record types has a method here, named in `_REPLAYS`. InconsistentMetadata is raised for
a record that contradicts those before it: a log with such a record must not be served.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from tailrace.metadata.image.acl_records import acl_of
from tailrace.metadata.image.features import KRAFT_VERSION, METADATA_VERSION, RELEASES
from tailrace.metadata.image.image import (
    EMPTY_IMAGE,
    ConfigResource,
    MetadataImage,
    QuotaEntity,
    quota_entity,
    topic_resource,
)
from tailrace.metadata.image.layered_map import changed
from tailrace.metadata.image.registrations import (
    BrokerChange,
    BrokerRegistration,
    ControllerRegistration,
    InconsistentMetadata,
)
from tailrace.metadata.image.topic_delta import LocalChanges, TopicsDelta
from tailrace.model.acls import Acl
from tailrace.model.ids import BrokerId, LeaderEpoch, Offset
from tailrace.protocol import messages
from tailrace.protocol.message import Message

K = TypeVar("K")
V = TypeVar("V")


class MetadataDelta:
    def __init__(self, image: MetadataImage = EMPTY_IMAGE) -> None:
        self.image = image  # the image before the records
        self.topics = TopicsDelta(image)
        # The new state of everything that has changed; None for what was removed.
        self.features: dict[str, int | None] = {}
        self.brokers: dict[BrokerId, BrokerRegistration | None] = {}
        self.controllers: dict[int, ControllerRegistration | None] = {}
        self.configs: dict[ConfigResource, dict[str, str]] = {}
        self.client_quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.acls: dict[bytes, messages.AccessControlEntryRecord | None] = {}
        self._acl_ids: dict[Acl, bytes | None] = {}
        self.scram_credentials: dict[tuple[int, str], messages.UserScramCredentialRecord | None] = {}
        self.delegation_tokens: dict[str, messages.DelegationTokenRecord | None] = {}
        self.next_producer_id = image.next_producer_id

    def replay(self, record: Message) -> None:
        replay = _BY_CLASS.get(record.__class__)
        if replay is None:
            name = _REPLAYS.get(record.SCHEMA.name)
            if name is None:
                raise InconsistentMetadata(f"{record.SCHEMA.name} is not a record of the metadata image")
            replay = _BY_CLASS[record.__class__] = getattr(MetadataDelta, name)
        replay(self, record)

    def replay_all(self, records: Iterable[Message]) -> None:
        for record in records:
            self.replay(record)

    def apply(self, *, offset: Offset, epoch: LeaderEpoch, timestamp_ms: int) -> MetadataImage:
        before = self.image
        topics, topics_by_id = self.topics.apply()
        return MetadataImage(
            cluster_id=before.cluster_id,
            offset=offset,
            epoch=epoch,
            timestamp_ms=timestamp_ms,
            features=changed(before.features, self.features),
            brokers=changed(before.brokers, self.brokers),
            controllers=changed(before.controllers, self.controllers),
            topics=topics,
            topics_by_id=topics_by_id,
            configs=_merged_sets(before.configs, self.configs),
            client_quotas=_merged_sets(before.client_quotas, self.client_quotas),
            next_producer_id=self.next_producer_id,
            acls=changed(before.acls, self.acls),
            acl_ids=changed(before.acl_ids, self._acl_ids),
            scram_credentials=changed(before.scram_credentials, self.scram_credentials),
            delegation_tokens=changed(before.delegation_tokens, self.delegation_tokens),
        )

    def local_changes(self, broker_id: BrokerId) -> LocalChanges:
        """Return the changes of the replicas on a broker."""
        return self.topics.local_changes(broker_id)

    # Features

    def _feature_level(self, record: messages.FeatureLevelRecord) -> None:
        if record.name == METADATA_VERSION and record.feature_level not in RELEASES:
            raise InconsistentMetadata(
                f"metadata.version {record.feature_level} is not supported; supported are {min(RELEASES)} to "
                f"{max(RELEASES)}"
            )
        if record.name != KRAFT_VERSION:  # set by control records
            self.features[record.name] = record.feature_level or None

    # Brokers and controllers

    def broker(self, broker_id: BrokerId) -> BrokerRegistration | None:
        """Return the registration after the records so far, or None."""
        return self.brokers[broker_id] if broker_id in self.brokers else self.image.brokers.get(broker_id)

    def _register_broker(self, record: messages.RegisterBrokerRecord) -> None:
        self.brokers[record.broker_id] = BrokerRegistration.from_record(record)

    def _unregister_broker(self, record: messages.UnregisterBrokerRecord) -> None:
        self._registered(record.broker_id, record.broker_epoch)
        self.brokers[record.broker_id] = None

    def _registered(self, broker_id: BrokerId, epoch: int) -> BrokerRegistration:
        broker = self.broker(broker_id)
        if broker is None or broker.epoch != epoch:
            known = "is not registered" if broker is None else f"is registered with epoch {broker.epoch}"
            raise InconsistentMetadata(f"broker {broker_id} is changed at epoch {epoch} but {known}")
        return broker

    def _change_broker(self, record: messages.BrokerRegistrationChangeRecord) -> None:
        broker = self._registered(record.broker_id, record.broker_epoch)
        self.brokers[broker.id] = broker.changed(BrokerChange.from_record(record))

    def _fence_broker(self, record: messages.FenceBrokerRecord) -> None:
        self.brokers[record.id] = self._registered(record.id, record.epoch).changed(BrokerChange(fenced=True))

    def _unfence_broker(self, record: messages.UnfenceBrokerRecord) -> None:
        self.brokers[record.id] = self._registered(record.id, record.epoch).changed(BrokerChange(fenced=False))

    def _register_controller(self, record: messages.RegisterControllerRecord) -> None:
        self.controllers[record.controller_id] = ControllerRegistration.from_record(record)

    # Topics

    def _topic(self, record: messages.TopicRecord) -> None:
        self.topics.create(record)

    def _partition(self, record: messages.PartitionRecord) -> None:
        self.topics.put_partition(record)

    def _change_partition(self, record: messages.PartitionChangeRecord) -> None:
        self.topics.change_partition(record)

    def _remove_topic(self, record: messages.RemoveTopicRecord) -> None:
        resource = topic_resource(self.topics.remove(record.topic_id))
        if resource in self.image.configs or resource in self.configs:
            self.configs[resource] = {}

    def _clear_elr(self, record: messages.ClearElrRecord) -> None:
        self.topics.clear_elr(record)

    # Configs and quotas

    def _config(self, record: messages.ConfigRecord) -> None:
        resource = ConfigResource(record.resource_type, record.resource_name)
        _set(self.configs, self.image.configs, resource, record.name, record.value)

    def _client_quota(self, record: messages.ClientQuotaRecord) -> None:
        entity = quota_entity({one.entity_type: one.entity_name for one in record.entity})
        value = None if record.remove else record.value
        _set(self.client_quotas, self.image.client_quotas, entity, record.key, value)

    # Producer ids

    def _producer_ids(self, record: messages.ProducerIdsRecord) -> None:
        if record.next_producer_id <= self.next_producer_id:
            raise InconsistentMetadata(
                f"producer ids go back from {self.next_producer_id} to {record.next_producer_id}"
            )
        self.next_producer_id = record.next_producer_id

    # Security

    def _acl(self, record: messages.AccessControlEntryRecord) -> None:
        self.acls[record.id] = record
        self._acl_ids[acl_of(record)] = record.id

    def _remove_acl(self, record: messages.RemoveAccessControlEntryRecord) -> None:
        removed = self.acls[record.id] if record.id in self.acls else self.image.acls.get(record.id)
        if removed is None:
            raise InconsistentMetadata(f"the ACL {record.id.hex()} is removed but does not exist")
        self.acls[record.id] = None
        acl = acl_of(removed)
        if (self._acl_ids[acl] if acl in self._acl_ids else self.image.acl_ids.get(acl)) == record.id:
            self._acl_ids[acl] = None

    def _scram(self, record: messages.UserScramCredentialRecord) -> None:
        self.scram_credentials[record.mechanism, record.name] = record

    def _remove_scram(self, record: messages.RemoveUserScramCredentialRecord) -> None:
        self.scram_credentials[record.mechanism, record.name] = None

    def _token(self, record: messages.DelegationTokenRecord) -> None:
        self.delegation_tokens[record.token_id] = record

    def _remove_token(self, record: messages.RemoveDelegationTokenRecord) -> None:
        self.delegation_tokens[record.token_id] = None

    def _nothing(self, record: Message) -> None:
        """Ignore a record that does not change the image."""


_REPLAYS: Final = {
    "RegisterBrokerRecord": "_register_broker",
    "UnregisterBrokerRecord": "_unregister_broker",
    "TopicRecord": "_topic",
    "PartitionRecord": "_partition",
    "ConfigRecord": "_config",
    "PartitionChangeRecord": "_change_partition",
    "FenceBrokerRecord": "_fence_broker",
    "UnfenceBrokerRecord": "_unfence_broker",
    "RemoveTopicRecord": "_remove_topic",
    "DelegationTokenRecord": "_token",
    "UserScramCredentialRecord": "_scram",
    "FeatureLevelRecord": "_feature_level",
    "ClientQuotaRecord": "_client_quota",
    "ProducerIdsRecord": "_producer_ids",
    "BrokerRegistrationChangeRecord": "_change_broker",
    "AccessControlEntryRecord": "_acl",
    "RemoveAccessControlEntryRecord": "_remove_acl",
    "NoOpRecord": "_nothing",
    "ZkMigrationStateRecord": "_nothing",
    "RemoveUserScramCredentialRecord": "_remove_scram",
    "RemoveDelegationTokenRecord": "_remove_token",
    "RegisterControllerRecord": "_register_controller",
    "ClearElrRecord": "_clear_elr",
}

_BY_CLASS: Final[dict[type[Message], Callable[[MetadataDelta, Any], None]]] = {}  # filled on first use

# The loader handles the other three: BeginTransactionRecord, EndTransactionRecord and AbortTransactionRecord.


def _merged_sets(before: Mapping[K, Mapping[str, V]], changes: Mapping[K, dict[str, V]]) -> Mapping[K, Mapping[str, V]]:
    """Merge changes; a resource without any setting is removed."""
    return changed(before, {key: values or None for key, values in changes.items()})


def _set(
    changes: dict[Any, dict[str, V]], before: Mapping[Any, Mapping[str, V]], of: Any, key: str, value: V | None
) -> None:
    if of not in changes:
        changes[of] = dict(before.get(of, {}))
    if value is None:
        changes[of].pop(key, None)
    else:
        changes[of][key] = value
