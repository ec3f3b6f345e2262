"""Bugs of librdkafka that a run of tests/chaos found, each at Apache Kafka and at Tailrace.

If one of these tests fails with a newer librdkafka, the bug is fixed there, and tests/chaos need not avoid it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tailrace.model.errors import ErrorCode
from tailrace.protocol.api_keys import ApiKey
from tailrace.records.batch import split_batches
from tailrace.records.record import iter_records
from tests.support.confluent import create_topic
from tests.support.kafka_broker import KafkaBroker, free_port
from tests.support.rewriting_proxy import Exchange, RewritingProxy
from tests.support.tailrace_process import TailraceProcess

PATIENCE_S = 30.0


class Advertised:
    """A broker that advertises another port."""

    def __init__(self, broker: KafkaBroker | TailraceProcess, port: int) -> None:
        self.broker = broker
        self.port = port
        self.bootstrap = f"127.0.0.1:{port}"


@pytest.fixture(params=[pytest.param("kafka", marks=pytest.mark.kafka), "tailrace"])
def advertised(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Advertised]:
    port = free_port()
    listeners = f"PLAINTEXT://127.0.0.1:{port}"
    broker: KafkaBroker | TailraceProcess
    if request.param == "kafka":
        installation = request.getfixturevalue("kafka")
        broker = KafkaBroker(installation, tmp_path / "kafka", properties={"advertised.listeners": listeners})
    else:
        broker = TailraceProcess(tmp_path / "ours", "-o", f"advertised.listeners={listeners}")
    with broker:
        yield Advertised(broker, port)


class UntimelyAnswers:
    """Responses to three Produce requests that are in flight together.

    The first batch was written, but not acknowledged in time. The second is refused, and so the third is out of order.
    """

    def __init__(self) -> None:
        self.codes: list[int] = []  # of all Produce responses

    def answer(self, exchange: Exchange) -> None:
        if exchange.api_key != ApiKey.PRODUCE:
            exchange.reply(exchange.ask())
        elif self.codes:
            self._reply(exchange, exchange.ask())
        else:
            second = exchange.next()
            third = second.next()
            written = exchange.ask()
            out_of_order = third.ask()
            self._reply(exchange, self._refusal(exchange, written, ErrorCode.REQUEST_TIMED_OUT))
            self._reply(second, self._refusal(second, written, ErrorCode.NOT_ENOUGH_REPLICAS))
            self._reply(third, out_of_order)

    @staticmethod
    def _refusal(exchange: Exchange, answer: bytes, code: ErrorCode) -> bytes:
        response = exchange.decode(answer)
        part = response.responses[0].partition_responses[0]
        part.error_code, part.base_offset, part.log_start_offset = code, -1, -1
        return exchange.encode(response, answer)

    def _reply(self, exchange: Exchange, answer: bytes) -> None:
        self.codes.append(exchange.decode(answer).responses[0].partition_responses[0].error_code)
        exchange.reply(answer)


def test_a_batch_is_written_again_under_a_new_epoch(advertised: Advertised) -> None:
    """librdkafka takes OUT_OF_ORDER_SEQUENCE_NUMBER as proof that no batch in flight was written.

    It bumps its producer epoch and sends every batch in flight again from sequence number 0, even one that timed out. A
    broker cannot recognise that batch: the sequence numbers of two epochs are unrelated.
    """
    answers = UntimelyAnswers()
    errors: list[Any] = []
    with RewritingProxy(advertised.port, advertised.broker.port, answers.answer):
        create_topic(advertised.bootstrap, "renumbered")
        producer = Producer(
            {
                "bootstrap.servers": advertised.bootstrap,
                "enable.idempotence": True,
                "max.in.flight.requests.per.connection": 5,
                "batch.num.messages": 1,
                "linger.ms": 0,
                "retry.backoff.ms": 300,
            }
        )
        for value in (b"first", b"second", b"third"):
            producer.produce("renumbered", value, partition=0, on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(PATIENCE_S) == 0
    assert errors == [None, None, None]
    refused = [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    assert answers.codes == [*refused, *[ErrorCode.NONE] * 3]
    log = (advertised.broker.data / "renumbered-0" / "00000000000000000000.log").read_bytes()
    written = [
        (batch.producer_epoch, batch.base_sequence, [record.value for record in iter_records(batch)])
        for batch in split_batches(log)
    ]
    assert written == [(0, 0, [b"first"]), (1, 0, [b"first"]), (1, 1, [b"second"]), (1, 2, [b"third"])]


class AbsentCoordinator:
    """Names an unreachable node as the group coordinator, as after a broker was killed."""

    NODE_ID = 7

    def __init__(self) -> None:
        self._port = free_port()  # no process listens there
        self.was_asked = threading.Event()

    def answer(self, exchange: Exchange) -> None:
        answer = exchange.ask()
        if exchange.api_key == ApiKey.FIND_COORDINATOR:
            response = exchange.decode(answer)
            found = response.coordinators[0] if exchange.version >= 4 else response
            if b"absent-group" in exchange.frame:
                found.error_code, found.node_id, found.host, found.port = 0, self.NODE_ID, "127.0.0.1", self._port
                answer = exchange.encode(response, answer)
                self.was_asked.set()
        exchange.reply(answer)


@pytest.mark.slow
def test_send_offsets_to_transaction_does_not_return_while_the_group_coordinator_is_away(
    advertised: Advertised,
) -> None:
    """librdkafka never checks the timeout of a request to a group coordinator that it cannot connect to.

    See https://github.com/confluentinc/librdkafka/issues/5456 and /5511, where such a broker has left the metadata.
    """
    timeout_s = 2.0
    coordinator = AbsentCoordinator()
    with RewritingProxy(advertised.port, advertised.broker.port, coordinator.answer):
        create_topic(advertised.bootstrap, "transformed")
        consumer = Consumer({"bootstrap.servers": advertised.bootstrap, "group.id": "absent-group", "log_level": 0})
        group = consumer.consumer_group_metadata()
        consumer.close()
        producer = Producer(
            {"bootstrap.servers": advertised.bootstrap, "transactional.id": "transformer", "log_level": 0}
        )
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        offsets = [TopicPartition("transformed", 0, 1)]
        call = threading.Thread(
            target=producer.send_offsets_to_transaction, args=(offsets, group, timeout_s), daemon=True
        )
        call.start()
        assert coordinator.was_asked.wait(PATIENCE_S)
        call.join(5 * timeout_s)
        assert call.is_alive()
