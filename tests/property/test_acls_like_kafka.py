"""Any access control lists and any questions about them: the same answers as Kafka's StandardAuthorizer gives."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tailrace.broker.config.authorizer_config import authorizer_of
from tailrace.model.acls import WILDCARD, Acl, AclResource, Operation, PatternType, Permission
from tailrace.protocol.messages import AccessControlEntryRecord
from tests.support.acl_twins import AUTHORIZER
from tests.support.log_oracle import LogOracle

pytestmark = pytest.mark.kafka

PRINCIPALS = ("User:alice", "User:bob", "User:CN=c,OU=o", "Group:alice", "User:root")
HOSTS = ("10.0.0.1", "10.0.0.2", "::1", "2001:db8::2:1")
HOSTS_OF_ENTRIES = (WILDCARD, "10.0.0.1", "::1", "0:0:0:0:0:0:0:1", "2001:db8:0:0:0:0:2:1")
NAMES = ("a", "ab", "abc", "abd", "b", "b.c", "kafka-cluster", "hardcode", "zz")
PREFIXES = ("a", "ab", "b.", "h", "*", "abcd")


def random_acl(dice: random.Random) -> Acl:
    is_prefix = dice.random() < 0.35
    return Acl(
        dice.choice(list(AclResource)[:4]),
        dice.choice(PREFIXES) if is_prefix else dice.choice((*NAMES, WILDCARD)),
        PatternType.PREFIXED if is_prefix else PatternType.LITERAL,
        dice.choice((*PRINCIPALS, "User:*", "User:*")),
        dice.choice((WILDCARD, *HOSTS_OF_ENTRIES)),
        dice.choice(list(Operation)),
        dice.choice((Permission.ALLOW, Permission.ALLOW, Permission.DENY)),
    )


def random_question(dice: random.Random) -> dict[str, Any]:
    return {
        "principal": dice.choice(PRINCIPALS),
        "host": dice.choice(HOSTS),
        "operation": int(dice.choice(list(Operation)[1:])),
        "resource": int(dice.choice(list(AclResource)[:4])),
        "name": None if dice.random() < 0.15 else dice.choice((*NAMES, "abcde", "other")),
    }


def ours(settings: dict[str, str], acls: list[Acl], questions: list[dict[str, Any]]) -> list[bool]:
    authorizer = authorizer_of(settings)
    assert authorizer is not None
    for number, acl in enumerate(acls):
        record = AccessControlEntryRecord(
            resource_type=acl.resource,
            resource_name=acl.name,
            pattern_type=acl.pattern,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission,
        )
        authorizer.change({number.to_bytes(16, "big"): record})
    answers = []
    for one in questions:
        who = one["principal"], one["host"], Operation(one["operation"]), AclResource(one["resource"])
        answers.append(
            authorizer.allows_some(*who) if one["name"] is None else authorizer.allows_silently(*who, one["name"])
        )
    return answers


def compare(oracle: LogOracle, seeds: range) -> set[tuple[bool, bool]]:
    """Compare for each seed; which answers there were, with names and without."""
    seen = set()
    for seed in seeds:
        dice = random.Random(seed)
        settings = {
            "authorizer.class.name": AUTHORIZER,
            "super.users": "User:root;User:CN=x",
            "allow.everyone.if.no.acl.found": dice.choice(("true", "false")),
        }
        acls = list({random_acl(dice) for _ in range(dice.choice((0, 1, 3, 8, 30)))})
        questions = [random_question(dice) for _ in range(60)]
        asked = [{key: value for key, value in one.items() if value is not None} for one in questions]
        kafkas = oracle.call("acl_decide", settings=settings, acls=[one._asdict() for one in acls], questions=asked)
        reported = ours(settings, acls, questions)
        for one, theirs, answer in zip(questions, kafkas, reported, strict=True):
            assert answer is theirs, f"seed {seed}: {one} of {acls}: Kafka {theirs}"
            seen.add((one["name"] is None, answer))
    return seen


def test_acls_allow_and_deny_the_same_requests_as_in_kafka(log_oracle: LogOracle) -> None:
    assert len(compare(log_oracle, range(60))) == 4


@pytest.mark.slow
def test_acls_allow_and_deny_the_same_of_many_requests_as_in_kafka(log_oracle: LogOracle) -> None:
    compare(log_oracle, range(1_000, 5_000))
