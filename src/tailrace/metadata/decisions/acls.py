"""CreateAcls, DeleteAcls and DescribeAcls: decisions about ACLs, and queries for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from tailrace.metadata.controller.control_state import MAX_RECORDS, NO_ERROR, ApiError, ControlState, Plan, check_size
from tailrace.metadata.image.acl_records import acl_of
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.acls import CLUSTER_NAME, Acl, AclFilter, AclResource, Operation, PatternType, Permission
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.steps import ITEMS_PER_STEP, Steps
from tailrace.protocol import messages
from tailrace.protocol.message import Message

AclFilterMessage: TypeAlias = messages.DescribeAclsRequest | messages.DeleteAclsRequest.DeleteAclsFilter

_TOO_MANY: Final = f"Cannot remove more than {MAX_RECORDS} acls in a single delete operation."


def filter_of(asked: AclFilterMessage) -> AclFilter:
    return AclFilter(
        asked.resource_type_filter,
        asked.resource_name_filter,
        asked.pattern_type_filter,
        asked.principal_filter,
        asked.host_filter,
        asked.operation,
        asked.permission_type,
    )


def plan_create_acls(state: ControlState, request: messages.CreateAclsRequest) -> Plan[list[ApiError]]:
    """Plan new entries; the result has an error for each. An entry that exists already succeeds without a record."""
    added = set[Acl]()
    records: list[Message] = []
    results = []
    for creation in request.creations:
        acl = Acl(
            creation.resource_type,
            creation.resource_name,
            creation.resource_pattern_type,
            creation.principal,
            creation.host,
            creation.operation,
            creation.permission_type,
        )
        problem = _problem(acl)
        results.append(NO_ERROR if problem is None else ApiError(ErrorCode.INVALID_REQUEST, problem))
        if problem is None and acl not in state.image.acl_ids and acl not in added:
            added.add(acl)
            records.append(_record(state.new_id(), acl))
    check_size(records)
    return Plan(records, results)


def _problem(acl: Acl) -> str | None:
    """Return the reason why a new entry is invalid, or None."""
    if acl.resource == AclResource.CLUSTER and acl.name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not acl.name:
        return "Invalid empty resource name"
    for what, code, known in (
        ("resourceType", acl.resource, AclResource),
        ("patternType", acl.pattern, PatternType),
        ("operation", acl.operation, Operation),
        ("permissionType", acl.permission, Permission),
    ):
        if code not in set(known):
            return f"Invalid {what} {code}"
    if ":" not in acl.principal:
        return (
            f"Could not parse principal from `{acl.principal}` (no colon is present separating the principal type "
            "from the principal name)"
        )
    return None


def _record(acl_id: bytes, acl: Acl) -> messages.AccessControlEntryRecord:
    return messages.AccessControlEntryRecord(id=acl_id, **_fields(acl))


def match_acls(
    image: MetadataImage, filters: Sequence[messages.DeleteAclsRequest.DeleteAclsFilter]
) -> Steps[tuple[list[bytes], list[messages.DeleteAclsResponse.DeleteAclsFilterResult]]]:
    """Return the ids of all matching entries, each once, and the result of each filter.

    All filters are matched against the same image, so an entry may be in several results.
    """
    found: dict[bytes, None] = {}
    results = []
    for asked in filters:
        wanted = filter_of(asked)
        result = messages.DeleteAclsResponse.DeleteAclsFilterResult(error_message=None)
        results.append(result)
        if wanted.has_unknown:
            result.error_code, result.error_message = (
                ErrorCode.INVALID_REQUEST,
                "the filter has an unknown resource type, pattern type, operation or permission type",
            )
            continue
        for number, (acl_id, record) in enumerate(image.acls.items(), 1):
            if number % ITEMS_PER_STEP == 0:
                yield
            acl = acl_of(record)
            if wanted.matches(acl):
                if len(found) >= MAX_RECORDS:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, _TOO_MANY)
                found[acl_id] = None
                result.matching_acls.append(_deleted(acl))
        yield
    return list(found), results


def plan_remove_acls(state: ControlState, ids: Iterable[bytes]) -> Plan[None]:
    """Plan the removal of entries; ids that no longer exist are skipped."""
    known = state.image.acls
    return Plan([messages.RemoveAccessControlEntryRecord(id=acl_id) for acl_id in ids if acl_id in known], None)


def _deleted(acl: Acl) -> messages.DeleteAclsResponse.DeleteAclsMatchingAcl:
    return messages.DeleteAclsResponse.DeleteAclsMatchingAcl(error_message=None, **_fields(acl))


def _fields(acl: Acl) -> dict[str, Any]:
    """Return the fields of an entry, with the names that records and responses use."""
    return {
        "resource_type": acl.resource,
        "resource_name": acl.name,
        "pattern_type": acl.pattern,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permission_type": acl.permission,
    }


def describe_acls(
    image: MetadataImage, wanted: AclFilter
) -> Steps[list[messages.DescribeAclsResponse.DescribeAclsResource]]:
    """Return the entries that a filter matches, grouped by resource."""
    found: dict[tuple[int, str, int], messages.DescribeAclsResponse.DescribeAclsResource] = {}
    for number, acl in enumerate(map(acl_of, image.acls.values()), 1):
        if number % ITEMS_PER_STEP == 0:
            yield
        if not wanted.matches(acl):
            continue
        about = acl.resource, acl.name, acl.pattern
        resource = found.get(about)
        if resource is None:
            resource = found[about] = messages.DescribeAclsResponse.DescribeAclsResource(
                resource_type=acl.resource, resource_name=acl.name, pattern_type=acl.pattern
            )
        resource.acls.append(
            messages.DescribeAclsResponse.AclDescription(
                principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission
            )
        )
    return list(found.values())
