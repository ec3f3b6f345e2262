"""Authorizer: decides if a principal may do an operation on a resource.

Without authorizer.class.name everything is allowed (`AllowAll`). Otherwise ACLs decide (`standard_authorizer.py`).
"""

from __future__ import annotations

from typing import Protocol

from tailrace.model.acls import CLUSTER_NAME as CLUSTER_NAME
from tailrace.model.acls import AclResource as AclResource
from tailrace.model.acls import Operation as Operation

NOT_ASKED = -(2**31)  # authorized operations in a response to a request that did not ask for them

_TOPIC_OPERATIONS = (
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
_GROUP_OPERATIONS = (
    Operation.READ,
    Operation.DELETE,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
_CLUSTER_OPERATIONS = (
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
)


class Authorizer(Protocol):
    def allows(self, principal: str, host: str, operation: Operation, resource: AclResource, name: str) -> bool: ...

    def allows_silently(
        self, principal: str, host: str, operation: Operation, resource: AclResource, name: str
    ) -> bool:
        """Like `allows`, but denials are not logged. Used to filter lists and to report authorized operations."""

    def allows_some(self, principal: str, host: str, operation: Operation, resource: AclResource) -> bool:
        """Return True if the operation may be allowed on at least one resource of that type."""


class AllowAll:
    """The authorizer without authorizer.class.name: it allows everything."""

    def allows(self, principal: str, host: str, operation: Operation, resource: AclResource, name: str) -> bool:
        return True

    allows_silently = allows

    def allows_some(self, principal: str, host: str, operation: Operation, resource: AclResource) -> bool:
        return True


def rights_of(authorizer: Authorizer) -> Authorizer | None:
    """Return the authorizer that fast paths must consult, or None if authorization is off."""
    return None if isinstance(authorizer, AllowAll) else authorizer


def topic_operations(authorizer: Authorizer, principal: str, host: str, topic: str) -> int:
    """Return the operations allowed on a topic, one bit each, as responses report them."""
    return _bits(authorizer, principal, host, AclResource.TOPIC, topic, _TOPIC_OPERATIONS)


def group_operations(authorizer: Authorizer, principal: str, host: str, group_id: str) -> int:
    return _bits(authorizer, principal, host, AclResource.GROUP, group_id, _GROUP_OPERATIONS)


def cluster_operations(authorizer: Authorizer, principal: str, host: str) -> int:
    """Return the operations allowed on the cluster, or 0 for a client that may not describe it."""
    if not authorizer.allows(principal, host, Operation.DESCRIBE, AclResource.CLUSTER, CLUSTER_NAME):
        return 0
    return _bits(authorizer, principal, host, AclResource.CLUSTER, CLUSTER_NAME, _CLUSTER_OPERATIONS)


def _bits(
    authorizer: Authorizer,
    principal: str,
    host: str,
    resource: AclResource,
    name: str,
    operations: tuple[Operation, ...],
) -> int:
    return sum(1 << one for one in operations if authorizer.allows_silently(principal, host, one, resource, name))
