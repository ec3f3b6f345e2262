"""Delegation tokens at a lone node's controller: limits, expiration, and what a restart finds again."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.metadata.decisions import delegation_tokens
from tailrace.metadata.decisions.delegation_tokens import TokenSettings
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol import messages as m
from tests.support.controller_twin import NOW_MS, LocalNode
from tests.support.memory_files import MemoryFiles

SETTINGS = {
    "delegation.token.secret.key": "secret",
    "delegation.token.expiry.time.ms": "1000",
    "delegation.token.expiry.check.interval.ms": "500",
}
ALICE = "User:alice"


def create(node: LocalNode, requester: str = ALICE, **fields: Any) -> m.DelegationTokenRecord:
    request = m.CreateDelegationTokenRequest(max_lifetime_ms=-1, **fields)
    return node.controller.tokens.create(request, requester, NOW_MS)


def hmac_of(node: LocalNode, token: m.DelegationTokenRecord) -> bytes:
    return node.controller.tokens.settings.hmac_of(token.token_id)


def refused(code: ErrorCode) -> Any:
    return pytest.raises(KafkaError, check=lambda error: error.code == code)  # type: ignore[call-overload]


def test_expired_tokens_are_removed_when_a_check_is_due() -> None:
    node = LocalNode(settings=SETTINGS)
    node.controller.tick(NOW_MS)
    brief, renewed = create(node), create(node)
    node.controller.tokens.renew(m.RenewDelegationTokenRequest(hmac=hmac_of(node, renewed)), ALICE, NOW_MS + 900)
    node.controller.tick(NOW_MS + 1_001)
    assert list(node.image.delegation_tokens) == [renewed.token_id]
    deadline_ms = node.controller.next_deadline_ms()
    assert deadline_ms is not None
    assert deadline_ms <= NOW_MS + 1_501
    with refused(ErrorCode.DELEGATION_TOKEN_NOT_FOUND):
        node.controller.tokens.renew(m.RenewDelegationTokenRequest(hmac=hmac_of(node, brief)), ALICE, NOW_MS)


def test_many_expired_tokens_are_removed_in_several_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delegation_tokens, "SWEPT_AT_ONCE", 2)
    node = LocalNode(settings=SETTINGS)
    node.controller.tick(NOW_MS)
    for _ in range(5):
        create(node)
    left = []
    for _ in range(3):
        node.controller.tick(NOW_MS + 1_001)
        left.append(len(node.image.delegation_tokens))
    assert left == [3, 1, 0]


def test_tokens_are_found_by_their_hmac_after_a_restart() -> None:
    files = MemoryFiles()
    node = LocalNode(files, settings=SETTINGS)
    token = create(node)
    epoch = node.stop()
    again = LocalNode(files, settings=SETTINGS, previous_epoch=epoch)
    expiry = m.ExpireDelegationTokenRequest(hmac=hmac_of(node, token), expiry_time_period_ms=-1)
    with refused(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH):
        again.controller.tokens.expire(expiry, "User:mallory", NOW_MS)
    assert again.controller.tokens.expire(expiry, ALICE, NOW_MS) == NOW_MS
    assert not again.image.delegation_tokens


def test_one_requester_has_a_limited_number_of_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delegation_tokens, "TOKENS_OF_REQUESTER_MAX", 2)
    monkeypatch.setattr(delegation_tokens, "TOKENS_MAX", 3)
    node = LocalNode(settings=SETTINGS)
    first = create(node)
    create(node)
    with refused(ErrorCode.POLICY_VIOLATION):
        create(node)
    create(node, "User:bob")
    with refused(ErrorCode.POLICY_VIOLATION):
        create(node, "User:carol")
    expiry = m.ExpireDelegationTokenRequest(hmac=hmac_of(node, first), expiry_time_period_ms=-1)
    node.controller.tokens.expire(expiry, ALICE, NOW_MS)
    create(node)


def test_names_of_renewers_are_limited_in_total() -> None:
    renewer = m.CreateDelegationTokenRequest.CreatableRenewers(principal_type="User", principal_name="x" * 30_000)
    with refused(ErrorCode.POLICY_VIOLATION):
        create(LocalNode(settings=SETTINGS), renewers=[renewer] * 3)


def test_a_cluster_below_metadata_version_3_6_has_no_tokens() -> None:
    node = LocalNode(settings=SETTINGS)
    image = node.image
    settings = TokenSettings.of(SETTINGS)
    delegation_tokens.check_enabled(settings, image)
    old = MetadataImage(features={"metadata.version": 13})
    with refused(ErrorCode.UNSUPPORTED_VERSION):
        delegation_tokens.check_enabled(settings, old)
    with refused(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED):
        delegation_tokens.check_enabled(TokenSettings.of({"delegation.token.secret.key": ""}), image)


def test_the_secret_key_is_not_in_the_repr() -> None:
    assert "secret" not in repr(TokenSettings.of(SETTINGS)).replace("secret_key", "")
