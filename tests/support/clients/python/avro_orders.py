"""Write or read orders in Avro with confluent-kafka's serializers and a schema registry.

avro_orders.py BOOTSTRAP REGISTRY TOPIC write|read COUNT
"""

import json
import sys

from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

bootstrap, url, topic, action, count = sys.argv[1:]
registry = SchemaRegistryClient({"url": url})
context = SerializationContext(topic, MessageField.VALUE)
schema = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "number", "type": "long"}, {"name": "what", "type": "string"}],
}


def write() -> None:
    serialize = AvroSerializer(registry, json.dumps(schema))
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(int(count)):
        producer.produce(topic, serialize({"number": number, "what": "two coffees"}, context))
    assert producer.flush(60) == 0


def read() -> None:
    deserialize = AvroDeserializer(registry)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    for _ in range(int(count)):
        message = consumer.poll(60)
        print(json.dumps(deserialize(message.value(), context)))
    consumer.close()


if __name__ == "__main__":
    {"write": write, "read": read}[action]()
