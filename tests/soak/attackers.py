"""Attackers, each in a process of its own: expensive requests, mutated sequences, idle and slow connections.

Every attacker runs until its process is killed, and counts what it does. A connection that the broker closes is opened
again.
"""

from __future__ import annotations

import contextlib
import random
import select
import socket
import struct
import time
from functools import cache
from typing import Final, Protocol

from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.headers import RequestHeader, write_request_header
from tailrace.protocol.messages import MetadataRequest, SaslAuthenticateRequest, SaslHandshakeRequest
from tests.costs.hostile_batches import HOSTILE, hostile_batch
from tests.costs.measure import receive_response
from tests.costs.recipe import SIZE_MAX, Recipe
from tests.costs.values import Kind, Names
from tests.fuzz.frames import join_frames, split_frames
from tests.fuzz.request_mutator import RequestMutator
from tests.fuzz.sequence_seeds import sequences

IDLE_CONNECTIONS: Final = 200
SLOW_CONNECTIONS: Final = 50
PATIENCE_S: Final = 30.0
TOPIC: Final = "attacked"

# Recipes that change nothing that honest clients use.
RECIPES: Final = (
    Recipe(ApiKey.DESCRIBE_GROUPS, 6, Kind.UNKNOWN, "groups"),
    Recipe(ApiKey.DESCRIBE_CONFIGS, 1, Kind.SAME, "resources", size=166_666, nulls=("resources.configuration_keys",)),
    Recipe(ApiKey.METADATA, 8, Kind.UNKNOWN, "topics", values=(("allow_auto_topic_creation", False),)),
    Recipe(ApiKey.OFFSET_FETCH, 5, Kind.MINIMAL, "topics", inner=0),
    Recipe(ApiKey.FIND_COORDINATOR, 6, Kind.UNKNOWN, "coordinator_keys"),
    Recipe(ApiKey.LIST_OFFSETS, 11, Kind.UNKNOWN, "topics"),
    Recipe(ApiKey.API_VERSIONS, 4, Kind.MINIMAL, tags=249_900),
    Recipe(ApiKey.FETCH, 18, Kind.UNKNOWN, "topics"),
    Recipe(
        ApiKey.OFFSET_COMMIT,
        8,
        Kind.UNKNOWN,
        "topics.partitions",
        size=752_000,
        values=(("topics.name", TOPIC), ("group_id", "g" * 249)),
    ),
)


class Counter(Protocol):
    """A number that another process can read."""

    value: int


def connect(port: int, *, log_in: bool) -> socket.socket:
    """Open a connection; log in if the listener asks for it."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
    if log_in:
        token = SaslAuthenticateRequest(auth_bytes=b"\0attacker\0secret")
        for request, version in ((SaslHandshakeRequest(mechanism="PLAIN"), 1), (token, 2)):
            send(connection, _frame(request, version))
            receive_response(connection)
    return connection


def send(connection: socket.socket, frame: bytes) -> None:
    connection.sendall(struct.pack(">i", len(frame)) + frame)


def _frame(request: object, version: int) -> bytes:
    header = RequestHeader(request.SCHEMA.api_key, version, 1, "attacker")  # type: ignore[attr-defined]
    return write_request_header(header) + request.encode(version)  # type: ignore[attr-defined]


@cache
def expensive_frames() -> list[bytes]:
    """Return the most expensive known requests and batches. Building them takes some seconds."""
    names = Names(1, [TOPIC], [bytes(16)], {"classic": ["attackers"]}, ["attacker"], "", b"")
    frames = [recipe.frame(names) for recipe in RECIPES]
    for name in HOSTILE:
        records = hostile_batch(name, SIZE_MAX)
        recipe = Recipe(ApiKey.PRODUCE, 9, Kind.SAME, values=(("topic_data.partition_data.records", records),))
        frames.append(recipe.frame(names))
    return frames


def send_expensive_requests(port: int, guarded_port: int, acts: Counter) -> None:
    """Send expensive requests, one after the other, without a pause."""
    while True:
        for frame in expensive_frames():
            with contextlib.suppress(OSError), connect(guarded_port, log_in=True) as connection:
                send(connection, frame)
                receive_response(connection)
                acts.value += 1


def send_mutated_sequences(port: int, guarded_port: int, acts: Counter) -> None:
    """Send sequences of requests with changes, as a user without rights."""
    dice = random.Random(time.time_ns())
    pool = [join_frames(one for one in steps if one[:1] != b"\xff") for steps in sequences()]
    mutator = RequestMutator([frame for data in pool for frame in split_frames(data)])
    while True:
        data = dice.choice(pool)
        for _ in range(dice.choice((1, 2, 4))):
            data = mutator.mutate(data, dice)
        with contextlib.suppress(OSError), connect(dice.choice((port, guarded_port)), log_in=False) as connection:
            connection.settimeout(1)
            for frame in split_frames(data):
                send(connection, frame)
                acts.value += 1
                if select.select([connection], [], [], 0.05)[0]:
                    connection.recv(65_536)


def keep_idle_connections(port: int, guarded_port: int, acts: Counter) -> None:
    """Open many connections and send nothing."""
    while True:
        kept = []
        with contextlib.suppress(OSError):
            kept = [connect(port, log_in=False) for _ in range(IDLE_CONNECTIONS)]
        acts.value += len(kept)
        time.sleep(20)
        for connection in kept:
            connection.close()


def read_slowly(port: int, guarded_port: int, acts: Counter) -> None:
    """Ask for large responses again and again, and hardly read them."""
    frame = _frame(MetadataRequest(topics=None), 8)
    connections: list[socket.socket] = []
    while True:
        with contextlib.suppress(OSError):
            while len(connections) < SLOW_CONNECTIONS:
                connections.append(connect(guarded_port, log_in=True))
                connections[-1].setblocking(False)
        for connection in list(connections):
            try:
                send(connection, frame)
                acts.value += 1
                connection.recv(100)
            except BlockingIOError:
                continue
            except OSError:
                connections.remove(connection)
        time.sleep(0.1)


def send_slowly(port: int, guarded_port: int, acts: Counter) -> None:
    """Announce large requests and send them byte by byte."""
    connections: list[socket.socket] = []
    while True:
        with contextlib.suppress(OSError):
            while len(connections) < SLOW_CONNECTIONS:
                connection = connect(port, log_in=False)
                connection.sendall(struct.pack(">i", 50_000_000))
                connections.append(connection)
        for connection in list(connections):
            try:
                connection.sendall(b"\0")
                acts.value += 1
            except OSError:
                connections.remove(connection)
        time.sleep(0.2)


ATTACKERS: Final = (
    send_expensive_requests,
    send_mutated_sequences,
    keep_idle_connections,
    read_slowly,
    send_slowly,
)
