"""A node in memory: a broker over `MemoryFiles`, and a client that speaks to it without a socket.

    broker = start(static={"num.partitions": "3"})
    client = Client(broker)
    answer = client.ask(MetadataRequest(topics=None), version=12)

Time does not advance unless a test moves it: `client.now_ms += 500; broker.tick(client.now_ms)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

from tailrace.broker.broker import Broker
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.dispatcher import Dispatcher
from tailrace.broker.handling.request_work import RequestWork
from tailrace.broker.requests.request_context import ConnectionContext, Reply
from tailrace.broker.security.authorizer import Authorizer
from tailrace.broker.security.permissions import Permissions
from tailrace.broker.startup.open_broker import open_broker
from tailrace.fetch.fetch_plan import FetchAuthorizer
from tailrace.log.disk.files import Files
from tailrace.log.segments.position import FileSlice
from tailrace.protocol.headers import RequestHeader, read_response_header, write_request_header
from tailrace.protocol.registry import response_class
from tailrace.waiting.chore import Chore
from tests.support.memory_files import MemoryFiles

NOW_MS = 1_700_000_000_000


def start(
    files: Files | None = None,
    static: dict[str, str] | None = None,
    *,
    now_ms: int = NOW_MS,
    work_ns: Callable[[], int] = lambda: 0,
    first_id: int = 1_000_000,  # low ids are reserved
    **more: Any,
) -> Broker:
    ids = count(first_id)
    return open_broker(
        files or MemoryFiles(),
        BrokerConfig.of(log_dirs=["/data"], port=9092, settings=static),
        now_ms=now_ms,
        new_id=lambda: next(ids).to_bytes(16, "big"),
        next_int=lambda limit: 0,
        work_ns=work_ns,
        **more,
    )


def with_services(broker: Broker, **parts: Any) -> Broker:
    """Return the same broker with some parts replaced."""
    services = replace(broker.services, **parts)
    return Broker(services, Dispatcher(services), broker.guard, broker._timed_parts)


def with_authorizer(broker: Broker, authorizer: Authorizer) -> Broker:
    """Return the same broker with an authorizer. Fetches are authorized as before."""
    return with_services(broker, authorizer=authorizer, permissions=Permissions(authorizer))


def with_fetch_authorizer(broker: Broker, authorizer: FetchAuthorizer | None) -> Broker:
    """Return the same broker, whose fetches ask this authorizer."""
    return with_services(broker, fetches=broker.services.fetches.with_authorizer(authorizer))


def with_request_work(broker: Broker, submit: Callable[[Chore], None]) -> Broker:
    """Return the same broker, with `submit` in place of its worker threads."""
    services = broker.services
    return with_services(broker, request_work=RequestWork(services.replies, services.refusals, submit))


class Client:
    """A connection: sends requests and decodes replies."""

    def __init__(self, broker: Broker, *, connection_id: int = 1, client_id: str | None = "test") -> None:
        self.broker = broker
        self.client_id = client_id
        self.now_ms = NOW_MS
        self.context = ConnectionContext(connection_id)
        self._correlation_ids = count(1)

    def send(self, request: Any, version: int) -> list[Reply]:
        key = request.SCHEMA.api_key
        header = write_request_header(RequestHeader(key, version, next(self._correlation_ids), self.client_id))
        self.broker.handle(memoryview(bytearray(header + request.encode(version))), self.context, self.now_ms)
        return self.broker.take_replies()

    def ask(self, request: Any, version: int) -> Any:
        """Return the one response that comes at once."""
        (reply,) = self.send(request, version)
        return self.decode(reply, request.SCHEMA.api_key, version)

    @staticmethod
    def decode(reply: Reply, api_key: int, version: int) -> Any:
        assert reply.parts is not None
        data = b"".join(part.read() if isinstance(part, FileSlice) else bytes(part) for part in reply.parts)
        position = read_response_header(api_key, version, data)[1]
        return response_class(api_key).decode(data, version, position)
