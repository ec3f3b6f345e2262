"""Honest clients of every kind, each in a process of its own, which note how long their operations take.

An operation is one round of what the client is for: a delivered record, a record that went through the broker, a
transaction. Errors are noted and the client continues, so that one of them does not hide the next.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

PAUSE_S: Final = 0.02
TIMEOUT_S: Final = 20.0
USER: Final = "honest"
PASSWORD: Final = "secret"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of an honest client."""

    client: str
    at: float  # time.monotonic() when it began
    seconds: float
    error: str = ""


Note = Callable[[Operation], None]


@contextmanager
def noted(client: str, note: Note) -> Iterator[None]:
    """Note how long the block takes, or its error."""
    began = time.monotonic()
    try:
        yield
    except Exception as error:
        note(Operation(client, began, time.monotonic() - began, f"{type(error).__name__}: {error}"[:300]))
        time.sleep(0.5)
    else:
        note(Operation(client, began, time.monotonic() - began))
    time.sleep(PAUSE_S)


def librdkafka(bootstrap: str, **settings: Any) -> dict[str, Any]:
    """Return the settings of a client of librdkafka."""
    login = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN"}
    login |= {"sasl.username": USER, "sasl.password": PASSWORD}
    return {"bootstrap.servers": bootstrap, **login, **settings}


def produce_with_librdkafka(bootstrap: str, note: Note) -> None:
    from confluent_kafka import KafkaException, Producer

    producer = Producer(librdkafka(bootstrap, **{"enable.idempotence": True, "linger.ms": 0}))
    outcomes: list[Any] = []
    while True:
        with noted("librdkafka producer", note):
            outcomes.clear()
            producer.produce("honest", b"value", b"key", on_delivery=lambda error, _: outcomes.append(error))
            if producer.flush(TIMEOUT_S) or outcomes != [None]:
                raise KafkaException(outcomes)


def consume_in_a_group(bootstrap: str, note: Note, protocol: str = "classic") -> None:
    """Produce a record, read it as a member of a group, and commit."""
    from confluent_kafka import Consumer, Producer

    name = f"librdkafka {protocol} group"
    topic = f"honest-{protocol}"
    producer = Producer(librdkafka(bootstrap, **{"linger.ms": 0}))
    settings: dict[str, Any] = {"group.id": f"honest-{protocol}", "auto.offset.reset": "latest"}
    settings |= {"enable.auto.commit": False, "group.protocol": protocol}
    consumer = Consumer(librdkafka(bootstrap, **settings))
    consumer.subscribe([topic])
    deadline = time.monotonic() + TIMEOUT_S
    while not consumer.assignment() and time.monotonic() < deadline:
        consumer.poll(0.2)
    consumer.poll(1.0)
    number = 0
    while True:
        with noted(name, note):
            number += 1
            value = b"%d" % number
            producer.produce(topic, value)
            producer.flush(TIMEOUT_S)
            until = time.monotonic() + TIMEOUT_S
            while True:
                message = consumer.poll(0.5)
                if message is not None and message.error() is None and message.value() == value:
                    break
                if time.monotonic() > until:
                    raise TimeoutError(f"record {number} does not arrive")
            consumer.commit(asynchronous=False)


def consume_in_a_new_group(bootstrap: str, note: Note) -> None:
    """Consume with the protocol of KIP-848."""
    consume_in_a_group(bootstrap, note, "consumer")


def run_transactions(bootstrap: str, note: Note) -> None:
    from confluent_kafka import Producer

    producer = Producer(librdkafka(bootstrap, **{"transactional.id": "honest", "linger.ms": 0}))
    producer.init_transactions(TIMEOUT_S)
    while True:
        with noted("librdkafka transactions", note):
            producer.begin_transaction()
            try:
                producer.produce("honest", b"value")
                producer.commit_transaction(TIMEOUT_S)
            except Exception:
                producer.abort_transaction(TIMEOUT_S)
                raise


def produce_with_kafka_python(bootstrap: str, note: Note) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username=USER,
        sasl_plain_password=PASSWORD,
        acks="all",
    )
    while True:
        with noted("kafka-python producer", note):
            producer.send("honest", b"value").get(TIMEOUT_S)


def produce_with_aiokafka(bootstrap: str, note: Note) -> None:
    from aiokafka import AIOKafkaProducer

    async def run() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_plain_username=USER,
            sasl_plain_password=PASSWORD,
            acks="all",
        )
        await producer.start()
        while True:
            with noted("aiokafka producer", note):
                await asyncio.wait_for(producer.send_and_wait("honest", b"value"), TIMEOUT_S)

    asyncio.run(run())


CLIENTS: Final = (
    produce_with_librdkafka,
    consume_in_a_group,
    consume_in_a_new_group,
    run_transactions,
    produce_with_kafka_python,
    produce_with_aiokafka,
)
TOPICS: Final = ("honest", "honest-classic", "honest-consumer")
