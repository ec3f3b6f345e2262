"""The events of a cluster as one broker receives them, in virtual time: every other broker is restarted in turn.

For each restart the controller writes the same batches as in reality. The broker leaves: it leaves every ISR, and the
next in-sync replicas lead. It registers again, is unfenced, rejoins the ISRs that leaders propose, and leads its
preferred partitions again. All of this passes through the broker's observer, image, publisher, replicas and fetchers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.scale.child import freeze_heap
from benchmarks.scale.member import PlayedCluster, open_member
from benchmarks.scale.world import World, topic_id
from tailrace.protocol import messages as m
from tailrace.protocol.message import Message

PER_BATCH = 1_000  # largest number of partition changes that a controller writes at once
PROPOSED = 50  # number of partitions whose leaders propose an ISR change at about the same time


def _changes(
    world: World, broker_id: int, replicas: Sequence[tuple[int, int, list[int]]], *, leaves: bool, leads: bool
) -> Iterator[Message]:
    for topic, partition, assigned in replicas:
        was_leader = assigned[0] == broker_id
        isr = [one for one in assigned if one != broker_id] if leaves else assigned
        what: dict[str, Any] = {} if leads else {"isr": isr}
        if was_leader and (leaves or leads):
            what["leader"] = isr[0]
        if what and (not leads or was_leader):
            yield m.PartitionChangeRecord(topic_id=topic_id(topic), partition_id=partition, **what)


def _batches(records: Iterator[Message], size: int) -> Iterator[list[Message]]:
    batch: list[Message] = []
    for record in records:
        batch.append(record)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def rolling_restart(directory: str, brokers: int, partitions: int, restarted: int) -> dict[str, float]:
    """Restart some of the other brokers. The figures are for all restarts; CPU time is that of broker 0."""
    world = World(brokers, partitions)
    hosted: dict[int, list[tuple[int, int, list[int]]]] = {one: [] for one in range(1, restarted + 1)}
    for topic in range(world.topics):
        for partition in range(world.partitions_per_topic):
            assigned = world.replicas(topic, partition)
            for one in assigned:
                if one in hosted:
                    hosted[one].append((topic, partition, assigned))
    cluster = PlayedCluster()
    broker = open_member(Path(directory), cluster)
    freeze_heap()
    cluster.answer(broker.outbox.take_requests())
    records = deltas = size = 0
    longest_s = cpu_s = 0.0
    for broker_id, replicas in hosted.items():
        epoch = broker.services.controller.image.brokers[broker_id].epoch
        change = m.BrokerRegistrationChangeRecord
        back = world.broker(broker_id)
        back.broker_epoch = epoch + 1  # type: ignore[attr-defined]
        back.fenced = True  # type: ignore[attr-defined]
        steps = [
            [change(broker_id=broker_id, broker_epoch=epoch, in_controlled_shutdown=1)],
            *_batches(_changes(world, broker_id, replicas, leaves=True, leads=False), PER_BATCH),
            [change(broker_id=broker_id, broker_epoch=epoch, fenced=1)],
            [back],
            [change(broker_id=broker_id, broker_epoch=epoch + 1, fenced=-1)],
            *_batches(_changes(world, broker_id, replicas, leaves=False, leads=False), PROPOSED),
            *_batches(_changes(world, broker_id, replicas, leaves=False, leads=True), PER_BATCH),
        ]
        for step in steps:
            records += len(step)
            deltas += 1
            size += cluster.add([step])
            began = time.process_time()
            cluster.deliver()
            broker.tick(cluster.now_ms)
            taken_s = time.process_time() - began
            cpu_s += taken_s
            longest_s = max(longest_s, taken_s)
            cluster.now_ms += 100
            cluster.answer(broker.outbox.take_requests())
    broker.abandon()
    return {
        "restarted": restarted,
        "records": records,
        "deltas": deltas,
        "bytes": size,
        "cpu_s": cpu_s,
        "longest_ms": longest_s * 1000,
        "us_per_record": cpu_s / records * 1e6,
    }
