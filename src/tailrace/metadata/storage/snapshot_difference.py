"""The difference of two images as records: for a node that installs the leader's snapshot while it is running.

A snapshot describes what exists, not what was deleted. So records that delete come first. Of a topic that exists in
both images, only changed partitions are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tailrace.metadata.image.image import MetadataImage, TopicImage
from tailrace.metadata.image.image_records import image_records
from tailrace.protocol import messages
from tailrace.protocol.message import Message


def difference_records(before: MetadataImage, after: MetadataImage) -> Iterator[Message]:
    """Yield the records that turn an image into the image of a snapshot."""
    yield from _removals(before, after)
    for record in image_records(replace(after, topics=_changed_topics(before, after))):
        if isinstance(record, messages.TopicRecord) and record.topic_id in before.topics_by_id:
            continue
        if isinstance(record, messages.ProducerIdsRecord) and record.next_producer_id <= before.next_producer_id:
            continue
        yield record


def _changed_topics(before: MetadataImage, after: MetadataImage) -> dict[str, TopicImage]:
    """Return new topics, and the other topics with only their changed partitions."""
    found = {}
    for name, topic in after.topics.items():
        known = before.topics_by_id.get(topic.id)
        if known is None:
            found[name] = topic
        elif known.partitions != topic.partitions:
            partitions = {
                number: partition
                for number, partition in topic.partitions.items()
                if known.partitions.get(number) != partition
            }
            found[name] = TopicImage(name, topic.id, partitions)
    return found


def _removals(before: MetadataImage, after: MetadataImage) -> Iterator[Message]:
    for name in before.features.keys() - after.features.keys():
        yield messages.FeatureLevelRecord(name=name, feature_level=0)
    for topic_id in before.topics_by_id.keys() - after.topics_by_id.keys():
        yield messages.RemoveTopicRecord(topic_id=topic_id)
    for broker_id in before.brokers.keys() - after.brokers.keys():
        yield messages.UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=before.brokers[broker_id].epoch)
    for resource, settings in before.configs.items():
        for name in settings.keys() - after.config(resource).keys():
            yield messages.ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=None)
    for entity, quotas in before.client_quotas.items():
        for key in quotas.keys() - after.client_quotas.get(entity, {}).keys():
            parts = [messages.ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
            yield messages.ClientQuotaRecord(entity=parts, key=key, value=0.0, remove=True)
    for acl in before.acls.keys() - after.acls.keys():
        yield messages.RemoveAccessControlEntryRecord(id=acl)
    for mechanism, user in before.scram_credentials.keys() - after.scram_credentials.keys():
        yield messages.RemoveUserScramCredentialRecord(mechanism=mechanism, name=user)
    for token in before.delegation_tokens.keys() - after.delegation_tokens.keys():
        yield messages.RemoveDelegationTokenRecord(token_id=token)
