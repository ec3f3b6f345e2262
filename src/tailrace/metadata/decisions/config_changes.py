"""AlterConfigs, IncrementalAlterConfigs, and the configs of new topics: the decisions.

AlterConfigs lists all configs of a resource, and removes those that it does not list. IncrementalAlterConfigs lists
changes: SET, DELETE, and for lists APPEND and SUBTRACT. Only differences are written, except for brokers: a
record with an unchanged value makes the broker reload the file that it names, such as a keystore.

Only a broker can check its own settings. `is_at_controller`: the request came to a controller listener. Then a broker
has done so, and any registered broker may be named. Otherwise the broker in this process checks, and only it may be
named.

Each resource is changed as a whole or refused as a whole, independently of the others in the request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

from tailrace.metadata.controller.control_state import NO_ERROR, ApiError, ControlState, Plan, check_size
from tailrace.metadata.decisions.config_validation import BrokerCheck, Settings, validate_settings
from tailrace.metadata.image.effective_config import definition_for
from tailrace.metadata.image.image import ConfigResource, ResourceType
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.java.java_hash import java_length
from tailrace.protocol import messages
from tailrace.protocol.message import Message

_MAX_VALUE_LENGTH = 32_767
_MIN_ISR = "min.insync.replicas"


class Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    name: str
    operation: int
    value: str | None


# key → its new value, None to remove it
_Wanted: TypeAlias = Mapping[str, str | None]
MayAlter: TypeAlias = Callable[[ConfigResource], ApiError]


def _anybody(_: ConfigResource) -> ApiError:
    return NO_ERROR


def _no_broker_check(_: Settings, __: bool) -> None:
    """Accept all broker configs: without a broker the controller cannot check them."""


def plan_new_topic_configs(
    state: ControlState, topic: str, settings: Sequence[tuple[str, str | None]]
) -> tuple[dict[str, str], list[Message]]:
    """Return a new topic's configs and their records."""
    missing = [name for name, value in settings if value is None]
    if missing:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"topic {topic}: no value is given for {', '.join(missing)}")
    wanted = {name: value for name, value in settings if value is not None}
    resource = ConfigResource(ResourceType.TOPIC, topic)
    if not wanted:
        return wanted, []
    records = _plan_change(state, resource, wanted, _no_broker_check, is_new=True)
    return wanted, [*records, *_cleared_elrs(state, records)]


def plan_incremental_alter_configs(
    state: ControlState,
    request: messages.IncrementalAlterConfigsRequest,
    *,
    check_broker: BrokerCheck = _no_broker_check,
    may_alter: MayAlter = _anybody,
    is_at_controller: bool = False,
) -> Plan[messages.IncrementalAlterConfigsResponse]:
    def decide(
        resource: ConfigResource, asked: messages.IncrementalAlterConfigsRequest.AlterConfigsResource
    ) -> list[Message]:
        changes = [Change(one.name, one.config_operation, one.value) for one in asked.configs]
        _check_changes(changes)
        wanted = _incremental(state, resource, changes)
        return _plan_change(state, resource, wanted, check_broker, is_at_controller=is_at_controller)

    keys = [ConfigResource(one.resource_type, one.resource_name) for one in request.resources]
    records, errors = _each_resource(state, list(zip(keys, request.resources, strict=True)), decide, may_alter)
    responses = [
        messages.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
            resource_type=one.resource_type,
            resource_name=one.resource_name,
            error_code=error.code,
            error_message=error.message,
        )
        for one, error in zip(request.resources, errors, strict=True)
    ]
    response = messages.IncrementalAlterConfigsResponse(responses=responses)
    return Plan([] if request.validate_only else records, response)


def plan_alter_configs(
    state: ControlState,
    request: messages.AlterConfigsRequest,
    *,
    check_broker: BrokerCheck = _no_broker_check,
    may_alter: MayAlter = _anybody,
    is_at_controller: bool = False,
) -> Plan[messages.AlterConfigsResponse]:
    def decide(resource: ConfigResource, asked: messages.AlterConfigsRequest.AlterConfigsResource) -> list[Message]:
        _check_changes([Change(one.name, Operation.SET, one.value) for one in asked.configs])
        wanted: dict[str, str | None] = {one.name: one.value for one in asked.configs}
        gone = dict.fromkeys(name for name in state.image.config(resource) if name not in wanted)
        return _plan_change(state, resource, {**wanted, **gone}, check_broker, is_at_controller=is_at_controller)

    keys = [ConfigResource(one.resource_type, one.resource_name) for one in request.resources]
    records, errors = _each_resource(state, list(zip(keys, request.resources, strict=True)), decide, may_alter)
    responses = [
        messages.AlterConfigsResponse.AlterConfigsResourceResponse(
            resource_type=one.resource_type,
            resource_name=one.resource_name,
            error_code=error.code,
            error_message=error.message,
        )
        for one, error in zip(request.resources, errors, strict=True)
    ]
    response = messages.AlterConfigsResponse(responses=responses)
    return Plan([] if request.validate_only else records, response)


