"""RealController: our own controller, `LocalController` with its listener, in the simulation.

It has the interface of the simulated one. The history that brokers read is what an observer fetches from its metadata
log, so it has only records that are durable. The controller's process is killed and its machine loses power; then it
starts again on its files. Requests are handled late (a slow disk), lost or handled twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tailrace.metadata.image.partition_registration import PartitionRegistration
from tailrace.metadata.storage.record_framing import records_in
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol import messages as m
from tailrace.protocol.message import Message
from tailrace.records.batch import split_batches
from tests.simulation.controller import KEYS, REPLICAS, SESSION_MS, Controller, Metadata, Registered
from tests.simulation.network import Network
from tests.simulation.power import PoweredFiles
from tests.support.controller_listener import PlayedBroker, PlayedController, metadata_fetch

TOPIC = KEYS[0].topic
SETTINGS = {
    "broker.session.timeout.ms": str(SESSION_MS),
    "auto.leader.rebalance.enable": "false",
    "metadata.max.idle.interval.ms": "0",
    "metadata.log.max.record.bytes.between.snapshots": "20000",
}
_FENCED = {1: True, -1: False}
_TICK_MS = 50


class RealController(Controller):
    def __init__(self, network: Network) -> None:
        self._files = PoweredFiles()
        self._starts = 0
        self._offsets: list[int] = []  # of the history's entries
        self._read: dict[int, bytes] = {}  # batches that were read, by base offset
        self._played: PlayedController | None = None
        self._processes = 0  # of brokers
        self.crashes = 0
        self._end = 0  # of the history in the log
        self._position = (0, 0)  # (offset, epoch) of the next fetch
        self._registered: dict[TopicPartition, PartitionRegistration] = {}  # with directories
        self._topic_id = b""
        super().__init__(network)

    @property
    def _node(self) -> PlayedController:
        """Return the controller, after its start if it was down."""
        if self._played is None:
            self._starts += 1
            now_ms, first_id = self._network.now_ms, self._starts * 1_000_000
            self._played = PlayedController(SETTINGS, self._files, now_ms=now_ms, first_id=first_id)
            self._position = 0, 0
            self._pull()
        self._played.now_ms = self._network.now_ms
        return self._played

    def _ask(self, request: Any, version: int) -> Any:
        response = self._node.ask(request, version)
        self._pull()
        if self._random.random() < 0.02:  # a slow disk: requests wait meanwhile
            self.stopped_until_ms = max(self.stopped_until_ms, self._network.now_ms + self._random.choice((5, 50, 300)))
        return response

    def begin(self, broker_ids: Sequence[int]) -> None:
        self._without_elr()
        for broker_id in broker_ids:
            epoch = self.register(broker_id)
            assert epoch is not None
            self.heartbeat(broker_id, epoch, len(self.history))
        assignments = [
            [broker_ids[(n + place) % len(broker_ids)] for place in range(REPLICAS)] for n in range(len(KEYS))
        ]
        self._node.create_topic(TOPIC, assignments)
        self._pull()

    def _without_elr(self) -> None:
        """Turn eligible leader replicas off: the simulated brokers' checks know only the ISR."""
        kind = m.UpdateFeaturesRequest
        update = kind.FeatureUpdateKey(feature="eligible.leader.replicas.version", max_version_level=0, upgrade_type=2)
        self._node.ask(kind(feature_updates=[update], timeout_ms=1_000), 1)

    def replace_active(self, ms: int) -> None:
        """Kill the controller, sometimes with its machine. It starts again after a time."""
        if self._played is not None:
            self.crashes += 1
            self._played.node.abandon()
            self._played = None
        if self._random.random() < 0.5:
            self._files.lose_power(self._random)
        self.stopped_until_ms = self._network.now_ms + ms

    # What brokers read

    def _pull(self) -> None:
        """Read the log as an observer does. After a crash everything that was read must be there again."""
        assert self._played is not None
        offset, last_epoch = self._position
        epoch = self._played.node.services.local_controller.log.epoch  # type: ignore[union-attr]
        while True:
            request = metadata_fetch(offset, last_epoch, epoch)
            partition = self._played.ask(request, 17).responses[0].partitions[0]
            assert not partition.error_code
            assert partition.snapshot_id.epoch < 0
            if not partition.records:
                break
            for batch in split_batches(bytes(partition.records)):
                offset, last_epoch = batch.last_offset + 1, batch.leader_epoch
                known = self._read.setdefault(batch.base_offset, bytes(batch.view))
                assert known == bytes(batch.view), "a record that was read is not in the log any more"
                if not self._end <= batch.base_offset:
                    continue
                if not batch.is_control:
                    for place, record in enumerate(records_in(batch)):
                        self._note(record, batch.base_offset + place)
                self._end = offset
        assert offset >= self._end, "the log is shorter than what was read"
        self._position = offset, last_epoch

    def _note(self, record: Message, offset: int) -> None:
        entry: Metadata | None = None
        if isinstance(record, m.TopicRecord):
            self._topic_id = record.topic_id
        elif isinstance(record, m.RegisterBrokerRecord):
            entry = Metadata(record.broker_id, record.broker_epoch, is_fenced=bool(record.fenced))
            known = Registered(record.broker_epoch, len(self.history) + 1, self._network.now_ms)
            self.brokers[record.broker_id] = known
        elif isinstance(record, m.BrokerRegistrationChangeRecord) and record.fenced in _FENCED:
            is_fenced = _FENCED[record.fenced]
            self.brokers[record.broker_id].is_fenced = is_fenced
            entry = Metadata(record.broker_id, record.broker_epoch, is_fenced)
        elif isinstance(record, m.PartitionRecord | m.PartitionChangeRecord):
            key = TopicPartition(TOPIC, record.partition_id)
            if isinstance(record, m.PartitionRecord):
                state = PartitionRegistration.from_record(record)
            else:
                state = self._registered[key].merge(record)
            self._registered[key] = state
            state = replace(state, directories=(bytes(16),) * len(state.replicas))
            assert self.leaders.setdefault((key, state.leader_epoch), state.leader) == state.leader
            self.states[key] = state
            entry = Metadata(key=key, state=state)
        if entry is not None:
            self.history.append(entry)
            self._offsets.append(offset)

    # Brokers

    def _broker(self, broker_id: int) -> PlayedBroker:
        return self._node.broker(broker_id)

    def register(self, broker_id: int) -> int | None:
        broker = self._broker(broker_id)
        self._processes += 1
        broker.incarnation_id = self._processes.to_bytes(16, "big")
        error = broker.register()
        self._pull()
        if error:
            assert error == ErrorCode.DUPLICATE_BROKER_REGISTRATION, ErrorCode(error)
            return None
        return broker.epoch

    def heartbeat(self, broker_id: int, epoch: int, seen: int, *, wants_fence: bool = False) -> None:
        is_at_end = seen == len(self.history)
        offset = self._end - 1 if is_at_end else self._offsets[seen - 1] if seen else 0
        request = m.BrokerHeartbeatRequest(
            broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=offset, want_fence=wants_fence
        )
        self._ask(request, 1)

    def fence(self, broker_id: int) -> None:
        known = self.brokers[broker_id]
        if not known.is_fenced:
            self.heartbeat(broker_id, known.epoch, len(self.history), wants_fence=True)

    def _watch(self) -> None:
        if self.stopped_until_ms <= self._network.now_ms:
            self._node.node.tick(self._network.now_ms)
            self._pull()
        self._network.after(_TICK_MS, self, self._watch)

    # Partitions

    def move_leader(self, key: TopicPartition, preferred: int | None = None) -> None:
        """Let another broker lead: it becomes the preferred leader, and is elected."""
        state = self.states[key]
        others = [one for one in state.isr if one != state.leader and preferred in (None, one)]
        if self.is_away or not others or state.adding_replicas or state.removing_replicas:
            return
        chosen = self._random.choice(others)
        self._reassign(key, [chosen, *(one for one in state.replicas if one != chosen)])
        kind = m.ElectLeadersRequest
        topics = [kind.TopicPartitions(topic=TOPIC, partitions=[key.partition])]
        self._ask(kind(election_type=0, topic_partitions=topics, timeout_ms=1_000), 2)

    def reassign(self, key: TopicPartition) -> None:
        state = self.states[key]
        if not self.is_away and not state.adding_replicas and not state.removing_replicas:
            self._reassign(key, self._random.sample(sorted(self.brokers), REPLICAS))

    def _reassign(self, key: TopicPartition, replicas: list[int]) -> None:
        kind = m.AlterPartitionReassignmentsRequest
        partition = kind.ReassignablePartition(partition_index=key.partition, replicas=replicas)
        topic = kind.ReassignableTopic(name=TOPIC, partitions=[partition])
        self._ask(kind(topics=[topic], timeout_ms=1_000), 1)

    def respond(
        self, broker_id: int, broker_epoch: int, topics: Sequence[m.AlterPartitionRequest.TopicData]
    ) -> m.AlterPartitionResponse:
        """Handle AlterPartition, sometimes twice: the response is that of the second time."""
        kind = m.AlterPartitionRequest
        real = [kind.TopicData(topic_id=self._topic_id, partitions=one.partitions) for one in topics]
        request = kind(broker_id=broker_id, broker_epoch=broker_epoch, topics=real)
        for _ in range(1 + (self._random.random() < 0.1)):
            response: m.AlterPartitionResponse = self._ask(request, 3)
        for one in response.topics:
            one.topic_id = topics[0].topic_id
        return response
