"""UpdateFeatures: the decision. All features of a request are updated, or none.

A level has to be supported by every node of the cluster. A higher level is set as an UPGRADE, a lower one only as a
downgrade. metadata.version goes down only if no record loses its meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from tailrace.metadata.controller.control_state import ControlState, Plan
from tailrace.metadata.image.features import (
    DISABLED,
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    REQUIRED_METADATA_VERSION,
    SUPPORTED,
    VersionRange,
    loses_metadata,
)
from tailrace.metadata.image.image import ALL_BROKERS, ResourceType
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol import messages
from tailrace.protocol.message import Message

_UPGRADE: Final = 1
_SAFE_DOWNGRADE: Final = 2
_UNSAFE_DOWNGRADE: Final = 3
_MIN_ISR: Final = "min.insync.replicas"


def plan_update_features(
    state: ControlState, request: messages.UpdateFeaturesRequest, version: int, kraft_version: int
) -> Plan[messages.UpdateFeaturesResponse]:
    response = messages.UpdateFeaturesResponse(error_message=None)
    records: list[Message] = []
    updates = {one.feature: one.max_version_level for one in request.feature_updates}
    kinds = {one.feature: _kind(one, version) for one in request.feature_updates}
    try:
        for name, level in updates.items():
            records += _plan_feature(state, name, level, kinds[name], updates, kraft_version)
    except KafkaError as error:
        response.error_code = error.code
        response.error_message = f"no feature was updated: {error}"
        return Plan([], response)
    if updates.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0:
        records = [*_elr_safety_records(state), *records]
    if version <= 1:
        response.results = [
            messages.UpdateFeaturesResponse.UpdatableFeatureResult(
                feature=one.feature, error_code=ErrorCode.NONE, error_message=ErrorCode.NONE.name
            )
            for one in request.feature_updates
        ]
    return Plan([] if request.validate_only else records, response)


def _kind(update: messages.UpdateFeaturesRequest.FeatureUpdateKey, version: int) -> int:
    if version == 0:
        return _SAFE_DOWNGRADE if update.allow_downgrade else _UPGRADE
    return update.upgrade_type


def _refuse(name: str, level: int, reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_UPDATE_VERSION, f"{name} cannot be set to {level}: {reason}")


def _plan_feature(
    state: ControlState, name: str, level: int, kind: int, updates: Mapping[str, int], kraft_version: int
) -> list[Message]:
    image = state.image
    if kind not in (_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE):
        raise _refuse(
            name, level, f"unknown update type {kind}: use 1 (upgrade), 2 (safe downgrade) or 3 (unsafe downgrade)"
        )
    present = kraft_version if name == KRAFT_VERSION else image.features.get(name, 0)
    if level < 0:
        raise _refuse(name, level, "levels start at 0")
    if name not in SUPPORTED:
        raise _refuse(name, level, f"unknown feature; the known ones are {', '.join(sorted(SUPPORTED))}")
    for supporter, supported in _supporters(state, name):
        if level not in supported:
            raise _refuse(name, level, f"{supporter} supports {supported}")
    if level < present and kind == _UPGRADE:
        raise _refuse(name, level, f"it is at {present}; request a downgrade (safe or unsafe)")
    if level > present and kind != _UPGRADE:
        raise _refuse(name, level, f"it is at {present}, so this is an upgrade; request an upgrade")
    if name == METADATA_VERSION:
        if level < present and loses_metadata(present, level):
            raise _refuse(name, level, f"metadata that level {present} allows would be lost")
    elif name == KRAFT_VERSION:
        if level != present:
            raise _refuse(name, level, f"it is at {present}, and a standalone node cannot change it")
        return [messages.NoOpRecord()] if kind == _UPGRADE else []
    else:
        needed = REQUIRED_METADATA_VERSION.get(name, {}).get(level, 0)
        if updates.get(METADATA_VERSION, image.metadata_version) < needed:
            raise _refuse(name, level, f"it needs metadata.version {needed}")
    return [messages.FeatureLevelRecord(name=name, feature_level=level)]


def _supporters(state: ControlState, name: str) -> Iterator[tuple[str, VersionRange]]:
    yield "this node", SUPPORTED.get(name, DISABLED)
    for broker in state.image.brokers.values():
        yield f"broker {broker.id}", broker.features.get(name, DISABLED)
    for controller in state.image.controllers.values():
        yield f"controller {controller.id}", controller.features.get(name, DISABLED)


def _elr_safety_records(state: ControlState) -> list[Message]:
    """Set min.insync.replicas for the cluster and remove it from single brokers: with ELR all brokers must agree."""
    records: list[Message] = []
    if _MIN_ISR not in state.image.config(ALL_BROKERS):
        value = str(state.static_int(_MIN_ISR))
        records.append(messages.ConfigRecord(resource_type=ResourceType.BROKER, name=_MIN_ISR, value=value))
    for resource, settings in state.image.configs.items():
        if resource.type == ResourceType.BROKER and resource.name and _MIN_ISR in settings:
            records.append(
                messages.ConfigRecord(
                    resource_type=resource.type, resource_name=resource.name, name=_MIN_ISR, value=None
                )
            )
    return records
