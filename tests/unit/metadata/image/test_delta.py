"""MetadataDelta: every record type, what changed, and what is refused."""

from __future__ import annotations

import pytest

from tailrace.metadata.image.delta import _REPLAYS, MetadataDelta
from tailrace.metadata.image.image import EMPTY_IMAGE, ConfigResource, MetadataImage
from tailrace.metadata.image.registrations import MIGRATING_DIRECTORY, InconsistentMetadata
from tailrace.model.ids import TopicPartition
from tailrace.protocol import messages as m
from tailrace.protocol.codegen.schema import message_names
from tailrace.protocol.message import Message

ID, OTHER_ID = b"topic id no. one", b"topic id no. two"
TOPIC = m.TopicRecord(name="t", topic_id=ID)

# The loader handles these itself.
TRANSACTION_RECORDS = ("BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord")


def partition(number: int = 0, topic_id: bytes = ID, replicas: tuple[int, ...] = (1, 2), leader: int = 1) -> Message:
    return m.PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=list(replicas),
        isr=list(replicas),
        leader=leader,
        leader_epoch=0,
        partition_epoch=0,
    )


def broker(epoch: int = 7, **fields: object) -> Message:
    values: dict[str, object] = {"broker_id": 1, "broker_epoch": epoch, "incarnation_id": b"i" * 16, **fields}
    return m.RegisterBrokerRecord(**values)  # type: ignore[arg-type]


def after(*records: Message, image: MetadataImage = EMPTY_IMAGE) -> MetadataImage:
    delta = MetadataDelta(image)
    delta.replay_all(records)
    return delta.apply(offset=image.offset + len(records), epoch=3, timestamp_ms=9)


def test_every_type_of_metadata_record_is_replayed() -> None:
    types = {name for name in message_names() if getattr(m, name).SCHEMA.family == "metadata"}
    assert len(types) == 26
    assert types == {*_REPLAYS, *TRANSACTION_RECORDS}
    for name in TRANSACTION_RECORDS:
        with pytest.raises(InconsistentMetadata, match="is not a record of the metadata image"):
            MetadataDelta().replay(getattr(m, name)())


def test_an_image_has_the_offset_epoch_and_time_of_its_last_record() -> None:
    image = after(m.NoOpRecord(), m.ZkMigrationStateRecord())
    assert (image.offset, image.epoch, image.timestamp_ms) == (1, 3, 9)


# Topics


def test_a_topic_is_found_by_name_and_by_id() -> None:
    image = after(TOPIC, partition(0), partition(1))
    assert image.topics["t"] is image.topics_by_id[ID]
    assert list(image.topics["t"].partitions) == [0, 1]
    found = image.partition(TopicPartition("t", 1))
    assert found is not None
    assert found.leader_epoch == found.partition_epoch == 0
    assert found.directories == (MIGRATING_DIRECTORY,) * 2
    assert image.partition(TopicPartition("t", 2)) is None
    assert image.partition(TopicPartition("u", 0)) is None


def test_a_change_raises_the_partition_epoch_and_one_with_a_leader_the_leader_epoch() -> None:
    image = after(TOPIC, partition())
    image = after(m.PartitionChangeRecord(topic_id=ID, partition_id=0, isr=[1]), image=image)
    one = image.topics["t"].partitions[0]
    assert (one.isr, one.leader, one.leader_epoch, one.partition_epoch) == ((1,), 1, 0, 1)
    image = after(m.PartitionChangeRecord(topic_id=ID, partition_id=0, leader=1), image=image)
    one = image.topics["t"].partitions[0]
    assert (one.leader, one.leader_epoch, one.partition_epoch) == (1, 1, 2)
    change = m.PartitionChangeRecord(
        topic_id=ID,
        partition_id=0,
        leader=-1,
        isr=[],
        leader_recovery_state=1,
        eligible_leader_replicas=[2],
        last_known_elr=[1],
        adding_replicas=[3],
        removing_replicas=[2],
        replicas=[1, 2, 3],
        directories=[b"a" * 16, b"b" * 16, b"c" * 16],
    )
    one = after(change, image=image).topics["t"].partitions[0]
    assert (one.leader, one.isr, one.leader_recovery_state, one.elr, one.last_known_elr) == (-1, (), 1, (2,), (1,))
    assert (one.adding_replicas, one.removing_replicas, one.replicas) == ((3,), (2,), (1, 2, 3))
    assert one.directory_of(2) == b"b" * 16
    assert one.is_reassigning


def test_deleting_a_topic_removes_its_configs() -> None:
    config = m.ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="1")
    image = after(TOPIC, config, partition())
    assert image.topic_config("t") == {"retention.ms": "1"}
    image = after(m.RemoveTopicRecord(topic_id=ID), image=image)
    assert not image.topics
    assert not image.topics_by_id
    assert not image.configs


