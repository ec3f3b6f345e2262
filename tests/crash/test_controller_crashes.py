"""The controller of a cluster crashes at every write. What it has confirmed, and what observers have read, is kept.

Observers fetch after every step. A broker must never have read a record that its restarted controller does not have,
because no node would ever take it back.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

import pytest

from tailrace.metadata.image.image import MetadataImage
from tailrace.protocol import messages as m
from tailrace.records.batch import split_batches
from tests.support.controller_listener import PlayedController, metadata_fetch
from tests.support.crash_states import DROPPED, CrashPoint, CrashState, crash_points, describe
from tests.support.memory_files import MemoryFiles, memory_files
from tests.support.recording_files import RecordingFiles

SMALL = {"metadata.log.max.record.bytes.between.snapshots": "2500", "unclean.leader.election.interval.ms": "1000"}


def kept(image: MetadataImage) -> tuple[object, ...]:
    """Return what a restart must not change; a restart registers the controller again."""
    return image.topics, image.configs, image.brokers, image.acls, image.client_quotas, image.next_producer_id


@dataclass
class Witness:
    """Facts known outside the controller after each step, with the number of operations of the disk until then."""

    images: dict[int, MetadataImage] = field(default_factory=dict)  # by the end of the log
    batches: dict[int, bytes] = field(default_factory=dict)  # that observers have read, by base offset
    known: list[tuple[int, int, int]] = field(default_factory=list)  # (operations, end of what is known, epoch)

    def look(self, controller: PlayedController, files: RecordingFiles) -> None:
        self.batches |= fetched(controller)
        log = controller.node.services.local_controller.log  # type: ignore[union-attr]
        self.images[log.next_offset] = controller.image
        self.known.append((len(files.trace), log.next_offset, log.epoch))

    def known_at(self, operations: int) -> tuple[int, int]:
        """Return the end of what was confirmed or read, and the epoch."""
        return max(((end, epoch) for made, end, epoch in self.known if made <= operations), default=(0, 0))


def fetched(controller: PlayedController) -> dict[int, bytes]:
    """Read the whole metadata log as an observer. Return the batches by base offset."""
    found: dict[int, bytes] = {}
    offset = last_epoch = epoch = 0
    while True:
        partition = controller.ask(metadata_fetch(offset, last_epoch, epoch), 17).responses[0].partitions[0]
        if partition.current_leader.leader_epoch > epoch:
            epoch = partition.current_leader.leader_epoch
            continue
        assert not partition.error_code
        if not partition.records:
            return found
        for batch in split_batches(bytes(partition.records)):
            found[batch.base_offset] = bytes(batch.view)
            offset, last_epoch = batch.last_offset + 1, batch.leader_epoch


def changes(controller: PlayedController) -> Iterator[None]:
    """Let brokers and administrators change something at each step."""
    brokers = [controller.broker(number) for number in (1, 2, 3)]
    for one in brokers:
        one.register()
        one.heartbeat()
        yield
    first, _, third = brokers
    for name in ("a", "b"):
        controller.create_topic(name, [[1, 2, 3], [2, 3, 1]], min_insync_replicas="2")
        yield
    first.propose("a", [(1, -1), (2, -1)])
    yield
    quota = m.AlterClientQuotasRequest
    entry = quota.EntryData(
        entity=[quota.EntityData(entity_type="user", entity_name="alice")],
        ops=[quota.OpData(key="producer_byte_rate", value=7.0, remove=False)],
    )
    controller.ask(quota(entries=[entry]), 1)
    yield
    controller.ask(m.AllocateProducerIdsRequest(broker_id=1, broker_epoch=first.epoch), 0)
    yield
    third.heartbeat(want_fence=True)
    yield
    third.heartbeat()
    yield
    state = m.DeleteTopicsRequest.DeleteTopicState(name="b")
    controller.ask(m.DeleteTopicsRequest(topics=[state], timeout_ms=1_000), 6)
    yield
    controller.tick(1_000)  # snapshots
    yield
    controller.create_topic("c", [[3, 1]])
    yield
    controller.tick(10_000)  # all sessions expire
    yield


def played(files: RecordingFiles) -> Witness:
    witness = Witness()
    controller = PlayedController(SMALL, files)
    witness.look(controller, files)
    for _ in changes(controller):
        witness.look(controller, files)
    assert len(controller.node.services.local_controller.log.snapshots.ids) > 1  # type: ignore[union-attr]
    return witness


@contextmanager
def silence() -> Iterator[None]:
    logging.getLogger("tailrace").setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logging.getLogger("tailrace").setLevel(logging.NOTSET)


def states_of(point: CrashPoint, *, is_thorough: bool) -> Iterator[CrashState]:
    """Yield the state after a kill of the process, after a power failure that loses all unsynced bytes, and others."""
    yield point.state({})
    yield point.state({index: DROPPED for index, _ in point.pending})
    if is_thorough:
        yield from point.states(Random(point.index))


@pytest.mark.parametrize("is_thorough", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_controller_that_crashes_at_any_write_has_all_that_was_confirmed_or_read(is_thorough: bool) -> None:
    files = RecordingFiles(MemoryFiles().root)
    seen: set[bytes] = set()
    with silence():
        witness = played(files)
        for point in crash_points(files):
            if not is_thorough and point.index % 4:
                continue
            for state in states_of(point, is_thorough=is_thorough):
                key = hashlib.sha256(repr(sorted(state.tree.items())).encode()).digest()
                if key not in seen:
                    seen.add(key)
                    check(state, witness, describe(state, files))
    assert len(seen) > (500 if is_thorough else 50)


def check(state: CrashState, witness: Witness, how: str) -> None:
    """Restart on the state of the disk, and compare the log and the image with what the witness knows."""
    end, epoch = witness.known_at(state.point)
    again = PlayedController(SMALL, memory_files(dict(state.tree)))
    log = again.node.services.local_controller.log  # type: ignore[union-attr]
    assert log.epoch > epoch, how
    now = fetched(again)
    confirmed = {offset: data for offset, data in witness.batches.items() if offset < end}
    assert {offset: now.get(offset) for offset in confirmed} == confirmed, how
    before = [batch for data in now.values() for batch in split_batches(data) if batch.leader_epoch < log.epoch]
    image = witness.images.get(max((one.last_offset + 1 for one in before), default=0))
    if image is not None:
        assert kept(again.image) == kept(image), how
