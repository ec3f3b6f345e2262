"""A member of a consumer group, with one of several Python clients: reads, commits, and prints its events.

    group_member.py CLIENT BOOTSTRAP GROUP TOPIC STRATEGY SESSION_MS

One line of JSON per event on standard output, with the time of the system's monotonic clock: assigned, revoked, lost,
read (partition, offset), committed (partition, offset), refused (a refused commit). Ends cleanly on SIGTERM.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from typing import Any

CLIENT, BOOTSTRAP, GROUP, TOPIC, STRATEGY, SESSION_MS = sys.argv[1:7]
SESSION = int(SESSION_MS)
_stopped = False


def report(event: str, **facts: Any) -> None:
    line = json.dumps({"event": event, "at": time.monotonic(), **facts}) + "\n"
    os.write(1, line.encode())


def stop(*_: Any) -> None:
    global _stopped
    _stopped = True


def librdkafka() -> None:
    from confluent_kafka import Consumer, KafkaException

    is_new_protocol = CLIENT == "librdkafka-consumer"
    consumer = Consumer(
        {
            "bootstrap.servers": BOOTSTRAP,
            "group.id": GROUP,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 1000,
            **(
                {"group.protocol": "consumer"}
                if is_new_protocol
                else {
                    "partition.assignment.strategy": STRATEGY,
                    "session.timeout.ms": SESSION,
                    "heartbeat.interval.ms": SESSION // 5,
                }
            ),
        }
    )
    is_cooperative = is_new_protocol or STRATEGY.startswith("cooperative")

    def assigned(consumer: Any, partitions: Any) -> None:
        report("assigned", partitions=[one.partition for one in partitions])
        (consumer.incremental_assign if is_cooperative else consumer.assign)(partitions)

    def revoked(consumer: Any, partitions: Any) -> None:
        report("revoked", partitions=[one.partition for one in partitions])
        if is_cooperative:
            consumer.incremental_unassign(partitions)
        else:
            consumer.unassign()

    def lost(_: Any, partitions: Any) -> None:
        report("revoked", partitions=[one.partition for one in partitions], lost=True)

    consumer.subscribe([TOPIC], on_assign=assigned, on_revoke=revoked, on_lost=lost)
    while not _stopped:
        message = consumer.poll(0.1)
        if message is None or message.error():
            continue
        report("read", partition=message.partition(), offset=message.offset())
        try:
            consumer.commit(message, asynchronous=False)
            report("committed", partition=message.partition(), offset=message.offset() + 1)
        except KafkaException as error:
            report("refused", why=error.args[0].name())
    consumer.close()


def kafka_python() -> None:
    from kafka import ConsumerRebalanceListener, KafkaConsumer
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.errors import KafkaError

    consumer = KafkaConsumer(
        bootstrap_servers=BOOTSTRAP,
        group_id=GROUP,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        partition_assignment_strategy=[RangePartitionAssignor],
        session_timeout_ms=SESSION,
        heartbeat_interval_ms=SESSION // 5,
        max_poll_interval_ms=max(SESSION * 2, 10_000),
    )

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_assigned(self, assigned: Any) -> None:
            report("assigned", partitions=[one.partition for one in assigned])

        def on_partitions_revoked(self, revoked: Any) -> None:
            report("revoked", partitions=[one.partition for one in revoked])

    consumer.subscribe([TOPIC], listener=Listener())
    while not _stopped:
        for records in consumer.poll(100, max_records=1).values():
            for record in records:
                report("read", partition=record.partition, offset=record.offset)
                try:
                    consumer.commit()
                    report("committed", partition=record.partition, offset=record.offset + 1)
                except KafkaError as error:
                    report("refused", why=type(error).__name__)
    consumer.close()


async def aio_kafka() -> None:
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.errors import KafkaError

    consumer = AIOKafkaConsumer(
        bootstrap_servers=BOOTSTRAP,
        group_id=GROUP,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        partition_assignment_strategy=[RangePartitionAssignor],
        session_timeout_ms=SESSION,
        heartbeat_interval_ms=SESSION // 5,
    )

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_assigned(self, assigned: Any) -> None:
            report("assigned", partitions=[one.partition for one in assigned])

        async def on_partitions_revoked(self, revoked: Any) -> None:
            report("revoked", partitions=[one.partition for one in revoked])

    consumer.subscribe([TOPIC], listener=Listener())
    await consumer.start()
    while not _stopped:
        for records in (await consumer.getmany(timeout_ms=100, max_records=1)).values():
            for record in records:
                report("read", partition=record.partition, offset=record.offset)
                try:
                    await consumer.commit()
                    report("committed", partition=record.partition, offset=record.offset + 1)
                except KafkaError as error:
                    report("refused", why=type(error).__name__)
    await consumer.stop()


signal.signal(signal.SIGTERM, stop)
if CLIENT.startswith("librdkafka"):
    librdkafka()
elif CLIENT == "kafka-python":
    kafka_python()
else:
    asyncio.run(aio_kafka())
