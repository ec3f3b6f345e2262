"""create_topic: creates a topic in a broker of this process, and returns when clients can use it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

from tailrace.broker.services import Services
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.metadata.controller.remote_controller import FORWARDING, RemoteController
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.message import Message
from tailrace.protocol.messages import CreateTopicsRequest, CreateTopicsResponse
from tailrace.server.server import Server
from tailrace.waiting.outbox import Failure

_TIMEOUT_S: Final = 60


def create_topic(
    server: Server, services: Services, name: str, partitions: int, config: Mapping[str, str], now_ms: int
) -> None:
    """Create a topic, or raise a KafkaError with the reason. When this returns, this broker serves the topic."""
    controller = services.controller
    is_alone = isinstance(controller, LocalController)
    topic = CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1 if is_alone else -1,
        configs=[CreateTopicsRequest.CreatableTopicConfig(name=key, value=value) for key, value in config.items()],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=_TIMEOUT_S * 1_000)
    response: CreateTopicsResponse
    if isinstance(controller, LocalController):
        response = server.call(partial(controller.create_topics, request, now_ms))
    else:
        assert isinstance(controller, RemoteController)
        response = _ask_controllers(server, controller, request, now_ms)
    result = response.topics[0]
    if result.error_code:
        raise KafkaError(ErrorCode(result.error_code), result.error_message or "")
    await_topic(server, services, name, now_ms)


def await_topic(server: Server, services: Services, name: str, now_ms: int) -> None:
    """Return when this broker knows a topic and serves its replicas of it."""
    _await_known(server, services, name)
    _await_hosted(server, services, name, now_ms)


def _await_hosted(server: Server, services: Services, name: str, now_ms: int) -> None:
    """Wait until the logs of the new partitions are created, which happens outside the loop."""
    is_hosted: Future[None] = Future()
    wait_ms = 2 * _TIMEOUT_S * 1_000  # the timeout below comes first
    server.call(lambda: services.publisher.when_hosted([name], lambda _: is_hosted.set_result(None), now_ms, wait_ms))
    try:
        is_hosted.result(_TIMEOUT_S)
    except TimeoutError:
        raise KafkaError(
            ErrorCode.REQUEST_TIMED_OUT, f"topic {name} is created, but its logs are not open after {_TIMEOUT_S} s"
        ) from None


def _ask_controllers(server: Server, controller: RemoteController, request: Message, now_ms: int) -> Any:
    """Send a request to the active controller, and return its response."""
    answer: Future[Any] = Future()

    def failed(failure: Failure, now_ms: int) -> None:
        answer.set_exception(KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"no controller responds: {failure.value}"))

    server.call(
        lambda: controller.ask(
            FORWARDING, request, lambda response, now_ms: answer.set_result(response), failed, now_ms
        )
    )
    try:
        return answer.result(_TIMEOUT_S)
    except TimeoutError:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"no controller responded in {_TIMEOUT_S} s") from None


def _await_known(server: Server, services: Services, name: str) -> None:
    """Wait until this broker knows the topic. The controllers know it before the brokers."""
    deadline_s = time.monotonic() + _TIMEOUT_S
    while not server.call(lambda: name in services.controller.image.topics):
        if time.monotonic() > deadline_s:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, f"topic {name} is created, but this broker does not know it yet"
            )
        time.sleep(0.01)
