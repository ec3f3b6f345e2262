"""Blocks of producer ids: each block belongs to one broker and is never allocated again."""

from __future__ import annotations

from typing import Final

from tailrace.metadata.controller.control_state import ControlState, Plan
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import BrokerId
from tailrace.protocol import messages

PRODUCER_ID_BLOCK: Final = 1000
_LONG_MAX: Final = 2**63 - 1


def plan_producer_ids(state: ControlState, broker_id: BrokerId) -> Plan[range]:
    """Plan the allocation of the next block to a registered broker."""
    first = max(state.image.next_producer_id, 0)
    if first > _LONG_MAX - PRODUCER_ID_BLOCK:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "all producer ids (0 to 2^63 - 1) are allocated; this cluster cannot get more",
        )
    broker = state.image.brokers[broker_id]
    record = messages.ProducerIdsRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, next_producer_id=first + PRODUCER_ID_BLOCK
    )
    return Plan([record], range(first, first + PRODUCER_ID_BLOCK))
