"""Authorizer: who may do what. The seam at which ACLs will decide; until then everyone may do everything."""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol


class Operation(IntEnum):
    """Kafka's ACL operations."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


class AclResource(IntEnum):
    """What an operation is done to."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


CLUSTER_NAME = "kafka-cluster"
NOT_ASKED = -(2**31)  # what a response says of authorized operations that nobody asked for

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


class AllowAll:
    """No ACLs: what Kafka does without an authorizer.class.name."""

    def allows(self, principal: str, host: str, operation: Operation, resource: AclResource, name: str) -> bool:
        return True


def topic_operations(authorizer: Authorizer, principal: str, host: str, topic: str) -> int:
    """The operations allowed on a topic, one bit each, as responses tell them."""
    return _bits(authorizer, principal, host, AclResource.TOPIC, topic, _TOPIC_OPERATIONS)


def group_operations(authorizer: Authorizer, principal: str, host: str, group_id: str) -> int:
    return _bits(authorizer, principal, host, AclResource.GROUP, group_id, _GROUP_OPERATIONS)


def cluster_operations(authorizer: Authorizer, principal: str, host: str) -> int:
    return _bits(authorizer, principal, host, AclResource.CLUSTER, CLUSTER_NAME, _CLUSTER_OPERATIONS)


def _bits(
    authorizer: Authorizer,
    principal: str,
    host: str,
    resource: AclResource,
    name: str,
    operations: tuple[Operation, ...],
) -> int:
    return sum(1 << one for one in operations if authorizer.allows(principal, host, one, resource, name))
