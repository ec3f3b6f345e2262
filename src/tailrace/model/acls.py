"""Acl and AclFilter: an entry of an access control list, and a filter of entries. The codes are Kafka's.

An entry allows or denies one operation. It applies to one principal or all, connecting from one host or any. Its
resource pattern selects one resource by name (LITERAL), all resources of a type (LITERAL with "*"), or all resources
whose names have a prefix (PREFIXED).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple


class Operation(IntEnum):
    """An operation on a resource. An entry with ALL covers every operation."""

    ALL = 2
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
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclResource(IntEnum):
    """The type of the resource that an operation concerns."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    DENY = 2
    ALLOW = 3


UNKNOWN: Final = 0  # of every field that has codes; clients may not send it
ANY: Final = 1  # in a filter
MATCH: Final = 2  # in a filter's pattern type: all patterns that apply to the resource of that name
WILDCARD: Final = "*"
EVERYONE: Final = "User:*"
CLUSTER_NAME: Final = "kafka-cluster"


class Acl(NamedTuple):
    resource: int
    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int


class AclFilter(NamedTuple):
    resource: int
    name: str | None  # None: any; also in the fields below
    pattern: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def matches(self, acl: Acl) -> bool:
        return (
            self.resource in (ANY, acl.resource)
            and self.operation in (ANY, acl.operation)
            and self.permission in (ANY, acl.permission)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self._matches_pattern(acl)
        )

    def _matches_pattern(self, acl: Acl) -> bool:
        if self.pattern not in (ANY, MATCH, acl.pattern):
            return False
        if self.name is None:
            return True
        if self.pattern != MATCH:
            return self.name == acl.name
        if acl.pattern == PatternType.LITERAL:
            return acl.name in (self.name, WILDCARD)
        return self.name.startswith(acl.name)

    @property
    def has_unknown(self) -> bool:
        """Return True if a field has the code UNKNOWN or a code that Kafka does not define."""
        return (
            self.resource not in _RESOURCES
            or self.pattern not in _PATTERNS
            or self.operation not in _OPERATIONS
            or self.permission not in _PERMISSIONS
        )


_RESOURCES: Final = frozenset({ANY, *AclResource})
_PATTERNS: Final = frozenset({ANY, MATCH, *PatternType})
_OPERATIONS: Final = frozenset({ANY, *Operation})
_PERMISSIONS: Final = frozenset({ANY, *Permission})
