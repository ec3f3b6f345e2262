"""AlterClientQuotas and DescribeClientQuotas: the decisions.

A quota belongs to a user, a client id, both, or an IP address; a name that is None stands for the default.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Mapping
from typing import Final

from tailrace.metadata.controller.control_state import NO_ERROR, ApiError, ControlState, Plan, check_size
from tailrace.metadata.image.image import MetadataImage, QuotaEntity, quota_entity
from tailrace.model.configs.config_definitions import ConfigDefinition, definition
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.steps import ITEMS_PER_STEP, Steps
from tailrace.protocol import messages
from tailrace.protocol.message import Message

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
_LIMITS: Final = {"int": 2.0**31 - 1, "long": float(2**63), "short": 2.0**15 - 1}

_EXACT: Final = 0
_DEFAULT: Final = 1
_ANY: Final = 2


def _refuse(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)


def plan_alter_client_quotas(
    state: ControlState, request: messages.AlterClientQuotasRequest
) -> Plan[messages.AlterClientQuotasResponse]:
    results: dict[QuotaEntity, ApiError] = {}
    records: list[Message] = []
    for entry in request.entries:
        entity = quota_entity({one.entity_type: one.entity_name for one in entry.entity})
        try:
            if len({op.key for op in entry.ops}) < len(entry.ops) or entity in results:
                raise _refuse("an entity, or a key of it, is listed twice in the request")
            wanted = {op.key: None if op.remove else op.value for op in entry.ops}
            records += _plan_entity(state.image, entity, wanted)
            results[entity] = NO_ERROR
        except KafkaError as error:
            results[entity] = ApiError.of(error)
    try:
        check_size(records)
    except KafkaError as error:
        records, results = [], dict.fromkeys(results, ApiError.of(error))
    entries = [
        messages.AlterClientQuotasResponse.EntryData(
            error_code=error.code,
            error_message=error.message,
            entity=[
                messages.AlterClientQuotasResponse.EntityData(entity_type=kind, entity_name=name)
                for kind, name in entity
            ],
        )
        for entity, error in results.items()
    ]
    response = messages.AlterClientQuotasResponse(entries=entries)
    return Plan([] if request.validate_only else records, response)


def _plan_entity(image: MetadataImage, entity: QuotaEntity, wanted: Mapping[str, float | None]) -> list[Message]:
    keys = _keys_of(entity)
    present = image.client_quotas.get(entity, {})
    records: list[Message] = []
    for key, value in wanted.items():
        if value is not None:
            _check_value(keys, key, value)
        if present.get(key) != value:
            parts = [messages.ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
            records.append(messages.ClientQuotaRecord(entity=parts, key=key, value=value or 0.0, remove=value is None))
    return records


def _keys_of(entity: QuotaEntity) -> ConfigDefinition:
    """Return the quota keys that an entity can have. Raise INVALID_REQUEST if the entity is not valid."""
    if not entity:
        raise _refuse("the quota entity is empty; name a user, a client-id or an ip")
    kinds = dict(entity)
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            raise _refuse(f"'{kind}' is not an entity type: use user, client-id or ip")
        if name == "":
            raise _refuse(f"the name of the {kind} is empty")
    if IP not in kinds:
        return definition("client_quota")
    if len(kinds) > 1:
        raise _refuse("a quota of an ip cannot be combined with a user or client-id")
    if kinds[IP] is not None and not _is_address(kinds[IP] or ""):
        raise _refuse(f"'{kinds[IP]}' is not an IP address")
    return definition("ip_quota")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _check_value(keys: ConfigDefinition, key: str, value: float) -> None:
    if key not in keys:
        raise _refuse(f"{key} is not a quota of this entity; its quotas are {', '.join(keys)}")
    if value <= 0:
        raise _refuse(f"{key} must be greater than 0, not {value:g}")
    limit = _LIMITS.get(keys[key].type)
    if limit is not None:
        if value > limit:
            raise _refuse(f"{key} must be at most {limit:g}, not {value:g}")
        if abs(math.fmod(value, 1.0)) > 1e-6:
            raise _refuse(f"{key} must be a whole number, not {value:g}")


def describe_client_quotas(
    image: MetadataImage, request: messages.DescribeClientQuotasRequest
) -> Steps[messages.DescribeClientQuotasResponse]:
    """Return the quotas of the entities that a filter matches. Raise INVALID_REQUEST if the filter is not valid."""
    exact: dict[str, str | None] = {}
    present: set[str] = set()
    for component in request.components:
        kind, match = component.entity_type, component.match
        if not kind:
            raise _refuse("a component of the filter has no entity type")
        if kind in exact or kind in present:
            raise _refuse(f"the filter lists {kind} twice")
        if kind not in (USER, CLIENT_ID, IP):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, f"'{kind}' is not an entity type: use user, client-id or ip"
            )
        if component.match_type not in (_EXACT, _DEFAULT, _ANY):
            raise _refuse(f"unknown match type {component.match_type}: use 0 (exact), 1 (default) or 2 (any)")
        if (component.match_type == _EXACT) != (match is not None):
            raise _refuse("match type 0 (exact) needs a name, and other match types must have none")
        if component.match_type == _ANY:
            present.add(kind)
        else:
            exact[kind] = match
    kinds = present | set(exact)
    if IP in kinds and len(kinds) > 1:
        raise _refuse("a quota of an ip cannot be combined with a user or client-id")
    response = messages.DescribeClientQuotasResponse(entries=[])
    assert response.entries is not None
    for number, (entity, quotas) in enumerate(image.client_quotas.items(), 1):
        if number % ITEMS_PER_STEP == 0:
            yield
        names = dict(entity)
        matches = kinds <= set(names) and all(names[kind] == name for kind, name in exact.items())
        if matches and not (request.strict and len(names) != len(kinds)):
            response.entries.append(
                messages.DescribeClientQuotasResponse.EntryData(
                    entity=[
                        messages.DescribeClientQuotasResponse.EntityData(entity_type=kind, entity_name=name)
                        for kind, name in entity
                    ],
                    values=[
                        messages.DescribeClientQuotasResponse.ValueData(key=key, value=value)
                        for key, value in quotas.items()
                    ],
                )
            )
    return response