def test_a_topic_can_be_deleted_and_created_again_in_one_delta() -> None:
    image = after(TOPIC, partition(0), partition(1))
    delta = MetadataDelta(image)
    delta.replay_all(
        [m.RemoveTopicRecord(topic_id=ID), m.TopicRecord(name="t", topic_id=OTHER_ID), partition(0, OTHER_ID)]
    )
    assert list(delta.topics.deleted) == [ID]
    assert dict(delta.topics.created) == {"t": OTHER_ID}
    local = delta.local_changes(1)
    assert local.deleted == [(TopicPartition("t", 0), ID), (TopicPartition("t", 1), ID)]
    assert [(one.topic_id, one.partition, one.before) for one in local.leaders] == [
        (OTHER_ID, TopicPartition("t", 0), None)
    ]
    image = delta.apply(offset=9, epoch=3, timestamp_ms=1)
    assert list(image.topics_by_id) == [OTHER_ID]


def test_a_topic_created_and_deleted_in_one_delta_is_in_no_change() -> None:
    delta = MetadataDelta()
    delta.replay_all([TOPIC, partition(), m.RemoveTopicRecord(topic_id=ID)])
    assert not delta.topics
    assert delta.local_changes(1) == ([], [], [])


def test_local_changes_list_the_new_changed_and_deleted_replicas_of_a_broker() -> None:
    image = after(TOPIC, partition(0), partition(1, leader=2), partition(2, replicas=(2, 3), leader=2))
    delta = MetadataDelta(image)
    delta.replay_all(
        [
            m.PartitionChangeRecord(topic_id=ID, partition_id=0, isr=[1]),
            m.PartitionChangeRecord(topic_id=ID, partition_id=1, leader=1),
            m.PartitionChangeRecord(topic_id=ID, partition_id=2, leader=3),
        ]
    )
    leaders, followers, deleted = delta.local_changes(1)
    assert [one.partition.partition for one in leaders] == [0, 1]
    assert [one.before is not None and one.now.leader_epoch - one.before.leader_epoch for one in leaders] == [0, 1]
    assert followers == deleted == []
    assert [one.partition.partition for one in delta.local_changes(2).followers] == [0, 1, 2]
    moved = MetadataDelta(image)
    moved.replay(m.PartitionChangeRecord(topic_id=ID, partition_id=0, replicas=[2, 3], isr=[2], leader=2))
    assert moved.local_changes(1).deleted == [(TopicPartition("t", 0), ID)]


def test_unchanged_parts_of_an_image_are_shared_with_the_next() -> None:
    image = after(TOPIC, partition(), m.TopicRecord(name="u", topic_id=OTHER_ID), partition(0, OTHER_ID), broker())
    changed = after(m.PartitionChangeRecord(topic_id=ID, partition_id=0, isr=[1]), image=image)
    assert changed.topics["u"] is image.topics["u"]
    assert changed.topics["t"] is not image.topics["t"]
    assert changed.brokers is image.brokers
    assert changed.configs is image.configs


def test_the_elr_of_one_topic_or_of_all_topics_can_be_cleared() -> None:
    elr = {"eligible_leader_replicas": [2], "last_known_elr": [1]}
    image = after(
        TOPIC,
        partition(),
        m.TopicRecord(name="u", topic_id=OTHER_ID),
        partition(0, OTHER_ID),
        m.PartitionChangeRecord(topic_id=ID, partition_id=0, **elr),  # type: ignore[arg-type]
        m.PartitionChangeRecord(topic_id=OTHER_ID, partition_id=0, **elr),  # type: ignore[arg-type]
    )
    only_one = after(m.ClearElrRecord(topic_name="t"), image=image)
    assert only_one.topics["t"].partitions[0].elr == ()
    assert only_one.topics["t"].partitions[0].partition_epoch == 2
    assert only_one.topics["u"].partitions[0].elr == (2,)
    everywhere = after(m.ClearElrRecord(topic_name=""), image=image)
    assert all(one.elr == one.last_known_elr == () for _, _, one in everywhere.partitions())


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([TOPIC, TOPIC], "exists already"),
        ([TOPIC, m.TopicRecord(name="u", topic_id=ID)], "id of another"),
        ([partition()], "no topic has the id"),
        ([TOPIC, m.PartitionChangeRecord(topic_id=ID, partition_id=5)], "does not exist"),
        ([m.RemoveTopicRecord(topic_id=ID)], "no topic has the id"),
        ([TOPIC, m.RemoveTopicRecord(topic_id=ID), m.RemoveTopicRecord(topic_id=ID)], "no topic has the id"),
        ([m.ClearElrRecord(topic_name="t")], "does not exist"),
        ([TOPIC, m.PartitionRecord(topic_id=ID, replicas=[1, 2], directories=[b"d" * 16])], "1 directories"),
        ([m.FenceBrokerRecord(id=1, epoch=1)], "not registered"),
        ([broker(), m.UnregisterBrokerRecord(broker_id=1, broker_epoch=8)], "epoch 7"),
        ([broker(), m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, fenced=5)], "unknown kind"),
        ([m.FeatureLevelRecord(name="metadata.version", feature_level=6)], "is not supported"),
        ([m.ProducerIdsRecord(next_producer_id=1000), m.ProducerIdsRecord(next_producer_id=1000)], "go back"),
        ([m.RemoveAccessControlEntryRecord(id=b"a" * 16)], "does not exist"),
    ],
)
def test_a_record_that_contradicts_the_others_is_refused(records: list[Message], reason: str) -> None:
    with pytest.raises(InconsistentMetadata, match=reason):
        MetadataDelta().replay_all(records)


