"""What entries of access control lists come to; tests/conformance/test_acls_like_kafka.py asks Kafka the same."""

from __future__ import annotations

import logging
from itertools import count

import pytest

from tailrace.broker.security.standard_authorizer import KEPT_MAX, TOLD_MAX, StandardAuthorizer
from tailrace.model.acls import AclResource, Operation, PatternType, Permission
from tailrace.protocol.messages import AccessControlEntryRecord

_ids = count(1)
TOPIC, GROUP = AclResource.TOPIC, AclResource.GROUP
PREFIXED = PatternType.PREFIXED
DENY = Permission.DENY


def entry(
    principal: str,
    operation: Operation,
    name: str,
    *,
    resource: AclResource = TOPIC,
    pattern: PatternType = PatternType.LITERAL,
    permission: Permission = Permission.ALLOW,
    host: str = "*",
) -> tuple[bytes, AccessControlEntryRecord]:
    acl_id = next(_ids).to_bytes(16, "big")
    return acl_id, AccessControlEntryRecord(
        id=acl_id,
        resource_type=resource,
        resource_name=name,
        pattern_type=pattern,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission,
    )


def authorizer(*entries: tuple[bytes, AccessControlEntryRecord], unlisted: bool = False) -> StandardAuthorizer:
    made = StandardAuthorizer(frozenset({"User:admin"}), allows_unlisted=unlisted)
    made.change(dict(entries))
    return made


def may(of: StandardAuthorizer, user: str, operation: Operation, name: str, host: str = "10.0.0.1") -> bool:
    return of.allows(f"User:{user}", host, operation, TOPIC, name)


def test_nothing_is_allowed_that_no_entry_allows_but_to_super_users() -> None:
    rules = authorizer()
    assert not may(rules, "alice", Operation.READ, "orders")
    assert may(rules, "admin", Operation.READ, "orders")


def test_a_denial_wins_whatever_else_there_is() -> None:
    rules = authorizer(
        entry("User:alice", Operation.READ, "orders"),
        entry("User:*", Operation.ALL, "ord", pattern=PREFIXED, permission=DENY, host="10.0.0.1"),
    )
    assert not may(rules, "alice", Operation.READ, "orders")
    assert may(rules, "alice", Operation.READ, "orders", host="10.0.0.2")


@pytest.mark.parametrize("given", [Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER])
def test_who_may_use_may_describe_but_a_denial_implies_nothing(given: Operation) -> None:
    rules = authorizer(
        entry("User:alice", given, "orders"),
        entry("User:bob", Operation.DESCRIBE, "orders"),
        entry("User:bob", given, "orders", permission=DENY),
    )
    assert may(rules, "alice", Operation.DESCRIBE, "orders")
    assert not may(rules, "alice", Operation.DESCRIBE_CONFIGS, "orders")
    assert may(rules, "bob", Operation.DESCRIBE, "orders")


def test_who_may_alter_configs_may_describe_them() -> None:
    rules = authorizer(entry("User:alice", Operation.ALTER_CONFIGS, "orders"))
    assert may(rules, "alice", Operation.DESCRIBE_CONFIGS, "orders")
    assert not may(rules, "alice", Operation.DESCRIBE, "orders")


def test_names_are_one_all_or_a_beginning() -> None:
    rules = authorizer(
        entry("User:one", Operation.READ, "orders"),
        entry("User:all", Operation.READ, "*"),
        entry("User:some", Operation.READ, "or", pattern=PREFIXED),
        entry("User:star", Operation.READ, "*", pattern=PREFIXED),
    )
    assert [name for name in ("o", "or", "orders", "orders2", "*x") if may(rules, "some", Operation.READ, name)] == [
        "or",
        "orders",
        "orders2",
    ]
    assert may(rules, "one", Operation.READ, "orders")
    assert not may(rules, "one", Operation.READ, "orders2")
    assert may(rules, "all", Operation.READ, "anything")
    assert not may(rules, "star", Operation.READ, "orders")
    assert may(rules, "star", Operation.READ, "*x")


def test_everyone_is_allowed_what_no_entry_is_about_if_that_is_set() -> None:
    rules = authorizer(entry("User:alice", Operation.READ, "orders"), unlisted=True)
    assert may(rules, "bob", Operation.WRITE, "other")
    assert not may(rules, "bob", Operation.WRITE, "orders")
    assert not may(rules, "alice", Operation.WRITE, "orders")


def test_an_address_of_ipv6_is_written_as_java_does() -> None:
    rules = authorizer(entry("User:alice", Operation.READ, "orders", host="0:0:0:0:0:0:0:1"))
    assert may(rules, "alice", Operation.READ, "orders", host="::1")
    assert not may(rules, "alice", Operation.READ, "orders", host="::2")


def test_entries_count_from_when_they_come_until_they_go() -> None:
    acl_id, record = entry("User:alice", Operation.READ, "orders")
    rules = authorizer()
    for _ in range(2):
        assert not may(rules, "alice", Operation.READ, "orders")
        rules.change({acl_id: record})
        assert may(rules, "alice", Operation.READ, "orders")
        rules.change({acl_id: None})


@pytest.mark.parametrize(
    ("entries", "some"),
    [
        ([], False),
        ([entry("User:alice", Operation.WRITE, "orders")], True),
        ([entry("User:alice", Operation.READ, "orders")], False),
        ([entry("User:alice", Operation.WRITE, "orders", host="10.9.9.9")], False),
        ([entry("User:alice", Operation.WRITE, "orders", resource=GROUP)], False),
        (
            [
                entry("User:alice", Operation.WRITE, "orders"),
                entry("User:*", Operation.WRITE, "orders", permission=DENY),
            ],
            False,
        ),
        (
            [
                entry("User:alice", Operation.WRITE, "orders"),
                entry("User:*", Operation.ALL, "ord", pattern=PREFIXED, permission=DENY),
            ],
            False,
        ),
        (
            [
                entry("User:alice", Operation.ALL, "o", pattern=PREFIXED),
                entry("User:*", Operation.WRITE, "ord", pattern=PREFIXED, permission=DENY),
            ],
            True,
        ),
        (
            [entry("User:alice", Operation.WRITE, "a"), entry("User:*", Operation.WRITE, "*", permission=DENY)],
            False,
        ),
        (
            [entry("User:alice", Operation.WRITE, "*"), entry("User:*", Operation.WRITE, "hardcode", permission=DENY)],
            True,
        ),
    ],
)
def test_some_resource_of_a_kind(entries: list[tuple[bytes, AccessControlEntryRecord]], some: bool) -> None:
    rules = authorizer(*entries)
    assert rules.allows_some("User:alice", "10.0.0.1", Operation.WRITE, TOPIC) is some
    assert rules.allows_some("User:admin", "10.0.0.1", Operation.WRITE, TOPIC)


@pytest.mark.long
def test_a_denial_is_told_once_and_a_client_cannot_fill_the_log_nor_the_memory(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rules = authorizer()
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            may(rules, "alice", Operation.READ, "orders")
        rules.allows_silently("User:alice", "10.0.0.1", Operation.READ, TOPIC, "unseen")
        assert [record.getMessage() for record in caplog.records] == ["denied"]
        for number in range(KEPT_MAX + 10):
            may(rules, "alice", Operation.READ, str(number))
    assert len(caplog.records) == TOLD_MAX
    assert len(rules._kept) <= KEPT_MAX
