"""Client quotas at Apache Kafka and at Tailrace: the same limits and load give the same throttle times.

The throttle time of the first request of a new client id depends on its size alone, so both return the same
millisecond. Later throttle times depend on the arrival of requests and are compared with a tolerance.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import pytest

from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import (
    AlterClientQuotasRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClientQuotasRequest,
    FetchRequest,
    MetadataRequest,
    ProduceRequest,
)
from tailrace.records.builder import BatchBuilder
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_install import KafkaInstallation
from tests.support.raw_client import RawClient
from tests.support.tailrace_process import TailraceProcess

pytestmark = pytest.mark.kafka

# The windows allow one second's worth at once; more is throttled. This keeps tests short.
WINDOWS = {"quota.window.num": "2", "controller.quota.window.num": "2", "auto.create.topics.enable": "false"}
TOLERANCE_MS = 250
TOPIC = "orders"
PRODUCE, FETCH = "producer_byte_rate", "consumer_byte_rate"
_numbers = count()


class Pair(NamedTuple):
    kafka: str
    ours: str


@pytest.fixture(scope="module")
def pair(kafka: KafkaInstallation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    directory = tmp_path_factory.mktemp("quotas")
    options = [part for key, text in WINDOWS.items() for part in ("-o", f"{key}={text}")]
    with (
        KafkaBroker(kafka, directory / "kafka", properties=WINDOWS) as theirs,
        TailraceProcess(directory / "ours" / "data", *options) as ours,
    ):
        made = Pair(theirs.bootstrap, ours.bootstrap)
        for bootstrap in made:
            create(bootstrap, "any", TOPIC, 1)
            with RawClient(bootstrap) as client:
                for _ in range(20):
                    answer = client.ask(produced(30_000), 12).responses[0].partition_responses[0]
                    if answer.error_code:  # Kafka's broker may learn of the topic a little later
                        time.sleep(0.1)
        yield made
        assert ours.stop() == 0
        assert ours.errors == ""


def new_client_id() -> str:
    return f"client-{next(_numbers)}"


def remove_quotas(bootstrap: str, quota: str, *entities: dict[str, str | None]) -> None:
    entries = [
        AlterClientQuotasRequest.EntryData(
            entity=[
                AlterClientQuotasRequest.EntityData(entity_type=kind.replace("_", "-"), entity_name=name)
                for kind, name in names.items()
            ],
            ops=[AlterClientQuotasRequest.OpData(key=quota, remove=True)],
        )
        for names in entities
    ]
    with RawClient(bootstrap) as client:
        assert not any(one.error_code for one in client.ask(AlterClientQuotasRequest(entries=entries), 1).entries)


def set_quota(bootstrap: str, quota: str, value: float, **names: str | None) -> None:
    entity = [
        AlterClientQuotasRequest.EntityData(entity_type=kind.replace("_", "-"), entity_name=name)
        for kind, name in names.items()
    ]
    entry = AlterClientQuotasRequest.EntryData(
        entity=entity, ops=[AlterClientQuotasRequest.OpData(key=quota, value=value)]
    )
    component = DescribeClientQuotasRequest.ComponentData
    exact = [
        component(entity_type=one.entity_type, match_type=0 if one.entity_name else 1, match=one.entity_name)
        for one in entity
    ]
    with RawClient(bootstrap) as client:
        assert client.ask(AlterClientQuotasRequest(entries=[entry]), 1).entries[0].error_code == 0
        for _ in range(100):
            reported = client.ask(DescribeClientQuotasRequest(components=exact, strict=True), 1).entries
            if any(one.key == quota and one.value == value for found in reported for one in found.values):
                break
            time.sleep(0.05)
    time.sleep(0.1)  # Kafka reports a quota a little before it applies it


def create(bootstrap: str, client_id: str, name: str, partitions: int, version: int = 7) -> Any:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    with RawClient(bootstrap, client_id=client_id) as client:
        return client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), version)


def produced(size: int, acks: int = 1) -> ProduceRequest:
    builder = BatchBuilder()
    builder.append(1_700_000_000_000, b"k", b"v" * size)
    part = ProduceRequest.PartitionProduceData(index=0, records=builder.build())
    topics = [ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[part])]
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=topics)


def fetched(max_bytes: int, offset: int = 0) -> FetchRequest:
    part = FetchRequest.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    topics = [FetchRequest.FetchTopic(topic=TOPIC, partitions=[part])]
    return FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=50_000_000, topics=topics)


def both(pair: Pair, ask: Any) -> tuple[Any, Any]:
    return ask(pair.kafka), ask(pair.ours)


@pytest.mark.parametrize("version", [3, 9, 12])
@pytest.mark.parametrize("acks", [1, -1])
def test_a_first_produce_request_is_throttled_for_its_size(pair: Pair, version: int, acks: int) -> None:
    client_id = new_client_id()

    def pause(bootstrap: str) -> int:
        set_quota(bootstrap, PRODUCE, 50_000, client_id=client_id)
        with RawClient(bootstrap, client_id=client_id) as client:
            answer = client.ask(produced(70_000, acks), version)
            assert answer.responses[0].partition_responses[0].error_code == 0
            return int(answer.throttle_time_ms)

    kafka, ours = both(pair, pause)
    assert (ours, ours > 0) == (kafka, True)


@pytest.mark.parametrize("version", [4, 11, 12])
def test_a_first_fetch_is_throttled_for_the_size_of_its_response(pair: Pair, version: int) -> None:
    client_ids = [new_client_id() for _ in range(4)]

    def answers(bootstrap: str) -> list[tuple[int, int]]:
        got = []
        for client_id, limit in zip(client_ids, (1_000, 20_000, 60_000, 10_000_000), strict=True):
            set_quota(bootstrap, FETCH, limit, client_id=client_id)
            with RawClient(bootstrap, client_id=client_id) as client:
                answer = client.ask(fetched(100_000), version)
                records = [len(one.records or b"") for topic in answer.responses for one in topic.partitions]
                got.append((answer.throttle_time_ms, sum(records)))
        return got

    kafka, ours = both(pair, answers)
    assert ours == kafka
    assert {pause > 0 for pause, _ in ours} == {True, False}


@pytest.mark.slow
def test_a_consumer_reads_at_the_rate_of_its_quota(pair: Pair) -> None:
    client_id = new_client_id()

    def run(bootstrap: str) -> tuple[list[int], float]:
        set_quota(bootstrap, FETCH, 60_000, client_id=client_id)
        offset, sizes, began = 0, [], time.monotonic()
        with RawClient(bootstrap, client_id=client_id) as client:
            while offset < 6:
                answer = client.ask(fetched(31_000, offset), 12)
                if answer.responses:
                    sizes.append(len(answer.responses[0].partitions[0].records))
                    offset += 1
                else:
                    assert answer.throttle_time_ms > 0
        return sizes, time.monotonic() - began

    kafka, ours = both(pair, run)
    assert ours[0] == kafka[0]
    assert ours[1] == pytest.approx(kafka[1], abs=5), "at 60 kB/s with a second's worth in advance, some two seconds"
    assert min(ours[1], kafka[1]) > 1


def test_the_next_request_of_a_paused_connection_waits_and_others_do_not(pair: Pair) -> None:
    client_id, other_id = new_client_id(), new_client_id()

    def run(bootstrap: str) -> tuple[int, float, float]:
        set_quota(bootstrap, PRODUCE, 50_000, client_id=client_id)
        with RawClient(bootstrap, client_id=client_id) as client, RawClient(bootstrap, client_id=other_id) as other:
            began = time.monotonic()
            client.send(produced(100_000), 12)
            client.send(MetadataRequest(topics=[]), 12)  # already in flight when the pause begins
            pause_ms = client.receive(0, 12).throttle_time_ms
            other.ask(MetadataRequest(topics=[]), 12)
            others = time.monotonic() - began
            client.receive(3, 12)
            return pause_ms, time.monotonic() - began, others

    kafka, ours = both(pair, run)
    assert ours[0] == kafka[0] > 900
    for pause_ms, waited_s, others_s in (kafka, ours):
        assert pause_ms / 1000 - 0.05 <= waited_s < pause_ms / 1000 + 10
        assert others_s < waited_s


def test_acks_0_is_throttled_too(pair: Pair) -> None:
    client_id = new_client_id()

    def run(bootstrap: str) -> float:
        set_quota(bootstrap, PRODUCE, 50_000, client_id=client_id)
        with RawClient(bootstrap, client_id=client_id) as client:
            began = time.monotonic()
            client.send(produced(100_000, acks=0), 12)
            client.ask(MetadataRequest(topics=[]), 12)
            return time.monotonic() - began

    for waited_s in both(pair, run):
        assert 0.9 < waited_s < 10


def test_a_connection_that_closes_while_it_is_throttled_leaves_no_state(pair: Pair) -> None:
    client_id = new_client_id()
    for bootstrap in pair:
        set_quota(bootstrap, PRODUCE, 10, client_id=client_id)
        with RawClient(bootstrap, client_id=client_id) as client:
            assert client.ask(produced(1_000), 12).throttle_time_ms > 10_000
        with RawClient(bootstrap, client_id="someone-else") as client:
            assert client.ask(produced(1_000), 12).throttle_time_ms == 0


def test_request_percentage_throttles_for_at_most_one_window(pair: Pair) -> None:
    client_id = new_client_id()

    def run(bootstrap: str) -> int:
        set_quota(bootstrap, "request_percentage", 0.0001, client_id=client_id)
        with RawClient(bootstrap, client_id=client_id) as client:
            return int(client.ask(MetadataRequest(topics=None), 12).throttle_time_ms)

    for pause_ms in both(pair, run):
        assert 0 < pause_ms <= 1000


MUTATION = "controller_mutation_rate"


def compare_mutations(pair: Pair, run: Any) -> list[tuple[Any, int]]:
    """Compare the responses of `run`: pairs of errors, which must be equal, and throttle time, which may differ a
    little.
    """
    began = time.monotonic()
    kafka, ours = both(pair, run)
    took_ms = (time.monotonic() - began) * 1000  # which is subtracted from the throttle time, at both
    assert [errors for errors, _ in ours] == [errors for errors, _ in kafka]
    for (_, kafkas_ms), (_, ours_ms) in zip(kafka, ours, strict=True):
        assert ours_ms == pytest.approx(kafkas_ms, abs=1500 + took_ms)
    return list(ours)


@pytest.mark.parametrize("version", [5, 6, 7])
def test_create_topics_under_a_mutation_quota(pair: Pair, version: int) -> None:
    client_id = new_client_id()

    def run(bootstrap: str) -> list[tuple[int, int]]:
        set_quota(bootstrap, MUTATION, 1, client_id=client_id)
        got = []
        for number in range(2):
            answer = create(bootstrap, client_id, f"{client_id}-{number}", 13, version)
            got.append((answer.topics[0].error_code, answer.throttle_time_ms))
        return got

    ours = compare_mutations(pair, run)
    refused = ErrorCode.THROTTLING_QUOTA_EXCEEDED if version >= 6 else 0
    assert [code for code, _ in ours] == [0, refused]
    assert ours[1][1] > 0


@pytest.mark.parametrize("version", [4, 5, 6])
def test_delete_topics_under_a_mutation_quota(pair: Pair, version: int) -> None:
    client_id = new_client_id()
    names = [f"{client_id}-{number}" for number in range(3)]

    def run(bootstrap: str) -> list[tuple[list[int], int]]:
        for name in names:
            create(bootstrap, "any", name, 8)
        set_quota(bootstrap, MUTATION, 1, client_id=client_id)
        request = DeleteTopicsRequest(topic_names=names, timeout_ms=30_000)
        if version >= 6:
            states = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in names]
            request = DeleteTopicsRequest(topics=states, timeout_ms=30_000)
        with RawClient(bootstrap, client_id=client_id) as client:
            answer = client.ask(request, version)
        return [(sorted(one.error_code for one in answer.responses), answer.throttle_time_ms)]

    ((codes, pause_ms),) = compare_mutations(pair, run)
    assert codes == ([0] + [ErrorCode.THROTTLING_QUOTA_EXCEEDED] * 2 if version >= 5 else [0, 0, 0])
    assert pause_ms > 0


@pytest.mark.parametrize("version", [2, 3])
def test_create_partitions_under_a_mutation_quota(pair: Pair, version: int) -> None:
    client_id = new_client_id()

    def run(bootstrap: str) -> list[tuple[int, int]]:
        create(bootstrap, "any", client_id, 1)
        set_quota(bootstrap, MUTATION, 1, client_id=client_id)
        got = []
        for total in (14, 16):
            topic = CreatePartitionsRequest.CreatePartitionsTopic(name=client_id, count=total, assignments=None)
            with RawClient(bootstrap, client_id=client_id) as client:
                answer = client.ask(CreatePartitionsRequest(topics=[topic], timeout_ms=30_000), version)
            got.append((answer.results[0].error_code, answer.throttle_time_ms))
        return got

    ours = compare_mutations(pair, run)
    assert [code for code, _ in ours] == [0, ErrorCode.THROTTLING_QUOTA_EXCEEDED if version >= 3 else 0]


def test_the_most_specific_quota_applies(pair: Pair) -> None:
    """Quotas are set one after the other, each more specific than those before; the client's use is then counted for
    that quota.
    """
    client_id = new_client_id()
    levels: list[dict[str, str | None]] = [
        {"client_id": client_id},
        {"user": None},
        {"user": None, "client_id": client_id},
        {"user": "ANONYMOUS"},
        {"user": "ANONYMOUS", "client_id": client_id},
    ]

    def run(bootstrap: str) -> list[int]:
        pauses = []
        for number, names in enumerate(levels):
            set_quota(bootstrap, PRODUCE, 40_000 + 5_000 * number, **names)
            with RawClient(bootstrap, client_id=client_id) as client:
                pauses.append(client.ask(produced(80_000), 12).throttle_time_ms)
        remove_quotas(bootstrap, PRODUCE, *levels)  # for the following tests
        return pauses

    kafka, ours = both(pair, run)
    assert ours == pytest.approx(kafka, abs=TOLERANCE_MS)


@pytest.mark.slow
def test_librdkafka_produces_at_the_rate_of_its_quota(pair: Pair) -> None:
    from confluent_kafka import Producer

    client_id = new_client_id()

    def run(bootstrap: str) -> tuple[float, float]:
        set_quota(bootstrap, PRODUCE, 100_000, client_id=client_id)
        pauses: list[float] = []
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": client_id,
                "batch.num.messages": 1,
                "max.in.flight.requests.per.connection": 1,
                "throttle_cb": lambda event: pauses.append(event.throttle_time),
            }
        )
        began = time.monotonic()
        for _ in range(9):
            producer.produce(TOPIC, b"v" * 45_000, partition=0)
        assert producer.flush(60) == 0
        return time.monotonic() - began, sum(pauses)

    (kafkas_s, kafkas_pause_s), (ours_s, ours_pause_s) = both(pair, run)
    assert ours_s == pytest.approx(kafkas_s, abs=1.2), "405 kB, of which 100 kB come at once: some three seconds"
    assert min(kafkas_s, ours_s) > 2
    assert min(kafkas_pause_s, ours_pause_s) > 1


def test_kafka_configs_sets_and_shows_quotas(pair: Pair, kafka: KafkaInstallation) -> None:
    client_id = new_client_id()
    tool = ("kafka.admin.ConfigCommand", "--bootstrap-server", pair.ours)
    entity = ("--entity-type", "clients", "--entity-name", client_id)
    limits = "producer_byte_rate=50000,consumer_byte_rate=2048,request_percentage=150,controller_mutation_rate=3"
    kafka.tool(*tool, "--alter", "--add-config", limits, *entity)
    output = kafka.tool(*tool, "--describe", *entity)
    assert f"Quota configs for client-id '{client_id}' are" in output
    for one in ("producer_byte_rate=50000.0", "consumer_byte_rate=2048.0", "request_percentage=150.0"):
        assert one in output
    with RawClient(pair.ours, client_id=client_id) as client:
        assert client.ask(produced(70_000), 12).throttle_time_ms > 0


@pytest.mark.slow
def test_connections_of_an_address_above_its_rate_are_closed(pair: Pair) -> None:
    names: dict[str, str | None] = {"ip": "127.0.0.1"}

    def run(bootstrap: str) -> tuple[int, float]:
        """Return how many of 30 connections are served, and how long the others are held before they are closed."""
        with RawClient(bootstrap) as admin:  # as long as connections are possible
            admin.ask(MetadataRequest(topics=[]), 12)
            set_quota(bootstrap, "connection_creation_rate", 10, **names)
            time.sleep(2.1)  # the connection that set the quota no longer counts
            began = time.monotonic()
            clients = [RawClient(bootstrap) for _ in range(30)]
            served, last = 0, 0.0
            for client in clients:
                try:
                    client.ask(MetadataRequest(topics=[]), 12)
                    served += 1
                except ConnectionError:
                    last = time.monotonic() - began
                client.close()
        time.sleep(1.1)
        remove_quotas(bootstrap, "connection_creation_rate", names)
        return served, last

    (kafkas, kafkas_s), (ours, ours_s) = both(pair, run)
    assert abs(ours - kafkas) <= 3
    assert 10 <= ours <= 14
    assert 0 < ours_s < 2 > kafkas_s > 0
