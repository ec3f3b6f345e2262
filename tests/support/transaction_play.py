"""TransactionPlay: the same random requests about transactions to Apache Kafka and to Tailrace.

    play = TransactionPlay(twins, seed=7)
    play.run(200)                  # raises PlayDiffers, with the steps so far, where a response differs
    play.compare_logs()            # records of `__transaction_state`, consumers' views, aborted transactions

Producer ids differ between the sides and become numbers in order of their first appearance. Kafka writes markers a
little after its response, so the play waits until none of Kafka's transactions is being completed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import zip_longest
from random import Random
from typing import Any, NamedTuple

from tailrace.protocol import messages as m
from tests.support.api_twins import ApiTwins
from tests.support.batches import batch
from tests.support.transaction_logs import OFFSETS, STATE, fetch_all, log_of, records_of

TOPIC = "played"
PARTITIONS = 3
WAIT_S = 20.0


class PlayDiffers(AssertionError):
    """Kafka and Tailrace respond differently."""


class Slot(NamedTuple):
    """A producer, by its number, and an epoch that some client may use."""

    number: int
    epoch: int


class _Player:
    """One side, with its producer ids in order."""

    def __init__(self, side: Any) -> None:
        self.side = side
        self.ids: list[int] = []

    def number(self, producer_id: int) -> int:
        if producer_id < 0:
            return producer_id
        if producer_id not in self.ids:
            self.ids.append(producer_id)
        return self.ids.index(producer_id)

    def id(self, number: int) -> int:
        return self.ids[number] if 0 <= number < len(self.ids) else 10**12 if number >= 0 else number

    def ask(self, request: Any, version: int) -> Any:
        return self.side.ask(request, version)


class TransactionPlay:
    def __init__(self, twins: ApiTwins, seed: int, *, name: str = "", has_new_clients: bool = True) -> None:
        """`has_new_clients`: some clients use the protocol of KIP-890, for which transaction.version 0 has
        no records.
        """
        self.has_new_clients = has_new_clients
        self.random = Random(seed)
        self.topic = f"{TOPIC}{name}"
        self.players = (_Player(twins.kafka), _Player(twins.ours))
        self.ids = [f"{name}t{number}" for number in range(3)]
        self.group = f"players{name}"
        self.slots: dict[str, list[Slot]] = {one: [] for one in self.ids}
        self.sequences: dict[tuple[int, int, int], int] = {}
        self.steps: list[str] = []
        self.codes: dict[str, set[int]] = {}
        self._prepare(twins)

    def _prepare(self, twins: ApiTwins) -> None:
        topic = m.CreateTopicsRequest.CreatableTopic(name=self.topic, num_partitions=PARTITIONS, replication_factor=1)
        for player in self.players:
            assert not player.ask(m.CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7).topics[0].error_code
            for key_type, key in [(1, self.ids[0]), (0, self.group)]:
                self._find_coordinator(player, key_type, key)
        twins.learn()
        for number in range(PARTITIONS):
            self._await(lambda number=number: fetch_all(self.players[0], self.topic, number), 0)  # type: ignore[misc]
        self._await(lambda: self.players[0].ask(m.DescribeTransactionsRequest(transactional_ids=self.ids), 0), 105)

    def _find_coordinator(self, player: _Player, key_type: int, key: str) -> None:
        self._await(lambda: player.ask(m.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]), 4), 0)

    def _await(self, ask: Callable[[], Any], code: int) -> None:
        """Repeat a request until every error code in the response is `code`."""
        until = time.monotonic() + WAIT_S
        while True:
            answer = ask()
            parts = getattr(answer, "coordinators", None) or getattr(answer, "transaction_states", None) or [answer]
            if all(one.error_code == code for one in parts):
                return
            assert time.monotonic() < until, f"still {answer}"
            time.sleep(0.05)

    # Steps

    def run(self, steps: int) -> None:
        kinds = [
            (self.init, 3), (self.add_partitions, 5), (self.add_partitions_as_broker, 2), (self.add_offsets, 1),
            (self.produce, 8), (self.commit_offsets, 3), (self.end, 6), (self.write_markers, 1), (self.describe, 1),
        ]  # fmt: skip
        weights = [weight for _, weight in kinds]
        for one in self.ids:
            self.init(one)
        for _ in range(steps):
            (step,) = self.random.choices([kind for kind, _ in kinds], weights)
            if self.has_new_clients or step != self.add_partitions_as_broker:
                step()

    def _both(
        self, what: str, version: int, make: Callable[[_Player], Any], plain: Callable[[_Player, Any], Any]
    ) -> Any:
        """Send a request to both sides, and return the response in comparable form."""
        self.steps.append(f"{what} v{version}")
        reported = [plain(player, player.ask(make(player), version)) for player in self.players]
        self.codes.setdefault(what.split()[0], set()).update(_codes(reported[0]))
        self.steps[-1] += f" → {reported[0]}"
        if reported[0] != reported[1]:
            raise PlayDiffers("\n".join([*self.steps[-40:], f"Kafka says {reported[0]}, we say {reported[1]}"]))
        self._wait_for_markers()
        return reported[0]

    def _wait_for_markers(self) -> None:
        """Wait until Kafka has written all pending markers."""
        kafka = self.players[0]
        until = time.monotonic() + WAIT_S
        while True:
            answer = kafka.ask(m.ListTransactionsRequest(state_filters=["PrepareCommit", "PrepareAbort"]), 0)
            if not answer.error_code and not {one.transactional_id for one in answer.transaction_states} & {*self.ids}:
                return
            assert time.monotonic() < until, f"Kafka does not end {answer}"
            time.sleep(0.01)

    def _slot(self, transactional_id: str) -> Slot:
        """Return mostly the newest instance; sometimes an older one, or one that does not exist."""
        known = self.slots[transactional_id]
        others = [slot for one in self.slots.values() for slot in one]
        dice = self.random.random()
        if not others or dice < 0.02:
            return Slot(999, 0)
        slot = self.random.choice(others) if not known or dice < 0.05 else known[-1]
        if known and dice > 0.93:
            slot = self.random.choice(known)
        if dice > 0.97:
            slot = slot._replace(epoch=slot.epoch + self.random.choice([-1, 1, 2]))
        return slot

    def _transactional_id(self) -> str:
        return "never-heard-of" if self.random.random() < 0.02 else self.random.choice(self.ids)

    def _partitions(self) -> list[int]:
        found = self.random.sample(range(PARTITIONS), self.random.randint(1, PARTITIONS))
        return [*found, 99] if self.random.random() < 0.05 else found

    def init(self, one: str | None = None) -> None:
        timeout_ms = self.random.choice([60_000] * 9 + [0, -1, 900_000, 900_001]) if one is None else 60_000
        one = one or self.random.choice(self.ids)
        version = self.random.randint(0, 5)
        expected = self._slot(one) if version >= 3 and self.random.random() < 0.4 else Slot(-1, -1)

        def make(player: _Player) -> Any:
            request = m.InitProducerIdRequest(transactional_id=one, transaction_timeout_ms=timeout_ms)
            if expected.number >= 0:
                request.producer_id, request.producer_epoch = player.id(expected.number), expected.epoch
            return request

        def plain(player: _Player, answer: Any) -> Any:
            return answer.error_code, player.number(answer.producer_id), answer.producer_epoch

        # An open transaction is aborted first; the client retries.
        code, number, epoch = self._both(f"init {one} {timeout_ms} {expected}", version, make, plain)
        if not code:
            self.slots[one].append(Slot(number, epoch))

    def add_partitions(self) -> None:
        one = self._transactional_id()
        slot, partitions = self._slot(one if one in self.slots else self.ids[0]), self._partitions()
        topics = [m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=self.topic, partitions=partitions)]
        if self.random.random() < 0.03:
            topics.append(m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=OFFSETS, partitions=[0]))

        def make(player: _Player) -> Any:
            return m.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=one,
                v3_and_below_producer_id=player.id(slot.number),
                v3_and_below_producer_epoch=slot.epoch,
                v3_and_below_topics=topics,
            )

        self._both(
            f"add {one} {slot} {partitions} {len(topics)}",
            self.random.randint(0, 3),
            make,
            lambda _, answer: _added(answer.results_by_topic_v3_and_below),
        )

    def add_partitions_as_broker(self) -> None:
        asked = []
        for one in self.random.sample(self.ids, self.random.randint(1, 2)):
            asked.append((one, self._slot(one), self._partitions(), self.random.random() < 0.6))

        def make(player: _Player) -> Any:
            return m.AddPartitionsToTxnRequest(
                transactions=[
                    m.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
                        transactional_id=one,
                        producer_id=player.id(slot.number),
                        producer_epoch=slot.epoch,
                        verify_only=only,
                        topics=[
                            m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=self.topic, partitions=partitions)
                        ],
                    )
                    for one, slot, partitions, only in asked
                ]
            )

        def plain(_: _Player, answer: Any) -> Any:
            return answer.error_code, sorted(
                (one.transactional_id, _added(one.topic_results)) for one in answer.results_by_transaction
            )

        self._both(f"addAsBroker {asked}", self.random.randint(4, 5), make, plain)

    def add_offsets(self) -> None:
        one = self._transactional_id()
        slot = self._slot(one if one in self.slots else self.ids[0])

        def make(player: _Player) -> Any:
            return m.AddOffsetsToTxnRequest(
                transactional_id=one,
                producer_id=player.id(slot.number),
                producer_epoch=slot.epoch,
                group_id=self.group,
            )

        self._both(f"addOffsets {one} {slot}", self.random.randint(0, 4), make, lambda _, answer: answer.error_code)

    def commit_offsets(self) -> None:
        one = self._transactional_id()
        slot = self._slot(one if one in self.slots else self.ids[0])
        offset, partition = self.random.randint(0, 1000), self.random.choice([0, 1, 2, 2, 99])
        generation = self.random.choice([-1] * 9 + [3])

        def make(player: _Player) -> Any:
            return m.TxnOffsetCommitRequest(
                transactional_id=one,
                group_id=self.group,
                producer_id=player.id(slot.number),
                producer_epoch=slot.epoch,
                generation_id=generation if version >= 3 else -1,
                topics=[
                    m.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
                        name=self.topic,
                        partitions=[
                            m.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
                                partition_index=partition, committed_offset=offset, committed_metadata="m"
                            )
                        ],
                    )
                ],
            )

        version = self.random.randint(0, 5 if self.has_new_clients else 4)
        self._both(
            f"commitOffsets {one} {slot} {partition}={offset} generation {generation}",
            version,
            make,
            lambda _, answer: [one.error_code for topic in answer.topics for one in topic.partitions],
        )

    def produce(self) -> None:
        one = self.random.choice(self.ids)
        slot, partition = self._slot(one), self.random.choice([0, 1, 2, 2, 99])
        version = self.random.choice(
            [3, 7, 9, 10, 11, 12, 12, 13, 13, 13] if self.has_new_clients else [3, 7, 9, 10, 11]
        )
        place = (slot.number, slot.epoch, partition)
        sequence = self.sequences.get(place, 0)
        if self.random.random() < 0.04:
            sequence = max(sequence + self.random.choice([-1, 1, 5]), 0)
        # Outside a transaction the coordinator is not consulted: an epoch that it never gave out would fence it
        # forever.
        is_transactional = self.random.random() < 0.97 or slot not in self.slots[one]
        transactional_id = None if self.random.random() < 0.02 else one
        values = [f"{len(self.steps)}.{number}".encode() for number in range(self.random.randint(1, 3))]
        now_ms = int(time.time() * 1000)

        def make(player: _Player) -> Any:
            records = batch(
                *values,
                timestamp=now_ms,
                producer_id=player.id(slot.number),
                producer_epoch=slot.epoch,
                sequence=sequence,
                transactional=is_transactional,
            )
            topic = m.ProduceRequest.TopicProduceData(
                partition_data=[m.ProduceRequest.PartitionProduceData(index=partition, records=records)]
            )
            if version >= 13:
                topic.topic_id = player.side.topic_id(self.topic)
            else:
                topic.name = self.topic
            return m.ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=10_000, topic_data=[topic])

        def plain(_: _Player, answer: Any) -> Any:
            (reported,) = answer.responses[0].partition_responses
            return reported.error_code, reported.base_offset, reported.log_start_offset, bool(reported.error_message)

        what = (
            f"produce {transactional_id} {slot} to {partition}, sequence {sequence}, {len(values)} {is_transactional}"
        )
        code, *_ = self._both(what, version, make, plain)
        if not code:
            self.sequences[place] = max(self.sequences.get(place, 0), sequence + len(values))

    def end(self) -> None:
        one = self._transactional_id()
        slot = self._slot(one if one in self.slots else self.ids[0])
        is_commit, version = self.random.random() < 0.6, self.random.choice([0, 1, 2, 3, 4])
        if self.has_new_clients and self.random.random() < 0.5:
            version = 5

        def make(player: _Player) -> Any:
            return m.EndTxnRequest(
                transactional_id=one,
                producer_id=player.id(slot.number),
                producer_epoch=slot.epoch,
                committed=is_commit,
            )

        def plain(player: _Player, answer: Any) -> Any:
            if version < 5:
                return (answer.error_code,)
            return answer.error_code, player.number(answer.producer_id), answer.producer_epoch

        code, *next_identity = self._both(f"end {one} {slot} commit {is_commit}", version, make, plain)
        if not code and next_identity:
            self.slots[one].append(Slot(*next_identity))

    def write_markers(self) -> None:
        """Write markers, like an administrator who aborts a hanging transaction."""
        known = self.slots[self.random.choice(self.ids)]
        if not known:
            return
        slot = self.random.choice(known)  # an epoch that the coordinator has not reached would fence it forever
        partitions, version = self._partitions(), self.random.randint(1, 2)
        # a newer coordinator epoch would fence the coordinator forever
        coordinator_epoch = self.random.choice([0, 0, 0, -1])
        transaction_version = self.random.choice([0, 2]) if version >= 2 else 0

        def make(player: _Player) -> Any:
            return m.WriteTxnMarkersRequest(
                markers=[
                    m.WriteTxnMarkersRequest.WritableTxnMarker(
                        producer_id=player.id(slot.number),
                        producer_epoch=slot.epoch,
                        transaction_result=False,
                        coordinator_epoch=coordinator_epoch,
                        transaction_version=transaction_version,
                        topics=[
                            m.WriteTxnMarkersRequest.WritableTxnMarkerTopic(
                                name=self.topic, partition_indexes=partitions
                            )
                        ],
                    )
                ]
            )

        def plain(player: _Player, answer: Any) -> Any:
            return [
                (
                    player.number(one.producer_id),
                    sorted((part.partition_index, part.error_code) for part in topic.partitions),
                )
                for one in answer.markers
                for topic in one.topics
            ]

        what = f"writeMarkers {slot} {partitions} {coordinator_epoch} {transaction_version}"
        self._both(what, version, make, plain)

    def describe(self) -> None:
        def plain(player: _Player, answer: Any) -> Any:
            return [
                (
                    one.error_code,
                    one.transactional_id,
                    one.transaction_state,
                    one.transaction_timeout_ms,
                    one.transaction_start_time_ms > 0,
                    one.producer_id if one.error_code else player.number(one.producer_id),
                    one.producer_epoch,
                    sorted((topic.topic, sorted(topic.partitions)) for topic in one.topics),
                )
                for one in answer.transaction_states
            ]

        asked = m.DescribeTransactionsRequest(transactional_ids=[*self.ids, "nobody", ""])
        self._both("describe", 0, lambda _: asked, plain)
        filters: dict[str, Any] = {"state_filters": self.random.choice([[], ["Ongoing"], ["Empty", "Nonsense"]])}
        version = self.random.randint(0, 2)
        if version >= 1:
            filters["duration_filter"] = self.random.choice([-1, 0, 10**9])
        if version >= 2:
            filters["transactional_id_pattern"] = self.random.choice([None, "", "t", ".*t[01]", "(", ".*"])
        wanted = self.slots[self.ids[0]][-1:]
        use_ids = bool(wanted) and self.random.random() < 0.3

        def make(player: _Player) -> Any:
            more = {"producer_id_filters": [player.id(one.number) for one in wanted]} if use_ids else {}
            return m.ListTransactionsRequest(**filters, **more)

        def listed(player: _Player, answer: Any) -> Any:
            found = sorted(
                (one.transactional_id, player.number(one.producer_id), one.transaction_state)
                for one in answer.transaction_states
                if one.transactional_id in self.ids
            )
            return answer.error_code, sorted(answer.unknown_state_filters), found

        self._both(f"list {filters} {use_ids}", version, make, listed)

    # Comparison of the logs

    def compare_logs(self) -> None:
        for number in range(PARTITIONS):
            kafka, ours = (log_of(player, self.topic, number) for player in self.players)
            for one, other in zip_longest(kafka, ours):
                assert other == one, f"{self.topic}-{number}\nKafka {one}\nours  {other}"
        for topic in (STATE, OFFSETS):
            for key in self.ids if topic == STATE else [self.group]:
                kafka, ours = (records_of(player, topic, key) for player in self.players)
                for number, (one, other) in enumerate(zip_longest(kafka, ours)):
                    assert other == one, f"{topic}, {key}, {number}:\nKafka {one}\nours  {other}"


def _added(topics: Any) -> Any:
    return sorted(
        (topic.name, sorted((one.partition_index, one.partition_error_code) for one in topic.results_by_partition))
        for topic in topics
    )


def _codes(reported: Any) -> set[int]:
    if isinstance(reported, bool):
        return set()
    if isinstance(reported, int):
        return {reported}
    if isinstance(reported, (list, tuple)):
        return set().union(*(_codes(one) for one in reported)) if reported else set()
    return set()
