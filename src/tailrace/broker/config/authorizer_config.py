"""authorizer_of: authorizer.class.name with super.users and allow.everyone.if.no.acl.found.

Only Kafka's StandardAuthorizer is supported, because other authorizers are Java classes. super.users and
allow.everyone.if.no.acl.found have no effect without an authorizer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tailrace.broker.security.standard_authorizer import StandardAuthorizer
from tailrace.model.topic_config import InvalidConfig

CLASS_NAME: Final = "authorizer.class.name"
SUPER_USERS: Final = "super.users"
ALLOW_UNLISTED: Final = "allow.everyone.if.no.acl.found"
OWN_KEYS: Final = frozenset({SUPER_USERS, ALLOW_UNLISTED})
STANDARD: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def authorizer_of(static: Mapping[str, str]) -> StandardAuthorizer | None:
    """Return the configured authorizer, without ACLs yet, or None if authorization is off.

    Raise InvalidConfig for a class that is not supported.
    """
    name = static.get(CLASS_NAME, "").strip()
    if not name:
        return None
    if name != STANDARD:
        raise InvalidConfig(f"{CLASS_NAME}: {name} is not supported; use {STANDARD}")
    unlisted = static.get(ALLOW_UNLISTED, "").strip().lower() == "true"
    return StandardAuthorizer(_super_users(static.get(SUPER_USERS, "")), allows_unlisted=unlisted)


def _super_users(text: str) -> frozenset[str]:
    users = frozenset(filter(None, (part.strip() for part in text.split(";"))))
    for user in users:
        kind, colon, name = user.partition(":")
        if not (kind and colon and name):
            raise InvalidConfig(
                f"{SUPER_USERS}: '{user}' is not a principal; write User:NAME, and separate several with ';'"
            )
    return users
