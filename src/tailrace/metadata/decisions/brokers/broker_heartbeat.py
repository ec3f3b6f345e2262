"""The heartbeat of a broker: fenced, unfenced, or in controlled shutdown, and the state that follows.

    state of the broker      wants …              next state
    fenced                   to shut down         may stop
                             to be unfenced       unfenced, if it has read its own registration
    unfenced                 to be fenced         fenced; may stop if it also wants to shut down
                             to shut down         in controlled shutdown, or may stop if it leads nothing
    controlled shutdown      (anything)           may stop when it leads nothing and all active brokers have read that

A broker in controlled shutdown keeps no leaderships and is in no ISR. It waits until the other brokers know this.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from tailrace.metadata.controller.control_state import ControlState, Plan
from tailrace.metadata.decisions.brokers.broker_registration import (
    check_epoch,
    plan_directories,
    plan_fence,
    plan_leave,
    plan_unfence,
)
from tailrace.model.ids import BrokerId, Offset
from tailrace.protocol import messages
from tailrace.protocol.message import Message


class BrokerState(Enum):
    FENCED = "fenced"
    UNFENCED = "unfenced"
    LEAVING = "in controlled shutdown"
    MAY_STOP = "may stop"

    @property
    def is_fenced(self) -> bool:
        return self in (BrokerState.FENCED, BrokerState.MAY_STOP)


class Progress(NamedTuple):
    """Facts about brokers that are not in the metadata."""

    registered_at: Offset  # the offset of the broker's registration
    leaving_since: Offset | None  # where the controlled shutdown began; None if there is none
    lowest_active: Offset  # all active brokers have read the metadata up to here


def plan_heartbeat(
    state: ControlState, request: messages.BrokerHeartbeatRequest, progress: Progress, *, later: bool = False
) -> Plan[BrokerState]:
    """Plan the changes that a heartbeat causes; the result is the broker's next state. `later`: leave the partitions to
    a sweep."""
    broker_id = request.broker_id
    check_epoch(state, broker_id, request.broker_epoch)
    now = _current(state, broker_id, progress)
    then = _next(state, now, request, progress)
    records: list[Message] = []
    if then is not now:
        if then.is_fenced:
            records += plan_fence(state, broker_id, later=later).records
        elif then is BrokerState.UNFENCED:
            records += plan_unfence(state, broker_id, later=later).records
        else:
            records += plan_leave(state, broker_id, later=later).records
    versions = state.image.record_versions
    if versions.has_directories and request.offline_log_dirs:
        offline = set(request.offline_log_dirs)
        online = tuple(one for one in state.image.brokers[broker_id].directories if one not in offline)
        records += plan_directories(state, broker_id, online=online, later=later).records
    if versions.has_cordoned_directories and request.cordoned_log_dirs is not None:
        records += plan_directories(state, broker_id, cordoned=tuple(request.cordoned_log_dirs)).records
    return Plan(records, then)


def _current(state: ControlState, broker_id: BrokerId, progress: Progress) -> BrokerState:
    if progress.leaving_since is not None:
        return BrokerState.LEAVING
    return BrokerState.FENCED if state.image.brokers[broker_id].fenced else BrokerState.UNFENCED


def _next(
    state: ControlState, now: BrokerState, request: messages.BrokerHeartbeatRequest, progress: Progress
) -> BrokerState:
    if now is BrokerState.FENCED:
        if request.want_shut_down:
            return BrokerState.MAY_STOP
        is_current = request.current_metadata_offset >= progress.registered_at
        return BrokerState.UNFENCED if is_current and not request.want_fence else BrokerState.FENCED
    if now is BrokerState.UNFENCED:
        if request.want_fence:
            return BrokerState.MAY_STOP if request.want_shut_down else BrokerState.FENCED
        if not request.want_shut_down:
            return BrokerState.UNFENCED
        return BrokerState.LEAVING if _leads(state, request.broker_id) else BrokerState.MAY_STOP
    assert progress.leaving_since is not None, "only a broker in controlled shutdown is left"
    if _leads(state, request.broker_id) or progress.leaving_since > progress.lowest_active:
        return BrokerState.LEAVING
    return BrokerState.MAY_STOP


def _leads(state: ControlState, broker_id: BrokerId) -> bool:
    return any(partition.leader == broker_id for _, _, partition in state.image.partitions())
