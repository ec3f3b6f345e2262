"""TokenControl: the part of a LocalController that creates, changes and removes delegation tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from tailrace.metadata.controller.control_state import ControlState, Plan
from tailrace.metadata.decisions.delegation_tokens import (
    TokenIndex,
    TokenSettings,
    check_enabled,
    plan_create_token,
    plan_expire_token,
    plan_renew_token,
    plan_sweep_tokens,
)
from tailrace.protocol import messages
from tailrace.protocol.message import Message

T = TypeVar("T")


class Commit(Protocol):
    """Write records to the metadata log and publish the new image."""

    def __call__(self, records: Sequence[Message], now_ms: int, *, atomic: bool) -> None: ...


class TokenControl:
    def __init__(self, static: Mapping[str, str], state: Callable[[], ControlState], commit: Commit) -> None:
        self.settings = TokenSettings.of(static)
        self._state = state
        self._commit = commit
        self._index: TokenIndex | None = None  # built on first use
        self.next_sweep_ms: int | None = 0 if self.settings.is_enabled else None

    def create(
        self, request: messages.CreateDelegationTokenRequest, requester: str, now_ms: int
    ) -> messages.DelegationTokenRecord:
        index = self._checked_index()
        plan = plan_create_token(self._state(), self.settings, index, request, requester, now_ms)
        return self._carry_out(plan, now_ms)

    def renew(self, request: messages.RenewDelegationTokenRequest, requester: str, now_ms: int) -> int:
        """Extend a token's life; return its new expiration time."""
        index = self._checked_index()
        plan = plan_renew_token(self._state(), self.settings, index, request, requester, now_ms)
        return self._carry_out(plan, now_ms)

    def expire(self, request: messages.ExpireDelegationTokenRequest, requester: str, now_ms: int) -> int:
        """Change or end a token's life; return its new expiration time."""
        index = self._checked_index()
        plan = plan_expire_token(self._state(), index, request, requester, now_ms)
        return self._carry_out(plan, now_ms)

    def tick(self, now_ms: int) -> None:
        """Remove expired tokens every delegation.token.expiry.check.interval.ms."""
        if self.next_sweep_ms is None or now_ms < self.next_sweep_ms:
            return
        plan = plan_sweep_tokens(self._state().image, now_ms)
        has_more = self._carry_out(plan, now_ms)
        self.next_sweep_ms = now_ms if has_more else now_ms + self.settings.check_interval_ms

    def _checked_index(self) -> TokenIndex:
        image = self._state().image
        check_enabled(self.settings, image)
        if self._index is None:
            self._index = TokenIndex(self.settings, image)
        return self._index

    def _carry_out(self, plan: Plan[T], now_ms: int) -> T:
        if plan.records:
            self._commit(plan.records, now_ms, atomic=True)
        if self._index is not None:
            for record in plan.records:
                self._index.note(record)
        return plan.result
