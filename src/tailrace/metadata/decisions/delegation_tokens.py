"""Delegation tokens (KIP-48): settings, the token's password, and the decisions of Create, Renew and Expire.

A token is a DelegationTokenRecord in the metadata. Its HMAC, made of its id and `delegation.token.secret.key`, is the
password of its SCRAM logins; nobody stores it. The owner and the renewers may renew a token and expire it.
"""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tailrace.metadata.controller.control_state import ControlState, Plan
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.configs.config_definitions import Value, definition
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol import messages
from tailrace.protocol.json_form import base64_uuid_text
from tailrace.protocol.message import Message

USER: Final = "User"
TOKENS_MAX: Final = 20_000  # in the cluster; Kafka has no limit
TOKENS_OF_REQUESTER_MAX: Final = 2_000
NAME_BYTES_MAX: Final = 65_536  # of owner and renewers together
SWEPT_AT_ONCE: Final = 1_000
_FOREVER: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSettings:
    """The delegation.token.* settings of a node; without a secret key tokens are off."""

    secret_key: str | None = field(repr=False)
    max_lifetime_ms: int
    expiry_time_ms: int
    check_interval_ms: int

    @classmethod
    def of(cls, static: Mapping[str, str]) -> TokenSettings:
        def value(name: str) -> Value:
            key = definition("broker")[name := f"delegation.token.{name}"]
            text = static.get(name, key.default)
            return None if text is None else key.parse(text)

        numbers = [value(name) for name in ("max.lifetime.ms", "expiry.time.ms", "expiry.check.interval.ms")]
        secret = value("secret.key")
        lifetime, expiry, interval = (one for one in numbers if isinstance(one, int))
        assert secret is None or isinstance(secret, str)
        return cls(
            secret_key=secret or None, max_lifetime_ms=lifetime, expiry_time_ms=expiry, check_interval_ms=interval
        )

    @property
    def is_enabled(self) -> bool:
        return self.secret_key is not None

    def hmac_of(self, token_id: str) -> bytes:
        assert self.secret_key is not None, "delegation tokens are off"
        return hmac.digest(self.secret_key.encode(), token_id.encode(), "sha512")


class TokenIndex:
    """Token ids by HMAC, and the number of tokens by requester, kept in step with the metadata."""

    def __init__(self, settings: TokenSettings, image: MetadataImage) -> None:
        self._settings = settings
        self._ids: dict[bytes, str] = {}
        self._requesters: dict[str, str] = {}  # token id → requester
        self._counts: Counter[str] = Counter()
        for token in image.delegation_tokens.values():
            self.note(token)

    def note(self, record: Message) -> None:
        """Take in a DelegationTokenRecord or a RemoveDelegationTokenRecord."""
        if isinstance(record, messages.DelegationTokenRecord) and record.token_id not in self._requesters:
            self._ids[self._settings.hmac_of(record.token_id)] = record.token_id
            self._requesters[record.token_id] = record.requester
            self._counts[record.requester] += 1
        elif isinstance(record, messages.RemoveDelegationTokenRecord) and record.token_id in self._requesters:
            del self._ids[self._settings.hmac_of(record.token_id)]
            self._counts[self._requesters.pop(record.token_id)] -= 1

    def find(self, image: MetadataImage, password: bytes) -> messages.DelegationTokenRecord:
        """Return the token with that HMAC, or raise DELEGATION_TOKEN_NOT_FOUND."""
        token = image.delegation_tokens.get(self._ids.get(bytes(password), ""))
        if token is None:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        return token

    def check_room(self, requester: str) -> None:
        """Raise POLICY_VIOLATION if there are too many tokens, in all or of one requester."""
        if len(self._requesters) >= TOKENS_MAX or self._counts[requester] >= TOKENS_OF_REQUESTER_MAX:
            limits = f"{TOKENS_MAX} in the cluster, {TOKENS_OF_REQUESTER_MAX} of one requester"
            raise KafkaError(ErrorCode.POLICY_VIOLATION, f"too many delegation tokens: at most {limits}")


def is_owner_or_renewer(token: messages.DelegationTokenRecord, principal: str) -> bool:
    return token.owner == principal or principal in token.renewers


