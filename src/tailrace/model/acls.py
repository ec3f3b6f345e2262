"""Acl and AclFilter: one entry of an access control list, and which entries somebody asks about. Codes are Kafka's.

An entry says of one principal, or of everyone, from one host or from anywhere, that an operation is allowed or denied
on the resources that a name stands for: the one of that name (LITERAL), all of a kind (LITERAL, "*"), or all whose
names begin so (PREFIXED).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple


class Operation(IntEnum):
    """What may be done. An entry of ALL is one of each."""

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
    """What an operation is done to."""

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


UNKNOWN: Final = 0  # in every field that has a code; nobody may send it
ANY: Final = 1  # in a filter
MATCH: Final = 2  # in a filter's pattern type: whatever counts for the resource of that name
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
    name: str | None  # None for any, as below
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
        """Whether a code means nothing, or nothing yet."""
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
