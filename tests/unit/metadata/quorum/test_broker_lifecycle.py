"""BrokerLifecycle: what a broker says to its controller, and when."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.metadata.image.features import SUPPORTED
from tailrace.metadata.image.registrations import BrokerRegistration, Endpoint
from tailrace.metadata.quorum.broker_lifecycle import BrokerLifecycle, LifecycleState
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

DIRECTORIES = (b"a" * 16, b"b" * 16)


def new() -> BrokerLifecycle:
    endpoint = Endpoint("PLAINTEXT", "kafka-1", 9092)
    registration = BrokerRegistration(
        id=1,
        epoch=-1,
        incarnation_id=b"i" * 16,
        endpoints={"PLAINTEXT": endpoint},
        features=SUPPORTED,
        rack="r1",
        directories=DIRECTORIES,
    )
    return BrokerLifecycle(registration, "cluster", previous_epoch=17)


def respond(one: BrokerLifecycle, now_ms: int, **answer: Any) -> BrokerHeartbeatRequest:
    request = one.next_request()
    assert isinstance(request, BrokerHeartbeatRequest)
    one.answered(request, BrokerHeartbeatResponse(**answer), now_ms)
    return request


def register(one: BrokerLifecycle, epoch: int = 42) -> None:
    one.answered(one.next_request(), BrokerRegistrationResponse(broker_epoch=epoch), 0)


def running() -> BrokerLifecycle:
    one = new()
    register(one)
    respond(one, 1, is_caught_up=True)
    one.inputs.is_ready = True
    respond(one, 2, is_caught_up=True, is_fenced=False)
    assert one.state is LifecycleState.RUNNING
    return one


def test_a_registration_contains_endpoints_features_and_directories() -> None:
    request = new().next_request()
    assert isinstance(request, BrokerRegistrationRequest)
    assert (request.broker_id, request.cluster_id, request.rack) == (1, "cluster", "r1")
    assert request.previous_broker_epoch == 17
    assert request.log_dirs == list(DIRECTORIES)
    assert {one.name for one in request.features} == set(SUPPORTED)  # or a cluster that has finalized one refuses
    assert [(one.name, one.host, one.port) for one in request.listeners] == [("PLAINTEXT", "kafka-1", 9092)]


def test_a_broker_is_unfenced_when_it_has_caught_up_and_is_ready() -> None:
    one = new()
    reported: list[LifecycleState] = []
    one.state_changed = lambda: reported.append(one.state)
    register(one)
    one.inputs.metadata_offset = 40
    first = respond(one, 0, is_caught_up=False)
    assert (first.broker_epoch, first.current_metadata_offset, first.want_fence) == (42, 40, True)
    assert not one.has_caught_up
    one.inputs.metadata_offset = 42
    respond(one, 10, is_caught_up=True)
    assert one.has_caught_up
    assert respond(one, 20, is_caught_up=True).want_fence
    one.inputs.is_ready = True
    assert not respond(one, 30, is_caught_up=True, is_fenced=False).want_fence
    assert [state.name for state in reported] == ["STARTING", "RECOVERY", "RUNNING"]
    assert one.due_ms == 30 + 2_000


def test_a_broker_leaves_when_the_controller_allows_it() -> None:
    one = running()
    one.inputs.leaves = True
    first = respond(one, 100, is_fenced=False)
    assert first.want_shut_down
    assert first.want_fence  # or it would be marked as shutting down, and could not come back as who it was
    assert one.due_ms == 150  # the first time it is asked again soon
    assert respond(one, 150, is_fenced=False).want_shut_down
    assert one.due_ms == 2_150
    respond(one, 2_150, should_shut_down=True)
    assert one.has_left


def left(**fields: Any) -> BrokerRegistration:
    """Return the registration of a broker that has left."""
    values = {"id": 1, "epoch": 17, "incarnation_id": b"o" * 16, "directories": DIRECTORIES, "fenced": True}
    return BrokerRegistration(**{**values, **fields})


def test_a_broker_that_left_in_order_returns_as_the_same_incarnation() -> None:
    one = new()
    assert one.resume_registration(left())
    request = one.next_request()
    assert isinstance(request, BrokerRegistrationRequest)
    assert request.incarnation_id == b"o" * 16
    assert [(listener.name, listener.host) for listener in request.listeners] == [("PLAINTEXT", "kafka-1")]


@pytest.mark.parametrize(
    "known",
    [
        None,
        left(epoch=18),  # somebody has registered since
        left(fenced=False),
        left(in_controlled_shutdown=True),  # which nothing but another incarnation ends
        left(directories=DIRECTORIES[:1]),
    ],
    ids=["unknown", "another", "not fenced", "shutting down", "other directories"],
)
def test_any_other_broker_registers_as_a_new_incarnation(known: BrokerRegistration | None) -> None:
    one = new()
    assert not one.resume_registration(known)
    request = one.next_request()
    assert isinstance(request, BrokerRegistrationRequest)
    assert request.incarnation_id == b"i" * 16


def test_failed_and_cordoned_directories_are_reported_in_heartbeats() -> None:
    one = running()
    one.inputs.offline = (DIRECTORIES[1],)
    one.inputs.cordoned = ()
    request = respond(one, 100, is_fenced=False)
    assert request.offline_log_dirs == [DIRECTORIES[1]]
    assert request.cordoned_log_dirs == []
    assert one.reported_offline == (DIRECTORIES[1],)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (ErrorCode.UNKNOWN_SERVER_ERROR, [100, 200, 400, 800, 1600, 2000, 2000, 2000]),
        # A session is about to end.
        (ErrorCode.DUPLICATE_BROKER_REGISTRATION, [100, 200, 250, 250, 250, 250, 250, 250]),
    ],
)
def test_a_refused_registration_is_retried_with_growing_delays_up_to_the_heartbeat_interval(
    code: ErrorCode, expected: list[int]
) -> None:
    one = new()
    waits = []
    for _ in range(8):
        one.answered(one.next_request(), BrokerRegistrationResponse(error_code=code), 1_000)
        waits.append(one.due_ms - 1_000)
    assert waits == expected
    assert one.state is LifecycleState.REGISTERING
    assert one.refusal is not None
    register(one)
    assert one.state is LifecycleState.STARTING


def test_an_unregistered_broker_registers_again() -> None:
    one = running()
    one.answered(one.next_request(), BrokerHeartbeatResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED), 100)
    request = one.next_request()
    assert isinstance(request, BrokerRegistrationRequest)
    assert request.previous_broker_epoch == -1
    register(one, 77)
    assert respond(one, 200, is_caught_up=True).broker_epoch == 77


def test_a_broker_registers_again_when_its_registration_has_changed() -> None:
    one = running()
    one.inputs.registration += 1
    register(one, 50)
    assert one.state is LifecycleState.RUNNING
    assert respond(one, 200, is_fenced=False).broker_epoch == 50


@pytest.mark.parametrize("code", [ErrorCode.STALE_BROKER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR])
def test_a_heartbeat_refused_with_another_error_is_retried(code: ErrorCode) -> None:
    one = running()
    one.answered(one.next_request(), BrokerHeartbeatResponse(error_code=code), 100)
    assert one.state is LifecycleState.RUNNING
    assert one.due_ms == 200