def plan_create_token(
    state: ControlState,
    settings: TokenSettings,
    index: TokenIndex,
    request: messages.CreateDelegationTokenRequest,
    requester: str,
    now_ms: int,
) -> Plan[messages.DelegationTokenRecord]:
    """Plan a token for the owner that the request names, or for the requester."""
    owner = owner_of(request, requester)
    renewers = [f"{one.principal_type}:{one.principal_name}" for one in request.renewers]
    if any(one.principal_type != USER for one in request.renewers):
        raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
    if sum(map(len, (owner, *renewers))) > NAME_BYTES_MAX:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, f"the names of owner and renewers exceed {NAME_BYTES_MAX} bytes")
    index.check_room(requester)
    lifetime_ms = settings.max_lifetime_ms
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    last_ms = _later(now_ms, lifetime_ms)
    token = messages.DelegationTokenRecord(
        owner=owner,
        requester=requester,
        renewers=renewers,
        issue_timestamp=now_ms,
        max_timestamp=last_ms,
        expiration_timestamp=min(last_ms, _later(now_ms, settings.expiry_time_ms)),
        token_id=base64_uuid_text(state.new_id()),
    )
    return Plan([token], token)


def plan_renew_token(
    state: ControlState,
    settings: TokenSettings,
    index: TokenIndex,
    request: messages.RenewDelegationTokenRequest,
    requester: str,
    now_ms: int,
) -> Plan[int]:
    """Plan a later expiration time, which is the result."""
    token = index.find(state.image, request.hmac)
    if _is_expired(token, now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    _check_owner(token, requester)
    period_ms = settings.expiry_time_ms
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    return _plan_expiration(token, _later(now_ms, period_ms))


def plan_expire_token(
    state: ControlState,
    index: TokenIndex,
    request: messages.ExpireDelegationTokenRequest,
    requester: str,
    now_ms: int,
) -> Plan[int]:
    """Plan another expiration time, which is the result; a negative period removes the token at once."""
    token = index.find(state.image, request.hmac)
    _check_owner(token, requester)
    if request.expiry_time_period_ms < 0:
        return Plan([messages.RemoveDelegationTokenRecord(token_id=token.token_id)], now_ms)
    if _is_expired(token, now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    return _plan_expiration(token, _later(now_ms, request.expiry_time_period_ms))


def plan_sweep_tokens(image: MetadataImage, now_ms: int) -> Plan[bool]:
    """Plan the removal of expired tokens; the result is True if some are left for the next sweep."""
    expired: list[Message] = []
    for token in image.delegation_tokens.values():
        if _is_expired(token, now_ms):
            if len(expired) == SWEPT_AT_ONCE:
                return Plan(expired, True)
            expired.append(messages.RemoveDelegationTokenRecord(token_id=token.token_id))
    return Plan(expired, False)


def check_enabled(settings: TokenSettings, image: MetadataImage) -> None:
    """Raise the KafkaError of a cluster without delegation tokens."""
    if not settings.is_enabled:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    if not image.record_versions.has_delegation_tokens:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def owner_of(request: messages.CreateDelegationTokenRequest, requester: str) -> str:
    if not request.owner_principal_name:
        return requester
    return f"{request.owner_principal_type}:{request.owner_principal_name}"


def _plan_expiration(token: messages.DelegationTokenRecord, expiration_ms: int) -> Plan[int]:
    expiration_ms = min(token.max_timestamp, expiration_ms)
    changed = messages.DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=token.renewers,
        issue_timestamp=token.issue_timestamp,
        max_timestamp=token.max_timestamp,
        expiration_timestamp=expiration_ms,
        token_id=token.token_id,
    )
    return Plan([changed], expiration_ms)


def _check_owner(token: messages.DelegationTokenRecord, principal: str) -> None:
    if not is_owner_or_renewer(token, principal):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _is_expired(token: messages.DelegationTokenRecord, now_ms: int) -> bool:
    return min(token.max_timestamp, token.expiration_timestamp) < now_ms


def _later(now_ms: int, period_ms: int) -> int:
    return min(now_ms + period_ms, _FOREVER)
