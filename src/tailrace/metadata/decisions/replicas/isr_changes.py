"""AlterPartition: a leader proposes the in-sync replicas of partitions, and the controller decides.

A proposal is refused if the leader's epochs are old, or if it names a broker that is fenced, is shutting down, or has
registered again since it was in sync. An accepted proposal may complete a reassignment. If another broker leads after
that, the proposing leader gets NEW_LEADER_ELECTED.
"""

from __future__ import annotations

from dataclasses import replace

from tailrace.metadata.controller.control_state import ControlState, Plan
from tailrace.metadata.decisions.brokers.broker_registration import check_epoch
from tailrace.metadata.decisions.replicas.leadership import partition_change
from tailrace.metadata.decisions.replicas.partition_change import Election
from tailrace.metadata.image.image import TopicImage
from tailrace.metadata.image.partition_registration import (
    NO_LEADER_CHANGE,
    RECOVERED,
    RECOVERING,
    PartitionRegistration,
)
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import BrokerId
from tailrace.protocol import messages
from tailrace.protocol.message import Message

_BROKER_EPOCHS_FROM = 3  # the version from which a proposal has the epoch of each broker
_UNKNOWN_EPOCH = -1

ProposedIsr = messages.AlterPartitionRequest.PartitionData
Answer = messages.AlterPartitionResponse.PartitionData


def plan_alter_partition(
    state: ControlState, request: messages.AlterPartitionRequest, version: int
) -> Plan[messages.AlterPartitionResponse]:
    """Plan the changes that a leader proposes. Raise STALE_BROKER_EPOCH if it has registered again since."""
    check_epoch(state, request.broker_id, request.broker_epoch)
    records: list[Message] = []
    response = messages.AlterPartitionResponse()
    for asked in request.topics:
        topic = state.image.topics_by_id.get(asked.topic_id)
        answers = []
        for one in asked.partitions:
            if topic is None:
                answers.append(_refused(one, ErrorCode.UNKNOWN_TOPIC_ID))
            else:
                answers.append(_decide(state, topic, one, request.broker_id, version, records))
        response.topics.append(messages.AlterPartitionResponse.TopicData(topic_id=asked.topic_id, partitions=answers))
    return Plan(records, response)


def _refused(asked: ProposedIsr, code: ErrorCode) -> Answer:
    return Answer(partition_index=asked.partition_index, error_code=code)


def _decide(
    state: ControlState, topic: TopicImage, asked: ProposedIsr, leader: BrokerId, version: int, records: list[Message]
) -> Answer:
    partition = topic.partitions.get(asked.partition_index)
    if partition is None:
        return _refused(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    proposed = _proposed(asked, version)
    code = _check_epochs(partition, asked, leader) or _check_isr(state, partition, asked, list(proposed), proposed)
    if code:
        return _refused(asked, code)
    unclean = state.configs.allows_unclean_election(state.image, topic.name)
    record = replace(
        partition_change(state, topic, asked.partition_index),
        isr=list(proposed),
        recovery=asked.leader_recovery_state,
        election=Election.UNCLEAN if unclean else Election.ONLINE,
    ).build()
    if record is not None:
        records.append(record)
        if record.leader not in (leader, NO_LEADER_CHANGE):
            return _refused(asked, ErrorCode.NEW_LEADER_ELECTED)
        partition = partition.merge(record)
    return Answer(
        partition_index=asked.partition_index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def _proposed(asked: ProposedIsr, version: int) -> dict[BrokerId, int]:
    """Return the proposed brokers with their epochs; -1 is an unknown epoch. Return {} if a broker is named twice."""
    if version < _BROKER_EPOCHS_FROM:
        pairs = [(one, _UNKNOWN_EPOCH) for one in asked.new_isr]
    else:
        pairs = [(one.broker_id, one.broker_epoch) for one in asked.new_isr_with_epochs]
    return dict(pairs) if len(dict(pairs)) == len(pairs) else {}


def _check_epochs(partition: PartitionRegistration, asked: ProposedIsr, leader: BrokerId) -> ErrorCode:
    """Return an error code unless the proposal comes from the leader and has the current epochs."""
    if asked.leader_epoch > partition.leader_epoch or asked.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if asked.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if leader != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if asked.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    return ErrorCode.NONE


def _check_isr(
    state: ControlState,
    partition: PartitionRegistration,
    asked: ProposedIsr,
    isr: list[BrokerId],
    epochs: dict[BrokerId, int],
) -> ErrorCode:
    if not isr or not set(isr) <= set(partition.replicas) or partition.leader not in isr:
        return ErrorCode.INVALID_REQUEST
    if asked.leader_recovery_state not in (RECOVERED, RECOVERING):
        return ErrorCode.INVALID_REQUEST
    recovers = asked.leader_recovery_state == RECOVERING
    if recovers and (len(isr) > 1 or partition.leader_recovery_state == RECOVERED):
        return ErrorCode.INVALID_REQUEST
    for broker_id, epoch in epochs.items():
        broker = state.image.brokers.get(broker_id)
        if broker is None or not broker.is_active or epoch not in (_UNKNOWN_EPOCH, broker.epoch):
            return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE
