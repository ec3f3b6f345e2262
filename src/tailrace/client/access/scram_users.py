"""Lists, sets and removes SCRAM credentials. A password stays in the client; the broker gets a salted hash of it."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Final, NamedTuple

from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.errors import Refused
from tailrace.model.security import scram
from tailrace.protocol.messages import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

_SALT_BYTES: Final = 24
_NAMES: Final = {code: name for name, code in scram.MECHANISMS.items()}


class ScramUser(NamedTuple):
    name: str
    mechanism: str
    iterations: int


def list_scram_users(cluster: ClusterClient) -> list[ScramUser]:
    """Return the credentials of all users, sorted by user and mechanism."""

    def check(answer: DescribeUserScramCredentialsResponse) -> None:
        _raise("users", answer.error_code, answer.error_message)
        for one in answer.results:
            _raise(f"user {one.user}", one.error_code, one.error_message)

    # An empty list asks for all users, as null does. Kafka 4.3 does not respond to null from a client without rights.
    request = DescribeUserScramCredentialsRequest(users=[])
    answer: DescribeUserScramCredentialsResponse = cluster.ask_any(request, check=check)
    return sorted(
        ScramUser(one.user, _NAMES.get(info.mechanism, str(info.mechanism)), info.iterations)
        for one in answer.results
        for info in one.credential_infos
    )


def set_scram_password(cluster: ClusterClient, user: ScramUser, password: str) -> None:
    """Create or replace the credential of a user for one mechanism."""
    salt = secrets.token_bytes(_SALT_BYTES)
    digest = scram.digest_of(user.mechanism)
    request = AlterUserScramCredentialsRequest(
        upsertions=[
            AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
                name=user.name,
                mechanism=scram.MECHANISMS[user.mechanism],
                iterations=user.iterations,
                salt=salt,
                salted_password=scram.salted_password(digest, password, salt, user.iterations),
            )
        ]
    )
    cluster.change(request, _check)


def remove_scram_credentials(cluster: ClusterClient, name: str, mechanisms: Iterable[str]) -> None:
    """Remove the credentials of a user for these mechanisms."""
    deletions = [
        AlterUserScramCredentialsRequest.ScramCredentialDeletion(name=name, mechanism=scram.MECHANISMS[mechanism])
        for mechanism in mechanisms
    ]
    cluster.change(AlterUserScramCredentialsRequest(deletions=deletions), _check)


def _check(answer: AlterUserScramCredentialsResponse) -> None:
    for one in answer.results:
        _raise(f"user {one.user}", one.error_code, one.error_message)


def _raise(subject: str, code: int, message: str | None) -> None:
    if code:
        raise Refused(subject, code, message)
