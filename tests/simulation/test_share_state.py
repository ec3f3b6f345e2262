"""The leader of a share partition persists acknowledgements while the coordinator of their state moves, restarts or is
cut off.

Requests are lost before or after they were carried out. An acknowledgement that was reported as persisted stays
persisted.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from tailrace.broker.cluster.share_state_peers import ShareStatePeers
from tailrace.broker.shares.share_persister import SharePersister
from tailrace.coordinator.shard import CoordinatorRecord, StateChange
from tailrace.metadata.image.image import MetadataImage
from tailrace.metadata.image.registrations import BrokerRegistration, Endpoint
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import WriteShareGroupStateRequest, WriteShareGroupStateResponse
from tailrace.shares.state.persisted_state import SharePartitionKey, ShareWrite, StateBatch, state_batches
from tailrace.shares.state.share_state_shard import ShareStateSettings, ShareStateShard
from tailrace.waiting.outbox import Failure, Outbox, OutgoingRequest
from tests.unit.coordinator.consumers import image_of, topic_id

KEY = SharePartitionKey("g", topic_id("t"), 0)
ACKNOWLEDGED = 2
_MOVED = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE)


class Keeper:
    """The log of one partition of `__share_group_state`, and its leader: this broker (1), another broker, or none."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.coordinator = 2
        self.records: list[CoordinatorRecord] = []
        self.starts: list[int] = []
        self.load()
        self.apply(self.shard.initialize(KEY, 0, 0, 0))

    def load(self) -> None:
        self.shard = ShareStateShard(ShareStateSettings(updates_per_snapshot=5), lambda: image_of({"t": 1}))
        for record in self.records:
            self.shard.replay(record, -1, -1)

    def apply(self, change: StateChange[ErrorCode]) -> None:
        for record in change.records:
            stored = record._replace(offset=len(self.records))
            self.records.append(stored)
            self.shard.replay(stored, -1, -1)
        self.starts.append(self.shard.states[KEY].start_offset)

    # The interface of ShareCoordinator for state on this broker

    def coordinator_of(self, key: SharePartitionKey) -> int:
        return self.coordinator

    def write(self, key: SharePartitionKey, write: ShareWrite, answer: Any, refuse: Any, now_ms: int) -> None:
        if self.dice.random() < 0.3:
            refuse(KafkaError(self.dice.choice(_MOVED)), now_ms)
        else:
            self.apply(self.shard.write(key, write, now_ms))
            answer(ErrorCode.NONE, now_ms)


class Leader:
    """The writes of a share partition's leader: completed offsets, and the start offset after them."""

    def __init__(self, keeper: Keeper, persister: SharePersister, dice: random.Random) -> None:
        self.keeper, self.persister, self.dice = keeper, persister, dice
        self.next = self.start = 0
        self.done: set[int] = set()

    def acknowledge(self, now_ms: int) -> None:
        first, last = self.next, self.next + self.dice.randrange(3)
        self.next = last + 1

        def answered(_: Any, now_ms: int) -> None:
            self.done.update(range(first, last + 1))
            while self.start in self.done:
                self.start += 1

        write = ShareWrite(0, 0, self.start, 0, (StateBatch(first, last, ACKNOWLEDGED, 1),))
        self.persister.write(KEY, write, answered, lambda error, now_ms: None, now_ms)


def carry_out(keeper: Keeper, request: OutgoingRequest, now_ms: int) -> None:
    """Lose a request, or carry it out at the coordinator."""
    dice, body = keeper.dice, request.body
    assert isinstance(body, WriteShareGroupStateRequest)
    if dice.random() < 0.2:
        request.failed(dice.choice([Failure.LOST, Failure.UNREACHABLE, Failure.TIMED_OUT]), now_ms)
        return
    is_there = keeper.coordinator == 2 and dice.random() < 0.8
    code = ErrorCode.NONE if is_there else dice.choice(_MOVED)
    if is_there:
        (asked,) = body.topics[0].partitions
        write = ShareWrite(
            asked.state_epoch,
            asked.leader_epoch,
            asked.start_offset,
            asked.delivery_complete_count,
            state_batches(asked.state_batches),
        )
        keeper.apply(keeper.shard.write(KEY, write, now_ms))
    if dice.random() < 0.2:
        request.failed(Failure.LOST, now_ms)  # the request may have been carried out
        return
    response = WriteShareGroupStateResponse
    part = response.PartitionResult(partition=0, error_code=code)
    request.answered(
        response(results=[response.WriteStateResult(topic_id=KEY.topic_id, partitions=[part])]),
        now_ms,
    )


@pytest.mark.parametrize("seed", range(6))
def test_persisted_acknowledgements_survive_moves_of_the_state_coordinator(seed: int) -> None:
    dice = random.Random(seed)
    keeper: Any = Keeper(dice)
    outbox = Outbox()
    endpoints = {"INSIDE": Endpoint("INSIDE", "127.0.0.1", 9002)}
    image = MetadataImage(brokers={2: BrokerRegistration(id=2, epoch=1, incarnation_id=bytes(16), endpoints=endpoints)})
    peers = ShareStatePeers(outbox, lambda: image, listener="INSIDE", node_id=1, timeout_ms=1_000)
    persister = SharePersister(keeper, peers)
    leader = Leader(keeper, persister, dice)
    on_the_way: list[OutgoingRequest] = []
    for now_ms in range(0, 25_000, 10):
        if dice.random() < 0.05:
            keeper.coordinator = dice.choice([1, 2, -1])
            keeper.load()
        if now_ms < 5_000 and dice.random() < 0.3:
            leader.acknowledge(now_ms)
        persister.tick(now_ms)
        on_the_way += outbox.take_requests()
        while on_the_way and dice.random() < 0.5:
            carry_out(keeper, on_the_way.pop(0), now_ms)
        on_the_way += outbox.take_requests()
        if now_ms % 200:
            continue
        kept = keeper.shard.states[KEY]
        known = {at for one in kept.batches for at in range(one.first_offset, one.last_offset + 1)}
        assert all(offset < kept.start_offset or offset in known for offset in leader.done)
    assert keeper.starts == sorted(keeper.starts)  # the start offset never moves back
    assert leader.done == set(range(leader.next))
    assert leader.next > 100
