"""Lists, adds and removes entries of access control lists."""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.errors import Refused
from tailrace.model.acls import Acl, AclFilter
from tailrace.protocol.messages import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)

_SUBJECT = "access control list"


def list_acls(cluster: ClusterClient, wanted: AclFilter) -> list[Acl]:
    """Return the entries that match the filter, sorted."""

    def check(answer: DescribeAclsResponse) -> None:
        _raise(answer.error_code, answer.error_message)

    request = DescribeAclsRequest(
        resource_type_filter=wanted.resource,
        resource_name_filter=wanted.name,
        pattern_type_filter=wanted.pattern,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )
    answer: DescribeAclsResponse = cluster.ask_any(request, check=check)
    return sorted(
        Acl(
            one.resource_type,
            one.resource_name,
            one.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for one in answer.resources
        for acl in one.acls
    )


def add_acls(cluster: ClusterClient, acls: Sequence[Acl]) -> None:
    """Add entries. An entry that exists is left unchanged."""
    request = CreateAclsRequest(
        creations=[
            CreateAclsRequest.AclCreation(
                resource_type=acl.resource,
                resource_name=acl.name,
                resource_pattern_type=acl.pattern,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in acls
        ]
    )

    def check(answer: CreateAclsResponse) -> None:
        for one in answer.results:
            _raise(one.error_code, one.error_message)

    cluster.change(request, check)


def remove_acls(cluster: ClusterClient, wanted: AclFilter) -> list[Acl]:
    """Remove the entries that match the filter, and return them."""
    request = DeleteAclsRequest(
        filters=[
            DeleteAclsRequest.DeleteAclsFilter(
                resource_type_filter=wanted.resource,
                resource_name_filter=wanted.name,
                pattern_type_filter=wanted.pattern,
                principal_filter=wanted.principal,
                host_filter=wanted.host,
                operation=wanted.operation,
                permission_type=wanted.permission,
            )
        ]
    )

    def check(answer: DeleteAclsResponse) -> None:
        for result in answer.filter_results:
            _raise(result.error_code, result.error_message)
            for one in result.matching_acls:
                _raise(one.error_code, one.error_message)

    answer: DeleteAclsResponse = cluster.change(request, check)
    return sorted(
        Acl(
            one.resource_type,
            one.resource_name,
            one.pattern_type,
            one.principal,
            one.host,
            one.operation,
            one.permission_type,
        )
        for result in answer.filter_results
        for one in result.matching_acls
    )


def _raise(code: int, message: str | None) -> None:
    if code:
        raise Refused(_SUBJECT, code, message)
