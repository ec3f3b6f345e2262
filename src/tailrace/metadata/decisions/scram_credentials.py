"""AlterUserScramCredentials and DescribeUserScramCredentials: the decisions."""

from __future__ import annotations

from tailrace.metadata.controller.control_state import NO_ERROR, ApiError, ControlState, Plan
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode
from tailrace.model.security import scram
from tailrace.model.topic_config import InvalidConfig
from tailrace.protocol import messages
from tailrace.protocol.message import Message

_TWICE = ApiError(ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
_NAMES = {number: name for name, number in scram.MECHANISMS.items()}


def plan_alter_credentials(
    state: ControlState, request: messages.AlterUserScramCredentialsRequest
) -> Plan[messages.AlterUserScramCredentialsResponse]:
    results: dict[str, ApiError] = {}
    records: dict[str, Message] = {}  # by user: each may be changed once
    for deletion in request.deletions:
        if deletion.name in results:
            results[deletion.name] = _TWICE if results[deletion.name] == NO_ERROR else results[deletion.name]
            continue
        error = _check(deletion.name, deletion.mechanism)
        if error == NO_ERROR and (deletion.mechanism, deletion.name) not in state.image.scram_credentials:
            reason = "Attempt to delete a user credential that does not exist"
            error = ApiError(ErrorCode.RESOURCE_NOT_FOUND, reason)
        results[deletion.name] = error
        records[deletion.name] = messages.RemoveUserScramCredentialRecord(
            name=deletion.name, mechanism=deletion.mechanism
        )
    for upsertion in request.upsertions:
        if upsertion.name in results:
            results[upsertion.name] = _TWICE if results[upsertion.name] == NO_ERROR else results[upsertion.name]
            continue
        error = _check(upsertion.name, upsertion.mechanism)
        if error == NO_ERROR and upsertion.iterations < scram.ITERATIONS_MIN:
            error = ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
        if error == NO_ERROR and upsertion.iterations > scram.ITERATIONS_MAX:
            error = ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
        results[upsertion.name] = error
        if error == NO_ERROR:
            records[upsertion.name] = credential_record(
                upsertion.name, upsertion.mechanism, upsertion.salt, upsertion.salted_password, upsertion.iterations
            )
    return Plan([records[name] for name, error in results.items() if error == NO_ERROR], _response(results))


def credential_record(
    name: str, mechanism: int, salt: bytes, salted: bytes, iterations: int
) -> messages.UserScramCredentialRecord:
    digest = scram.digest_of(_NAMES[mechanism])
    return messages.UserScramCredentialRecord(
        name=name,
        mechanism=mechanism,
        salt=bytes(salt),
        stored_key=scram.stored_key(digest, scram.client_key(digest, bytes(salted))),
        server_key=scram.server_key(digest, bytes(salted)),
        iterations=iterations,
    )


def first_credential(text: str, new_salt: bytes) -> messages.UserScramCredentialRecord:
    """Parse SCRAM-SHA-512=[name=alice,password=secret], the format of `kafka-storage format --add-scram`."""
    mechanism, equals, rest = text.strip().partition("=")
    if mechanism not in scram.MECHANISMS or not equals or not (rest.startswith("[") and rest.endswith("]")):
        raise InvalidConfig(
            f"'{mechanism}' does not start a credential: use SCRAM-SHA-512=[name=…,password=…] or SCRAM-SHA-256=[…]"
        )
    given = {}
    for part in rest[1:-1].split(","):
        key, _, value = part.partition("=")
        given[key.strip()] = value.strip().strip('"')
    unknown = set(given) - {"name", "password", "iterations"}
    if unknown or not given.get("name") or not given.get("password"):
        raise InvalidConfig(
            f"{mechanism}: a credential needs a name and a password; iterations is optional, other keys are not"
        )
    rounds = given.get("iterations", str(scram.ITERATIONS_MIN))
    if not rounds.isdecimal() or not scram.ITERATIONS_MIN <= int(rounds) <= scram.ITERATIONS_MAX:
        raise InvalidConfig(
            f"{mechanism}: iterations is {rounds}; use {scram.ITERATIONS_MIN} to {scram.ITERATIONS_MAX}"
        )
    salted = scram.salted_password(scram.digest_of(mechanism), given["password"], new_salt, int(rounds))
    return credential_record(given["name"], scram.MECHANISMS[mechanism], new_salt, salted, int(rounds))


def _check(name: str, mechanism: int) -> ApiError:
    if not name:
        return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if mechanism not in _NAMES:
        return ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    return NO_ERROR


def refuse_all(
    request: messages.AlterUserScramCredentialsRequest, error: ApiError
) -> messages.AlterUserScramCredentialsResponse:
    """Return the same error for every user in a request."""
    names = [*(one.name for one in request.deletions), *(one.name for one in request.upsertions)]
    return _response(dict.fromkeys(names, error))


def _response(results: dict[str, ApiError]) -> messages.AlterUserScramCredentialsResponse:
    kind = messages.AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    return messages.AlterUserScramCredentialsResponse(
        results=[kind(user=name, error_code=one.code, error_message=one.message) for name, one in results.items()]
    )


def describe_credentials(
    image: MetadataImage, request: messages.DescribeUserScramCredentialsRequest
) -> messages.DescribeUserScramCredentialsResponse:
    """Describe the credentials of the named users, or of all if none is named."""
    asked = [one.name for one in request.users or ()] or [name for _, name in image.scram_credentials]
    response = messages.DescribeUserScramCredentialsResponse(error_message=None)
    for name in dict.fromkeys(asked):
        result = messages.DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult(
            user=name, error_message=None
        )
        response.results.append(result)
        if request.users and asked.count(name) > 1:
            result.error_code = ErrorCode.DUPLICATE_RESOURCE
            result.error_message = (
                f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
            )
            continue
        result.credential_infos = [
            messages.DescribeUserScramCredentialsResponse.CredentialInfo(
                mechanism=mechanism, iterations=image.scram_credentials[mechanism, name].iterations
            )
            for mechanism in sorted(_NAMES)
            if (mechanism, name) in image.scram_credentials
        ]
        if not result.credential_infos:
            result.error_code = ErrorCode.RESOURCE_NOT_FOUND
            result.error_message = f"Attempt to describe a user credential that does not exist: {name}"
    return response
