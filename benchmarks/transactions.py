"""Transactions per CPU second of a broker, Tailrace and Apache Kafka: `python -m benchmarks.transactions`.

Producers, each with a connection, write one small batch per transaction and commit it: two requests in the protocol of
Kafka 4, three in the one before. The CPU time of the broker's process is read from /proc; Kafka is warmed up first.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tailrace.protocol import messages as m
from tests.support.batches import batch
from tests.support.confluent import create_topic
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_install import KafkaUnavailable, kafka_installation
from tests.support.raw_client import RawClient
from tests.support.tailrace_process import TailraceProcess

PRODUCERS = 16
_CONCURRENT = 51
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


class Producer:
    def __init__(self, bootstrap: str, number: int) -> None:
        self.client = RawClient(bootstrap)
        self.transactional_id = f"bench-{number}"
        self.partition = number % 4
        self.now_ms = int(time.time() * 1000)
        find = m.FindCoordinatorRequest(key_type=1, coordinator_keys=[self.transactional_id])
        while self.client.ask(find, 4).coordinators[0].error_code:
            time.sleep(0.2)
        request = m.InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=60_000)
        while (reported := self.client.ask(request, 5)).error_code:
            time.sleep(0.2)
        self.producer_id, self.epoch, self.sequence = reported.producer_id, reported.producer_epoch, 0
        self._asked: tuple[Any, int] = (request, 5)

    def send(self, request: Any, version: int) -> None:
        self._asked = request, version
        self.client.send(request, version)

    def receive(self) -> tuple[Any, bool]:
        """Return a response, and True if the request has to be sent again."""
        request, version = self._asked
        answer = self.client.receive(request.SCHEMA.api_key, version)
        code = _code(answer)
        assert code in (0, _CONCURRENT), f"{request.SCHEMA.name}: {code}"
        return answer, code == _CONCURRENT

    def add(self) -> None:
        topic = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="bench", partitions=[self.partition])
        self.send(
            m.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=[topic],
            ),
            3,
        )

    def produce(self, version: int) -> None:
        records = batch(
            b"v" * 100,
            timestamp=self.now_ms,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            sequence=self.sequence,
            transactional=True,
        )
        part = m.ProduceRequest.PartitionProduceData(index=self.partition, records=records)
        topic = m.ProduceRequest.TopicProduceData(name="bench", partition_data=[part])
        request = m.ProduceRequest(
            transactional_id=self.transactional_id, acks=-1, timeout_ms=10_000, topic_data=[topic]
        )
        self.send(request, version)

    def end(self, version: int) -> None:
        self.send(
            m.EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                committed=True,
            ),
            version,
        )

    def ended(self, answer: Any, version: int) -> None:
        self.sequence += 1
        if version >= 5:
            self.producer_id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0


def _code(answer: Any) -> int:
    if hasattr(answer, "responses"):
        return int(answer.responses[0].partition_responses[0].error_code)
    if hasattr(answer, "results_by_topic_v3_and_below") and answer.results_by_topic_v3_and_below:
        return int(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)
    return int(answer.error_code)


def _round(producers: list[Producer], version: int) -> None:
    """Run one transaction of each producer."""
    steps = ["add", "produce", "end"] if version < 5 else ["produce", "end"]
    for step in steps:
        waiting = producers
        while waiting:
            for one in waiting:
                if step == "add":
                    one.add()
                elif step == "produce":
                    one.produce(12 if version >= 5 else 9)
                else:
                    one.end(version)
            again = []
            for one in waiting:
                answer, is_busy = one.receive()
                if is_busy:
                    again.append(one)
                elif step == "end":
                    one.ended(answer, version)
            waiting = again


@contextmanager
def _broker(name: str, directory: Path) -> Iterator[KafkaBroker | TailraceProcess]:
    if name == "Kafka":
        with KafkaBroker(kafka_installation(), directory / "kafka") as kafka:
            yield kafka
    else:
        with TailraceProcess(directory / "ours" / "data", "-o", "transaction.state.log.num.partitions=1") as ours:
            yield ours


def measure(name: str, rounds: int, warm_up: int, directory: Path) -> dict[str, float]:
    """Return transactions per CPU second, by protocol."""
    found = {}
    with _broker(name, directory) as broker:
        create_topic(broker.bootstrap, "bench", 4)
        assert broker.process is not None
        producers = [Producer(broker.bootstrap, number) for number in range(PRODUCERS)]
        for protocol, version in (("Kafka 4 (KIP-890)", 5), ("before", 4)):
            for _ in range(warm_up):
                _round(producers, version)
            before = cpu_s(broker.process.pid)
            for _ in range(rounds):
                _round(producers, version)
            used = cpu_s(broker.process.pid) - before
            found[protocol] = rounds * PRODUCERS / used
    return found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300, help=f"of {PRODUCERS} transactions each")
    parser.add_argument("--warm-up", type=int, default=1500, help="rounds before Kafka is measured")
    parser.add_argument("--only", choices=["Tailrace", "Kafka"])
    options = parser.parse_args(arguments)
    results = {}
    with tempfile.TemporaryDirectory() as directory:
        for name in ("Tailrace", "Kafka"):
            if options.only not in (None, name):
                continue
            warm_up = options.warm_up if name == "Kafka" else 20
            try:
                results[name] = measure(name, options.rounds, warm_up, Path(directory))
            except KafkaUnavailable as why:
                print(f"left out: {why}", file=sys.stderr)
    print("| protocol | " + " | ".join(results) + " |")
    print("|---|" + "---:|" * len(results))
    for protocol in next(iter(results.values())):
        print(f"| {protocol} | " + " | ".join(f"{one[protocol]:,.0f}" for one in results.values()) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
