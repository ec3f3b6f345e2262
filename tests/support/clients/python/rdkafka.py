"""librdkafka of any age through ctypes: write lines, read them back.

rdkafka.py LIBRARY version
rdkafka.py LIBRARY produce BOOTSTRAP TOPIC CODEC        lines from standard input, to partition 0
rdkafka.py LIBRARY consume BOOTSTRAP TOPIC              everything in partition 0, as lines
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from typing import Any

TIMEOUT_MS = 30_000
PRODUCER, CONSUMER = 0, 1
BEGINNING = -2
COPY = 2
PARTITION_END = -191


class Message(ctypes.Structure):
    _fields_ = (
        ("error", c_int),
        ("topic", c_void_p),
        ("partition", c_int32),
        ("payload", c_void_p),
        ("length", c_size_t),
        ("key", c_void_p),
        ("key_length", c_size_t),
        ("offset", c_int64),
        ("opaque", c_void_p),
    )


def load(path: str) -> ctypes.CDLL:
    library = ctypes.CDLL(path)
    library.rd_kafka_version_str.restype = c_char_p
    library.rd_kafka_err2str.restype = c_char_p
    library.rd_kafka_conf_new.restype = c_void_p
    library.rd_kafka_conf_set.argtypes = (c_void_p, c_char_p, c_char_p, c_char_p, c_size_t)
    library.rd_kafka_new.restype = c_void_p
    library.rd_kafka_new.argtypes = (c_int, c_void_p, c_char_p, c_size_t)
    library.rd_kafka_topic_new.restype = c_void_p
    library.rd_kafka_topic_new.argtypes = (c_void_p, c_char_p, c_void_p)
    library.rd_kafka_produce.argtypes = (*(c_void_p, c_int32, c_int, c_char_p, c_size_t, c_char_p, c_size_t, c_void_p),)
    library.rd_kafka_flush.argtypes = (c_void_p, c_int)
    library.rd_kafka_query_watermark_offsets.argtypes = (
        *(c_void_p, c_char_p, c_int32, POINTER(c_int64), POINTER(c_int64), c_int),
    )
    library.rd_kafka_consume_start.argtypes = (c_void_p, c_int32, c_int64)
    library.rd_kafka_consume_stop.argtypes = (c_void_p, c_int32)
    library.rd_kafka_consume.restype = POINTER(Message)
    library.rd_kafka_consume.argtypes = (c_void_p, c_int32, c_int)
    library.rd_kafka_message_destroy.argtypes = (POINTER(Message),)
    return library


def client(library: ctypes.CDLL, kind: int, settings: dict[str, str], delivered: Any = None) -> c_void_p:
    problem = ctypes.create_string_buffer(512)
    conf = library.rd_kafka_conf_new()
    for name, value in settings.items():
        if library.rd_kafka_conf_set(conf, name.encode(), value.encode(), problem, len(problem)):
            sys.exit(problem.value.decode())
    if delivered is not None:
        library.rd_kafka_conf_set_dr_msg_cb(c_void_p(conf), delivered)
    made = library.rd_kafka_new(kind, conf, problem, len(problem))
    if not made:
        sys.exit(problem.value.decode())
    return c_void_p(made)


def produce(library: ctypes.CDLL, bootstrap: str, topic: str, codec: str) -> None:
    failed: list[int] = []

    @ctypes.CFUNCTYPE(None, c_void_p, POINTER(Message), c_void_p)
    def delivered(_client: int, message: Any, _opaque: int) -> None:
        if message.contents.error:
            failed.append(message.contents.error)

    settings = {"bootstrap.servers": bootstrap, "compression.codec": codec, "linger.ms": "5"}
    producer = client(library, PRODUCER, settings, delivered)
    to = library.rd_kafka_topic_new(producer, topic.encode(), None)
    for line in sys.stdin.read().splitlines():
        key, value = line.encode().split(b":")
        if library.rd_kafka_produce(to, 0, COPY, value, len(value), key, len(key), None):
            sys.exit("the queue is full")
    if library.rd_kafka_flush(producer, TIMEOUT_MS):
        sys.exit("not all were sent in time")
    if failed:
        sys.exit(library.rd_kafka_err2str(failed[0]).decode())


def consume(library: ctypes.CDLL, bootstrap: str, topic: str) -> None:
    consumer = client(library, CONSUMER, {"bootstrap.servers": bootstrap, "enable.partition.eof": "true"})
    low, high = c_int64(), c_int64()
    asked = library.rd_kafka_query_watermark_offsets(consumer, topic.encode(), 0, byref(low), byref(high), TIMEOUT_MS)
    if asked:
        sys.exit(library.rd_kafka_err2str(asked).decode())
    source = library.rd_kafka_topic_new(consumer, topic.encode(), None)
    library.rd_kafka_consume_start(source, 0, BEGINNING)
    offset = low.value
    while offset < high.value:
        found = library.rd_kafka_consume(source, 0, TIMEOUT_MS)
        if not found:
            sys.exit(f"nothing came after offset {offset}")
        message = found.contents
        if message.error and message.error != PARTITION_END:
            sys.exit(library.rd_kafka_err2str(message.error).decode())
        if not message.error:
            key = ctypes.string_at(message.key, message.key_length).decode()
            print(f"{message.offset} {key}:{ctypes.string_at(message.payload, message.length).decode()}")
            offset = message.offset + 1
        library.rd_kafka_message_destroy(found)
    library.rd_kafka_consume_stop(source, 0)


def main(path: str, verb: str, *arguments: str) -> None:
    library = load(path)
    if verb == "version":
        print(library.rd_kafka_version_str().decode())
    elif verb == "produce":
        produce(library, *arguments)
    else:
        consume(library, *arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
