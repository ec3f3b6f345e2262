"""RandomPlay: both brokers with the settings of a seed, and a random sequence of requests to them.

    play(kafka_installation(), directory, seed=7, steps=400)

The same seed draws the same settings, topics and requests. A difference is a `Different` with the seed and the last
requests.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Final

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.startup.open_broker import open_broker
from tailrace.protocol import messages as m
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.errors import ProtocolError
from tests.support.api_twins import KafkaSide, OurSide
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_install import KafkaInstallation
from tests.support.memory_files import MemoryFiles
from tests.support.random_requests.data_requests import DataRequests, Drawn
from tests.support.random_requests.offset_requests import OffsetRequests
from tests.support.random_requests.random_twins import Damage, Different, RandomTwins
from tests.support.random_requests.settings import FIXED, HOUR_MS, Topic, draw_broker_settings, draw_topics

TRANSACTIONS: Final = ("tx-0", "tx-1")
_LONGEST_WAIT_MS: Final = 50
_ENDED: Final = ("Empty", "CompleteCommit", "CompleteAbort")


def play(kafka: KafkaInstallation, directory: Path, *, seed: int, steps: int) -> int:
    """Return the number of compared responses."""
    dice = Random(seed)
    settings = draw_broker_settings(dice)
    topics = draw_topics(dice, settings)
    drawn = {name: value for name, value in settings.items() if FIXED.get(name) != value}
    try:
        with KafkaBroker(kafka, directory, properties=settings) as broker:
            twins = RandomTwins(KafkaSide(broker.port), OurSide(_open(broker.properties)))
            one = RandomPlay(dice, twins, settings, topics)
            try:
                one.run(steps)
            finally:
                twins.close()
            return twins.compared
    except Different as error:
        reported = [f"{topic.name} ({topic.partitions}): {topic.config}" for topic in topics]
        again = f"python -m tests.support.random_requests {seed} --steps {steps}"
        raise Different("\n".join([f"seed {seed} ({again})", str(drawn), *reported, str(error)])) from None


def _open(properties: dict[str, str]) -> Any:
    ids = count(1_000_000)
    return open_broker(
        MemoryFiles(),
        BrokerConfig(properties),
        now_ms=int(time.time() * 1000),
        new_id=lambda: next(ids).to_bytes(16, "big"),
        next_int=lambda limit: next(ids) % limit,
    )


class RandomPlay:
    def __init__(self, dice: Random, twins: RandomTwins, settings: dict[str, str], topics: list[Topic]) -> None:
        self._dice = dice
        self._twins = twins
        self._topics = topics
        start_ms = int(time.time() * 1000) // 1000 * 1000
        self._data = DataRequests(dice, topics, start_ms)
        self._offsets = OffsetRequests(dice, self._data, int(settings.get("offset.metadata.max.bytes", "4096")))
        timed = frozenset(topic.name for topic in topics if topic.has_append_time)
        for side in twins.sides:
            side.answers.append_time_topics = timed
            side.answers.marker_times = range(start_ms + 4, start_ms + HOUR_MS // 6)

    def run(self, steps: int) -> None:
        self._prepare()
        actions: list[tuple[Callable[[], None], int]] = [
            (self._produce, 30),
            (self._fetch, 30),
            (self._list_offsets, 10),
            (self._delete_records, 1),
            (self._epoch_end, 2),
            (self._commit, 10),
            (self._fetch_offsets, 10),
            (self._delete_offsets, 1),
            (self._produce_in_transaction, 8),
            (self._commit_in_transaction, 4),
            (self._add_partitions, 2),
            (self._end_transaction, 4),
            (self._init_producer, 1),
        ]
        weights = [weight for _, weight in actions]
        for _ in range(steps):
            self._dice.choices(actions, weights)[0][0]()

    # Preparation

    def _prepare(self) -> None:
        wanted = [
            m.CreateTopicsRequest.CreatableTopic(
                name=topic.name,
                num_partitions=topic.partitions,
                replication_factor=1,
                configs=[
                    m.CreateTopicsRequest.CreatableTopicConfig(name=name, value=value)
                    for name, value in topic.config.items()
                ],
            )
            for topic in self._topics
        ]
        for side in self._twins.sides:
            for kind in (0, 1):
                _until(lambda side=side, kind=kind: self._has_coordinator(side, kind))
            answer = side.ask(m.CreateTopicsRequest(topics=wanted, timeout_ms=30_000), 7)
            assert not any(one.error_code for one in answer.topics), answer
            asked = m.OffsetFetchRequest(group_id="any", topics=None)
            _until(lambda side=side, asked=asked: side.ask(asked, 2).error_code == 0)
        self._twins.learn_topics()
        _until(self._are_led)
        self._offsets.join(self._twins, self._topics[0].name)
        for name in TRANSACTIONS:
            self._init(name)

    @staticmethod
    def _has_coordinator(side: Any, kind: int) -> bool:
        return bool(side.ask(m.FindCoordinatorRequest(key="any", key_type=kind), 1).error_code == 0)

    def _are_led(self) -> bool:
        """Return True if Kafka leads all partitions: it shows a topic a moment before."""
        topics = [
            m.ListOffsetsRequest.ListOffsetsTopic(
                name=topic.name,
                partitions=[
                    m.ListOffsetsRequest.ListOffsetsPartition(partition_index=number, timestamp=-1)
                    for number in range(topic.partitions)
                ],
            )
            for topic in self._topics
        ]
        answer = self._twins.kafka.ask(m.ListOffsetsRequest(replica_id=-1, topics=topics), 1)
        return not any(one.error_code for topic in answer.topics for one in topic.partitions)

    # Requests about records

    def _send(self, drawn: Drawn, damage: Damage | None = None) -> tuple[Any, Any] | None:
        return self._twins.ask(drawn.label, drawn.make, drawn.version, damage)

    def _damage(self, drawn: Drawn) -> Damage | None:
        """Return a change of some bytes of the request, rarely, and only one after which no broker waits long."""
        dice = self._dice
        if dice.random() >= 0.03:
            return None
        place, bit, is_cut = dice.random(), 1 << dice.randrange(8), dice.random() < 0.3

        def damage(body: bytearray) -> None:
            if is_cut:
                del body[int(place * len(body)) :]
            elif body:
                body[int(place * len(body))] ^= bit

        request = drawn.make(self._twins.ours)
        body = bytearray(request.encode(drawn.version))
        damage(body)
        try:
            read = type(request).decode(bytes(body), drawn.version)
        except ProtocolError:
            return damage
        return damage if getattr(read, "max_wait_ms", 0) <= _LONGEST_WAIT_MS else None

    def _versions(self, key: ApiKey) -> list[int]:
        return self._twins.versions(key)

    def _produce(self) -> None:
        drawn, sent = self._data.produce(self._versions(ApiKey.PRODUCE))
        damage = self._damage(drawn)
        answers = self._send(drawn, damage)
        if answers is not None and damage is None:
            self._data.produced(sent, answers[1], self._twins.ours.answers.topics)

    def _produce_in_transaction(self) -> None:
        drawn, sent = self._data.produce(self._versions(ApiKey.PRODUCE), self._dice.choice(TRANSACTIONS))
        answers = self._send(drawn)
        if answers is not None:
            self._data.produced(sent, answers[1], self._twins.ours.answers.topics)

    def _fetch(self) -> None:
        drawn, session, epoch = self._data.fetch(self._versions(ApiKey.FETCH))
        damage = self._damage(drawn) if session is None else None
        answers = self._send(drawn, damage)
        if answers is not None:
            self._data.fetched(session, epoch, self._twins.sides, answers)

    def _list_offsets(self) -> None:
        drawn = self._data.list_offsets(self._versions(ApiKey.LIST_OFFSETS))
        self._send(drawn, self._damage(drawn))

    def _delete_records(self) -> None:
        self._send(self._data.delete_records(self._versions(ApiKey.DELETE_RECORDS)))

    def _epoch_end(self) -> None:
        self._send(self._data.epoch_end(self._versions(ApiKey.OFFSET_FOR_LEADER_EPOCH)))

    # Requests about committed offsets

    def _commit(self) -> None:
        drawn = self._offsets.commit(self._versions(ApiKey.OFFSET_COMMIT))
        self._send(drawn, self._damage(drawn))

    def _fetch_offsets(self) -> None:
        drawn = self._offsets.fetch(self._versions(ApiKey.OFFSET_FETCH))
        self._send(drawn, self._damage(drawn))

    def _delete_offsets(self) -> None:
        self._send(self._offsets.delete(self._versions(ApiKey.OFFSET_DELETE)))

    def _commit_in_transaction(self) -> None:
        versions = self._versions(ApiKey.TXN_OFFSET_COMMIT)
        drawn = self._offsets.commit_in_transaction(versions, self._dice.choice(TRANSACTIONS))
        if drawn.version < 5:
            self._send(self._add_offsets(drawn))
        self._send(drawn)

    # Transactions

    def _add_offsets(self, drawn: Drawn) -> Drawn:
        def make(side: Any) -> Any:
            asked = drawn.make(side)
            return m.AddOffsetsToTxnRequest(
                transactional_id=asked.transactional_id, producer_id=asked.producer_id,
                producer_epoch=asked.producer_epoch, group_id=asked.group_id,
            )  # fmt: skip

        return Drawn("AddOffsetsToTxn", make, self._dice.choice(self._versions(ApiKey.ADD_OFFSETS_TO_TXN)))

    def _add_partitions(self) -> None:
        name = self._dice.choice(TRANSACTIONS)
        topic, number = self._data.topic()

        def make(side: Any) -> Any:
            producer_id, epoch = side.producer(name)
            return m.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=producer_id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=[
                    m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[number])
                ],
            )

        versions = [one for one in self._versions(ApiKey.ADD_PARTITIONS_TO_TXN) if one <= 3]
        self._send(Drawn(f"AddPartitionsToTxn {name} {topic} {number}", make, self._dice.choice(versions)))

    def _end_transaction(self) -> None:
        name = self._dice.choice(TRANSACTIONS)
        version = self._dice.choice(self._versions(ApiKey.END_TXN))
        is_commit = self._dice.random() < 0.5

        def make(side: Any) -> Any:
            producer_id, epoch = side.producer(name)
            return m.EndTxnRequest(
                transactional_id=name, producer_id=producer_id, producer_epoch=epoch, committed=is_commit
            )

        answers = self._send(Drawn(f"EndTxn {name} {is_commit=}", make, version))
        self._until_ended(name)
        if answers is not None and version >= 5 and answers[1].error_code == 0:
            for side, answer in zip(self._twins.sides, answers, strict=True):
                self._note(side, name, answer)

    def _until_ended(self, name: str) -> None:
        """Wait until Kafka has written the markers of a transaction that has ended."""
        asked = m.DescribeTransactionsRequest(transactional_ids=[name])
        self._twins.ours.ask(asked, 0)

        def is_over() -> bool:
            (state,) = self._twins.kafka.ask(asked, 0).transaction_states
            return state.error_code != 0 or not state.transaction_state.startswith("Prepare")

        _until(is_over)

    def _init_producer(self) -> None:
        self._init(self._dice.choice(TRANSACTIONS))

    def _init(self, name: str) -> None:
        request = m.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=600_000)
        for side in self._twins.sides:
            answers: list[Any] = []

            def is_given(side: Any = side, answers: list[Any] = answers) -> bool:
                answers.append(side.ask(request, 4))
                return bool(answers[-1].error_code == 0)

            _until(is_given)
            self._note(side, name, answers[-1])

    def _note(self, side: Any, name: str, answer: Any) -> None:
        """Keep the producer id and epoch that a broker has given out."""
        if side.producers.get(name, (-1, -1)) != (answer.producer_id, answer.producer_epoch):
            self._data.new_epoch(name)
        side.producers[name] = (answer.producer_id, answer.producer_epoch)
        side.answers.producers[answer.producer_id] = name


def _until(is_done: Callable[[], bool], patience_s: float = 30) -> None:
    deadline = time.monotonic() + patience_s
    while not is_done():
        assert time.monotonic() < deadline, "not done in time"
        time.sleep(0.01)