def _each_resource(
    state: ControlState,
    asked: list[tuple[ConfigResource, Any]],
    decide: Callable[[ConfigResource, Any], list[Message]],
    may_alter: MayAlter,
) -> tuple[list[Message], list[ApiError]]:
    counts = Counter(resource for resource, _ in asked)
    records: list[Message] = []
    errors = []
    for resource, changes in asked:
        allowed = may_alter(resource)
        try:
            if counts[resource] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"{resource} is listed twice")
            if allowed.code != ErrorCode.NONE:
                errors.append(allowed)
                continue
            records += decide(resource, changes)
            errors.append(NO_ERROR)
        except KafkaError as error:
            errors.append(ApiError.of(error))
    records += _cleared_elrs(state, records)
    try:
        check_size(records)
    except KafkaError as error:
        return [], [ApiError.of(error)] * len(asked)
    return records, errors


def _check_changes(changes: Sequence[Change]) -> None:
    for name, count in Counter(change.name for change in changes).items():
        if count > 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} is listed twice")
    missing = [change.name for change in changes if change.value is None and change.operation != Operation.DELETE]
    if missing:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"no value is given for {', '.join(missing)}")


def _incremental(state: ControlState, resource: ConfigResource, changes: Sequence[Change]) -> dict[str, str | None]:
    present = state.image.config(resource)
    wanted: dict[str, str | None] = {}
    # Lists of groups and metrics subscriptions can only be set as a whole, as in Kafka.
    keys = definition_for(resource.type) if resource.type in (ResourceType.TOPIC, ResourceType.BROKER) else None
    for name, operation, value in changes:
        if operation == Operation.SET:
            wanted[name] = value
        elif operation == Operation.DELETE:
            wanted[name] = None
        elif operation in (Operation.APPEND, Operation.SUBTRACT):
            key = keys.get(name) if keys else None
            if key is None or key.type != "list":
                verb = Operation(operation).name
                raise KafkaError(ErrorCode.INVALID_CONFIG, f"{verb} needs a list-valued config; {name} is not one")
            parts = [one for one in java_split(present.get(name) or key.default or "") if one]
            for one in java_split(value or ""):
                if operation == Operation.APPEND and one not in parts:
                    parts.append(one)
                elif operation == Operation.SUBTRACT and one in parts:
                    parts.remove(one)
            wanted[name] = ",".join(parts)
        else:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"unknown operation {operation} on {name}: use 0 (SET), 1 (DELETE), 2 (APPEND) or 3 (SUBTRACT)",
            )
    return wanted


def java_split(text: str) -> list[str]:
    """Split at commas as Java does: empty parts at the end are dropped, but the empty text has one part."""
    parts = text.split(",")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return [] if parts == [""] and text else parts


def _plan_change(
    state: ControlState,
    resource: ConfigResource,
    wanted: _Wanted,
    check_broker: BrokerCheck,
    *,
    is_new: bool = False,
    is_at_controller: bool = False,
) -> list[Message]:
    present = state.image.config(resource)
    is_broker = resource.type == ResourceType.BROKER
    changes = {name: value for name, value in wanted.items() if is_broker or present.get(name) != value}
    settings = {name: value for name, value in {**present, **changes}.items() if value is not None}
    if is_broker and not is_at_controller:  # before the checks of the controller, as in Kafka
        check_broker(settings, resource.name != "")
    for name, value in changes.items():
        _check_change(state, resource, name, value)
    validate_settings(state, resource, settings)
    if not is_new:
        _check_exists(state, resource, is_at_controller=is_at_controller)
    return [
        messages.ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)
        for name, value in changes.items()
    ]


def _check_change(state: ControlState, resource: ConfigResource, name: str, value: str | None) -> None:
    if value is not None and java_length(value) > _MAX_VALUE_LENGTH:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"the value of {name} is longer than {_MAX_VALUE_LENGTH} characters")
    if name == _MIN_ISR and resource.type == ResourceType.BROKER and state.image.elr_enabled:
        # The ELR is valid only if all brokers agree on it.
        if resource.name:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"{_MIN_ISR} cannot be set for a single broker while eligible leader replicas (ELR) are on; set it "
                "for the cluster",
            )
        if value is None:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"the cluster's {_MIN_ISR} cannot be removed while eligible leader replicas (ELR) are on; set "
                "another value",
            )


def _check_exists(state: ControlState, resource: ConfigResource, *, is_at_controller: bool) -> None:
    if resource.type == ResourceType.TOPIC and resource.name not in state.image.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"the topic '{resource.name}' does not exist")
    if resource.type != ResourceType.BROKER or not resource.name:
        return
    node_id = int(resource.name)
    if is_at_controller and node_id not in state.image.brokers and node_id not in state.image.controllers:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"there is no node with the id {node_id}")
    if not is_at_controller and node_id != state.configs.node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"configs of broker {resource.name} cannot be changed at node {state.configs.node_id}; connect to that "
            "broker",
        )


def _cleared_elrs(state: ControlState, records: Sequence[Message]) -> list[Message]:
    """Return records that clear ELRs, which were computed for another min.insync.replicas."""
    if not state.image.elr_enabled:
        return []
    cleared: list[Message] = []
    for record in records:
        if isinstance(record, messages.ConfigRecord) and record.name == _MIN_ISR:
            of_topic = record.resource_type == ResourceType.TOPIC
            cleared.append(messages.ClearElrRecord(topic_name=record.resource_name if of_topic else ""))
    return cleared
