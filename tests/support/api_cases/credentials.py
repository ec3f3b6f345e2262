# ruff: noqa: N806 - short names for the classes of messages
"""SCRAM credentials, and SASL on a listener without authentication."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.protocol import messages as m
from tests.support.api_cases.common import INT_MAX, Case
from tests.support.api_twins import Make

SHA_256, SHA_512 = 1, 2


def credential_cases() -> Iterator[Case]:
    A = m.AlterUserScramCredentialsRequest

    def alter(*sets: tuple[str, int, int], removes: tuple[tuple[str, int], ...] = ()) -> Make:
        return lambda side: A(
            deletions=[A.ScramCredentialDeletion(name=name, mechanism=mechanism) for name, mechanism in removes],
            upsertions=[
                A.ScramCredentialUpsertion(
                    name=name, mechanism=mechanism, iterations=rounds, salt=b"salt", salted_password=bytes(32)
                )
                for name, mechanism, rounds in sets
            ],
        )

    def describe(*names: str) -> Make:
        D = m.DescribeUserScramCredentialsRequest
        return lambda side: D(users=[D.UserName(name=name) for name in names] or None)

    yield "nobody yet", describe()
    yield "nothing", alter()
    yield "two users", alter(("alice", SHA_256, 4_096), ("bob", SHA_512, 16_384))
    yield "another mechanism", alter(("alice", SHA_512, 8_192))
    yield "all", describe()
    yield "one", describe("alice")
    yield "one of them twice, one unknown", describe("alice", "bob", "alice", "carol")
    yield "few rounds", alter(("carol", SHA_256, 4_095))
    yield "many rounds", alter(("carol", SHA_256, 16_385))
    yield "most rounds", alter(("carol", SHA_256, INT_MAX))
    yield "no rounds", alter(("carol", SHA_256, -1))
    yield "no name", alter(("", SHA_256, 4_096))
    for mechanism in (0, 3, -1):
        yield f"mechanism {mechanism}", alter(("carol", mechanism, 4_096))
        yield f"mechanism {mechanism} removed", alter(removes=(("alice", mechanism),))
    yield "twice", alter(("carol", SHA_256, 4_096), ("carol", SHA_512, 4_096))
    yield "three times", alter(*[("carol", SHA_256, 4_096)] * 3)
    yield "set and removed", alter(("alice", SHA_256, 4_096), removes=(("alice", SHA_256),))
    yield "removed twice", alter(removes=(("alice", SHA_256), ("alice", SHA_512)))
    yield "good and bad", alter(("carol", SHA_256, 4_096), ("dave", SHA_256, 1), removes=(("erin", SHA_256),))
    yield "removed, nobody of that name", alter(removes=(("", SHA_256), ("zed", SHA_256)))
    yield "removed", alter(removes=(("bob", SHA_512),))
    yield "those left", describe()

    yield "out of turn", lambda side: m.SaslHandshakeRequest(mechanism="PLAIN")
    yield "out of turn", lambda side: m.SaslAuthenticateRequest(auth_bytes=b"\0a\0b")


def token_cases() -> Iterator[Case]:
    """Yield requests on an unauthenticated connection. With a login: test_delegation_tokens_like_kafka.py."""
    yield "a token", lambda _: m.CreateDelegationTokenRequest(max_lifetime_ms=-1)
    yield "renewed", lambda _: m.RenewDelegationTokenRequest(hmac=b"none", renew_period_ms=-1)
    yield "expired", lambda _: m.ExpireDelegationTokenRequest(hmac=b"none", expiry_time_period_ms=-1)
    yield "all tokens", lambda _: m.DescribeDelegationTokenRequest(owners=None)


def acl_cases() -> Iterator[Case]:
    """Yield requests at a broker without an authorizer. With an authorizer: `acl_cases.py` beside this folder."""
    for code in (1, 0):  # ANY and UNKNOWN
        codes = {"operation": code, "permission_type": 1}
        filters = {"resource_type_filter": 1, "pattern_type_filter": 1, **codes}
        yield f"acls {code}", lambda _, filters=filters: m.DescribeAclsRequest(**filters)
        removed = [m.DeleteAclsRequest.DeleteAclsFilter(**filters)] * 2  # type: ignore[arg-type]
        yield f"acls {code}", lambda _, removed=removed: m.DeleteAclsRequest(filters=removed)
        made = m.CreateAclsRequest.AclCreation(
            resource_type=2,
            resource_name="x",
            resource_pattern_type=3,
            principal="User:a",
            host="*",
            operation=code * 3,
        )
        made.permission_type = 3
        yield f"acls {code}", lambda _, made=made: m.CreateAclsRequest(creations=[made, made])
