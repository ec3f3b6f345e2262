"""Requests of brokers that host thousands of partitions, at the controller listener."""

from __future__ import annotations

from tailrace.broker.handling.request_decoder import ELEMENTS_WHOLE_MAX
from tailrace.protocol import messages as m
from tests.support.controller_listener import PlayedController

PARTITIONS = 5_500  # with three replicas, an ISR of each is more than ELEMENTS_WHOLE_MAX elements


def test_a_leader_of_thousands_of_partitions_changes_all_isrs_in_one_request() -> None:
    controller = PlayedController()
    leader, *_ = controller.brokers(3)
    controller.create_topic("t", [[1, 2, 3]] * PARTITIONS)
    kind = m.AlterPartitionRequest
    topic = controller.image.topics["t"]
    isr = [kind.BrokerState(broker_id=one, broker_epoch=-1) for one in (1, 2)]
    partitions = [
        kind.PartitionData(partition_index=number, new_isr_with_epochs=isr, leader_epoch=one.leader_epoch)
        for number, one in topic.partitions.items()
    ]
    assert len(partitions) * (1 + len(isr)) < ELEMENTS_WHOLE_MAX < len(partitions) * 4
    for states in (isr, [*isr, kind.BrokerState(broker_id=3, broker_epoch=-1)]):
        for one in partitions:
            one.new_isr_with_epochs = states
            one.partition_epoch = controller.image.topics["t"].partitions[one.partition_index].partition_epoch
        request = kind(
            broker_id=1, broker_epoch=leader.epoch, topics=[kind.TopicData(topic_id=topic.id, partitions=partitions)]
        )
        answered = controller.ask(request, 3).topics[0].partitions
        assert {one.error_code for one in answered} == {0}
        assert {len(one.isr) for one in answered} == {len(states)}
        assert len(answered) == PARTITIONS
