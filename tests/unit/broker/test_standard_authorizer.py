"""Decisions by ACLs. tests/conformance/test_acls_like_kafka.py compares them with Kafka's."""

from __future__ import annotations

import logging
from itertools import count

import pytest

from tailrace.broker.security.standard_authorizer import CACHED_MAX, LOGGED_MAX, StandardAuthorizer
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


def test_without_acls_only_super_users_are_allowed() -> None:
    rules = authorizer()
    assert not may(rules, "alice", Operation.READ, "orders")
    assert may(rules, "admin", Operation.READ, "orders")


def test_a_matching_deny_takes_precedence_over_an_allow() -> None:
    rules = authorizer(
        entry("User:alice", Operation.READ, "orders"),
        entry("User:*", Operation.ALL, "ord", pattern=PREFIXED, permission=DENY, host="10.0.0.1"),
    )
    assert not may(rules, "alice", Operation.READ, "orders")
    assert may(rules, "alice", Operation.READ, "orders", host="10.0.0.2")


@pytest.mark.parametrize("given", [Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER])
def test_read_write_delete_and_alter_imply_describe_but_their_denial_does_not(given: Operation) -> None:
    rules = authorizer(
        entry("User:alice", given, "orders"),
        entry("User:bob", Operation.DESCRIBE, "orders"),
        entry("User:bob", given, "orders", permission=DENY),
    )
    assert may(rules, "alice", Operation.DESCRIBE, "orders")
    assert not may(rules, "alice", Operation.DESCRIBE_CONFIGS, "orders")
    assert may(rules, "bob", Operation.DESCRIBE, "orders")


def test_alter_configs_implies_describe_configs() -> None:
    rules = authorizer(entry("User:alice", Operation.ALTER_CONFIGS, "orders"))
    assert may(rules, "alice", Operation.DESCRIBE_CONFIGS, "orders")
    assert not may(rules, "alice", Operation.DESCRIBE, "orders")


def test_literal_wildcard_and_prefixed_acls_match_their_names() -> None:
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


def test_resources_without_acls_are_open_with_allow_everyone_if_no_acl_found() -> None:
    rules = authorizer(entry("User:alice", Operation.READ, "orders"), unlisted=True)
    assert may(rules, "bob", Operation.WRITE, "other")
    assert not may(rules, "bob", Operation.WRITE, "orders")
    assert not may(rules, "alice", Operation.WRITE, "orders")


def test_an_ipv6_host_matches_an_acl_in_javas_notation() -> None:
    rules = authorizer(entry("User:alice", Operation.READ, "orders", host="0:0:0:0:0:0:0:1"))
    assert may(rules, "alice", Operation.READ, "orders", host="::1")
    assert not may(rules, "alice", Operation.READ, "orders", host="::2")


def test_an_acl_is_in_force_until_it_is_deleted() -> None:
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
def test_allows_some_is_true_if_one_resource_of_the_type_may_be_allowed(
    entries: list[tuple[bytes, AccessControlEntryRecord]], some: bool
) -> None:
    rules = authorizer(*entries)
    assert rules.allows_some("User:alice", "10.0.0.1", Operation.WRITE, TOPIC) is some
    assert rules.allows_some("User:admin", "10.0.0.1", Operation.WRITE, TOPIC)


@pytest.mark.long
def test_denials_are_logged_once_and_log_and_cache_are_bounded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rules = authorizer()
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            may(rules, "alice", Operation.READ, "orders")
        rules.allows_silently("User:alice", "10.0.0.1", Operation.READ, TOPIC, "unseen")
        assert [record.getMessage() for record in caplog.records] == ["operation denied"]
        for number in range(CACHED_MAX + 10):
            may(rules, "alice", Operation.READ, str(number))
    assert len(caplog.records) == LOGGED_MAX
    assert len(rules._cached) <= CACHED_MAX
