"""What makes one image another, as records: a snapshot from the leader, taken over by a node that has run for a while.

A snapshot says what there is and not what has gone. Its records come after others that take away what it does not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tailrace.metadata.delta import MetadataDelta
from tailrace.metadata.image import MetadataImage
from tailrace.protocol import messages
from tailrace.protocol.message import Message


def difference_records(before: MetadataImage, snapshot: Sequence[Message]) -> Iterator[Message]:
    """The records that turn an image into the one that a snapshot describes."""
    described = MetadataDelta(MetadataImage(cluster_id=before.cluster_id))
    described.replay_all(snapshot)
    after = described.apply(offset=0, epoch=0, timestamp_ms=0)
    yield from _removals(before, after)
    for record in snapshot:
        if isinstance(record, messages.TopicRecord) and record.topic_id in before.topics_by_id:
            continue
        if isinstance(record, messages.ProducerIdsRecord) and record.next_producer_id <= before.next_producer_id:
            continue
        yield record


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
