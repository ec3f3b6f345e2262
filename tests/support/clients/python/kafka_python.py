"""kafka-python of any age: `kafka_python.py BOOTSTRAP TOPIC CODEC` writes lines to partition 0 and reads all of it."""

from __future__ import annotations

import sys

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

TIMEOUT_MS = 30_000


def main(bootstrap: str, topic: str, codec: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", compression_type=codec, linger_ms=5)
    sent = []
    for line in sys.stdin.read().splitlines():
        key, value = line.encode().split(b":")
        sent.append(producer.send(topic, value, key, partition=0))
    for future in sent:
        future.get(TIMEOUT_MS / 1000)
    producer.close()

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, consumer_timeout_ms=TIMEOUT_MS)
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    end = consumer.end_offsets([partition])[partition]
    for message in consumer:
        print(f"{message.offset} {message.key.decode()}:{message.value.decode()}")
        if message.offset == end - 1:
            break
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
