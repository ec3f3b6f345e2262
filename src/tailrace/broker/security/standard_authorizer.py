"""StandardAuthorizer: decides by ACLs, with the rules of Kafka's class of the same name, in this order:

    super.users        everything is allowed
    a matching DENY    denied
    a matching ALLOW   allowed; READ, WRITE, DELETE and ALTER imply DESCRIBE, ALTER_CONFIGS implies DESCRIBE_CONFIGS
    no matching ACL    denied; but with allow.everyone.if.no.acl.found, a resource without any ACL is open to everyone

Decisions are cached until an ACL changes, so a request costs one lookup for each resource that it names.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping
from ipaddress import AddressValueError, IPv6Address
from typing import Final, TypeAlias

from tailrace.metadata.image.acl_records import acl_of
from tailrace.model.acls import EVERYONE, WILDCARD, Acl, AclResource, Operation, PatternType, Permission
from tailrace.model.log_fields import fields
from tailrace.protocol.messages import AccessControlEntryRecord

CACHED_MAX: Final = 100_000  # cached decisions; clients can name any number of resources
LOGGED_MAX: Final = 1_000  # logged denials until an ACL changes

_IMPLIED: Final[Mapping[int, frozenset[int]]] = {
    Operation.DESCRIBE: frozenset({Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}
_NOTHING: Final[frozenset[int]] = frozenset()
_Question: TypeAlias = tuple[
    str, str, Operation, AclResource, str
]  # principal, host, operation, resource type, resource name
_log = logging.getLogger(__name__)


class _Entries:
    """The ACLs of one resource type, by resource name."""

    def __init__(self) -> None:
        self.literal: defaultdict[str, list[Acl]] = defaultdict(list)
        self.prefixed: defaultdict[str, list[Acl]] = defaultdict(list)

    def add(self, acl: Acl) -> None:
        self._by_name(acl)[acl.name].append(acl)

    def remove(self, acl: Acl) -> None:
        by_name = self._by_name(acl)
        by_name[acl.name].remove(acl)
        if not by_name[acl.name]:
            del by_name[acl.name]

    def _by_name(self, acl: Acl) -> defaultdict[str, list[Acl]]:
        return self.literal if acl.pattern == PatternType.LITERAL else self.prefixed

    def about(self, name: str) -> Iterator[Acl]:
        """Yield the ACLs that apply to a resource: literal, wildcard and prefixed ones."""
        for one in {name, WILDCARD}:
            yield from self.literal.get(one, ())
        if self.prefixed:
            for length in range(1, len(name) + 1):
                yield from self.prefixed.get(name[:length], ())

    def __iter__(self) -> Iterator[Acl]:
        for by_name in (self.literal, self.prefixed):
            for acls in by_name.values():
                yield from acls


class StandardAuthorizer:
    def __init__(self, super_users: frozenset[str] = frozenset(), *, allows_unlisted: bool = False) -> None:
        """`allows_unlisted` is the setting allow.everyone.if.no.acl.found."""
        self.super_users = super_users
        self.allows_unlisted = allows_unlisted
        self._by_id: dict[bytes, Acl] = {}
        self._entries: dict[int, _Entries] = {kind: _Entries() for kind in AclResource}
        self._cached: dict[_Question, bool] = {}
        self._logged: set[_Question] = set()  # denials that were logged

    def change(self, changed: Mapping[bytes, AccessControlEntryRecord | None]) -> None:
        """Apply changed ACLs, by their ids. A deleted one is None."""
        for acl_id, record in changed.items():
            before = self._by_id.pop(acl_id, None)
            if before is not None and before.resource in self._entries:
                self._entries[before.resource].remove(before)
            if record is not None:
                acl = self._by_id[acl_id] = acl_of(record)
                if acl.resource in self._entries:
                    self._entries[acl.resource].add(acl)
        self._cached.clear()
        self._logged.clear()

    # Decisions

    def allows(self, principal: str, host: str, operation: Operation, resource: AclResource, name: str) -> bool:
        """Like `allows_silently`, but a denial is logged, once until the ACLs change."""
        if self._cached.get((principal, host, operation, resource, name)):
            return True
        allowed = self.allows_silently(principal, host, operation, resource, name)
        if not allowed:
            self._log_denial((principal, host, operation, resource, name))
        return allowed

    def allows_silently(
        self, principal: str, host: str, operation: Operation, resource: AclResource, name: str
    ) -> bool:
        """Return True if the operation is allowed. Denials are not logged."""
        question = principal, host, operation, resource, name
        decided = self._cached.get(question)
        if decided is None:
            decided = principal in self.super_users or self._decide(principal, host, operation, resource, name)
            if len(self._cached) >= CACHED_MAX:
                self._cached.clear()
            self._cached[question] = decided
        return decided

    def allows_some(self, principal: str, host: str, operation: Operation, resource: AclResource) -> bool:
        """Return True if the operation may be allowed on at least one resource of a type (KIP-679)."""
        if self.allows_silently(principal, host, operation, resource, "hardcode"):
            return True
        host = _host(host)
        allowed: list[Acl] = []
        denied: list[Acl] = []
        for acl in self._entries[resource]:
            if _is_about(acl, principal, host) and acl.operation in (operation, Operation.ALL):
                (allowed if acl.permission == Permission.ALLOW else denied).append(acl)
        literals = {acl.name for acl in denied if acl.pattern == PatternType.LITERAL}
        prefixes = {acl.name for acl in denied if acl.pattern == PatternType.PREFIXED}
        if WILDCARD in literals:
            return False
        return any(
            (acl.pattern == PatternType.LITERAL and acl.name == WILDCARD)
            or not (
                (acl.pattern == PatternType.LITERAL and acl.name in literals)
                or any(acl.name[:length] in prefixes for length in range(1, len(acl.name) + 1))
            )
            for acl in allowed
        )

    def _decide(self, principal: str, host: str, operation: Operation, resource: AclResource, name: str) -> bool:
        host = _host(host)
        implied_by = _IMPLIED.get(operation, _NOTHING)
        is_listed = is_allowed = False
        for acl in self._entries[resource].about(name):
            is_listed = True
            if not _is_about(acl, principal, host):
                continue
            fits = acl.operation in (operation, Operation.ALL)
            if acl.permission == Permission.DENY:
                if fits:
                    return False
            elif fits or acl.operation in implied_by:
                is_allowed = True
        return is_allowed if is_listed else self.allows_unlisted

    def _log_denial(self, question: _Question) -> None:
        if question in self._logged or len(self._logged) >= LOGGED_MAX:
            return
        self._logged.add(question)
        principal, host, operation, resource, name = question
        _log.info(
            "operation denied",
            extra=fields(principal=principal, host=host, operation=operation.name, resource=resource.name, name=name),
        )


def _is_about(acl: Acl, principal: str, host: str) -> bool:
    return acl.principal in (principal, EVERYONE) and acl.host in (host, WILDCARD)


def _host(host: str) -> str:
    """Return an address in the form of ACLs: IPv6 as Java writes it, such as 0:0:0:0:0:0:0:1."""
    if ":" not in host:
        return host
    address, percent, scope = host.partition("%")
    try:
        groups = IPv6Address(address).exploded.split(":")
    except AddressValueError:
        return host
    return ":".join(f"{int(group, 16):x}" for group in groups) + percent + scope