# Brokers and controllers


def test_a_broker_is_registered_changed_and_unregistered() -> None:
    register = m.RegisterBrokerRecord
    image = after(
        broker(
            end_points=[register.BrokerEndpoint(name="PLAINTEXT", host="h", port=9, security_protocol=0)],
            features=[
                register.BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=30)
            ],
            rack="r",
            log_dirs=[b"b" * 16, b"a" * 16],
        )
    )
    one = image.brokers[1]
    assert (one.epoch, one.rack, one.fenced, one.endpoints["PLAINTEXT"].port) == (7, "r", True, 9)
    assert one.directories == (b"a" * 16, b"b" * 16)
    assert 30 in one.features["metadata.version"]
    assert not image.is_active(1)
    image = after(m.UnfenceBrokerRecord(id=1, epoch=7), image=image)
    assert image.is_active(1)
    assert [one.id for one in image.unfenced_brokers()] == [1]
    image = after(m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, in_controlled_shutdown=1), image=image)
    assert not image.is_active(1)
    assert not image.brokers[1].fenced
    image = after(m.FenceBrokerRecord(id=1, epoch=7), image=image)
    assert image.brokers[1].fenced
    change = m.BrokerRegistrationChangeRecord(
        broker_id=1, broker_epoch=7, fenced=-1, log_dirs=[b"a" * 16], cordoned_log_dirs=[b"a" * 16]
    )
    image = after(change, image=image)
    assert image.brokers[1].directories == image.brokers[1].cordoned_directories == (b"a" * 16,)
    assert not image.brokers[1].takes_new_replicas
    image = after(m.UnregisterBrokerRecord(broker_id=1, broker_epoch=7), image=image)
    assert not image.brokers


def test_a_new_registration_replaces_the_one_before() -> None:
    image = after(broker(7), broker(9))
    assert image.brokers[1].epoch == 9


def test_controllers_register() -> None:
    image = after(m.RegisterControllerRecord(controller_id=3, incarnation_id=b"c" * 16))
    assert image.controllers[3].incarnation_id == b"c" * 16
    assert image.controllers[3].to_record() == m.RegisterControllerRecord(controller_id=3, incarnation_id=b"c" * 16)


# The rest


def test_features_configs_and_quotas_are_set_and_removed() -> None:
    user = [m.ClientQuotaRecord.EntityData(entity_type="user", entity_name=None)]
    image = after(
        m.FeatureLevelRecord(name="metadata.version", feature_level=29),
        m.FeatureLevelRecord(name="group.version", feature_level=1),
        m.FeatureLevelRecord(name="kraft.version", feature_level=1),
        m.ConfigRecord(resource_type=4, resource_name="", name="a", value="1"),
        m.ConfigRecord(resource_type=4, resource_name="", name="b", value="2"),
        m.ClientQuotaRecord(entity=user, key="producer_byte_rate", value=5.0),
        m.ProducerIdsRecord(next_producer_id=2000),
    )
    assert image.features == {"metadata.version": 29, "group.version": 1}
    assert image.metadata_version == 29
    assert image.config(ConfigResource(4, "")) == {"a": "1", "b": "2"}
    assert image.client_quotas == {(("user", None),): {"producer_byte_rate": 5.0}}
    assert image.next_producer_id == 2000
    image = after(
        m.FeatureLevelRecord(name="group.version", feature_level=0),
        m.ConfigRecord(resource_type=4, resource_name="", name="a", value=None),
        m.ConfigRecord(resource_type=4, resource_name="", name="b", value=None),
        m.ClientQuotaRecord(entity=user, key="producer_byte_rate", remove=True),
        image=image,
    )
    assert image.features == {"metadata.version": 29}
    assert not image.configs
    assert not image.client_quotas


def test_the_image_contains_security_records_unchanged() -> None:
    acl = m.AccessControlEntryRecord(id=b"a" * 16, resource_name="t", principal="User:x")
    scram = m.UserScramCredentialRecord(name="u", mechanism=1, salt=b"s")
    token = m.DelegationTokenRecord(token_id="k", owner="User:x")
    image = after(acl, scram, token)
    assert image.acls == {b"a" * 16: acl}
    assert image.scram_credentials == {(1, "u"): scram}
    assert image.delegation_tokens == {"k": token}
    image = after(
        m.RemoveAccessControlEntryRecord(id=b"a" * 16),
        m.RemoveUserScramCredentialRecord(name="u", mechanism=1),
        m.RemoveDelegationTokenRecord(token_id="k"),
        image=image,
    )
    assert not image.acls
    assert not image.scram_credentials
    assert not image.delegation_tokens
