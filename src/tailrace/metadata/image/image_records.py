"""An image as records, in Kafka's order: the content of a snapshot.

Features come first, since they determine how the rest is read. Then nodes, topics, configs, quotas, producer ids, ACLs,
credentials and tokens.
"""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.metadata.image.features import METADATA_VERSION
from tailrace.metadata.image.image import MetadataImage
from tailrace.protocol import messages
from tailrace.protocol.message import Message


def image_records(image: MetadataImage) -> Iterator[Message]:
    versions, elr_enabled = image.record_versions, image.elr_enabled
    yield messages.FeatureLevelRecord(name=METADATA_VERSION, feature_level=image.metadata_version)
    for name, level in image.features.items():
        if name != METADATA_VERSION:
            yield messages.FeatureLevelRecord(name=name, feature_level=level)
    for broker in image.brokers.values():
        yield broker.to_record(versions)
    if versions.has_controllers:
        for controller in image.controllers.values():
            yield controller.to_record()
    for topic in image.topics.values():
        yield messages.TopicRecord(name=topic.name, topic_id=topic.id)
        for number, partition in topic.partitions.items():
            yield partition.to_record(topic.id, number, versions, elr_enabled=elr_enabled)
    for resource, settings in image.configs.items():
        for name, value in settings.items():
            yield messages.ConfigRecord(
                resource_type=resource.type, resource_name=resource.name, name=name, value=value
            )
    for entity, quotas in image.client_quotas.items():
        for key, limit in quotas.items():
            parts = [messages.ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
            yield messages.ClientQuotaRecord(entity=parts, key=key, value=limit)
    if image.next_producer_id >= 0:
        yield messages.ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
    yield from image.acls.values()
    yield from image.scram_credentials.values()
    if versions.has_delegation_tokens:
        yield from image.delegation_tokens.values()
