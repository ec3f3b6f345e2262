"""TopicControl: creates topics and partitions, with pauses if they are many.

A decision and its records are made in steps (`topic_creation.py`, `MetadataLog.prepare`), and written in one step. If
the metadata has changed during a pause, the decision is made again. After DECISIONS_MAX decisions the request is
refused, so that it ends.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias, TypeVar

from tailrace.metadata.controller.control_state import ApiError, Charge, ControlState, Plan, free_of_charge
from tailrace.metadata.decisions.topic_creation import (
    plan_create_partitions,
    plan_create_topics,
    refused_creation,
    refused_growth,
)
from tailrace.metadata.image.loader import Change
from tailrace.metadata.storage.metadata_log import MetadataLog
from tailrace.model.errors import ErrorCode
from tailrace.model.steps import ITEMS_PER_STEP, Steps, run_steps
from tailrace.protocol import messages

T = TypeVar("T")
Allowed: TypeAlias = Callable[[str], bool]

DECISIONS_MAX = 10
_OVERTAKEN = ApiError(
    ErrorCode.REQUEST_TIMED_OUT, "the metadata changed during every attempt to decide the request; retry"
)


def _anything(_: str) -> bool:
    return True


class TopicControl:
    def __init__(
        self, log: MetadataLog, state: Callable[[], ControlState], listener: Callable[[Change, int], None]
    ) -> None:
        """`state()` returns the input of a decision; `listener(change, now_ms)` carries out a change."""
        self._log = log
        self._state = state
        self._listener = listener

    def create_topics(
        self,
        request: messages.CreateTopicsRequest,
        now_ms: int,
        *,
        may_create: Allowed = _anything,
        may_describe: Allowed = _anything,
        charge: Charge = free_of_charge,
    ) -> messages.CreateTopicsResponse:
        """Create topics without a pause."""
        steps = self.begin_create_topics(
            request, now_ms, may_create=may_create, may_describe=may_describe, charge=charge
        )
        return run_steps(steps, now_ms)

    def begin_create_topics(
        self,
        request: messages.CreateTopicsRequest,
        now_ms: int,
        *,
        may_create: Allowed,
        may_describe: Allowed,
        charge: Charge,
    ) -> Steps[messages.CreateTopicsResponse]:
        """Create topics with pauses."""
        decide = partial(plan_create_topics, request=request, may_create=may_create, may_describe=may_describe)
        result = yield from self._carry_out(decide, charge, now_ms)
        return result or (yield from refused_creation(request, _OVERTAKEN))

    def create_partitions(
        self,
        request: messages.CreatePartitionsRequest,
        now_ms: int,
        *,
        may_alter: Allowed = _anything,
        charge: Charge = free_of_charge,
    ) -> messages.CreatePartitionsResponse:
        """Create partitions without a pause."""
        return run_steps(self.begin_create_partitions(request, now_ms, may_alter=may_alter, charge=charge), now_ms)

    def begin_create_partitions(
        self, request: messages.CreatePartitionsRequest, now_ms: int, *, may_alter: Allowed, charge: Charge
    ) -> Steps[messages.CreatePartitionsResponse]:
        """Create partitions with pauses."""
        decide = partial(plan_create_partitions, request=request, may_alter=may_alter)
        result = yield from self._carry_out(decide, charge, now_ms)
        return result or refused_growth(request, _OVERTAKEN)

    def _carry_out(self, decide: Callable[..., Steps[Plan[T]]], charge: Charge, now_ms: int) -> Steps[T | None]:
        """Decide and commit. Return None if the metadata has changed too often meanwhile."""
        for _ in range(DECISIONS_MAX):
            state = self._state()
            plan = yield from decide(state, charge=charge)
            if not plan.records:
                return plan.result
            prepared = yield from self._log.prepare(plan.records)
            if len(plan.records) > ITEMS_PER_STEP:
                now_ms = yield
            if self._log.image is state.image:
                self._listener(self._log.commit_prepared(prepared, now_ms), now_ms)
                return plan.result
            charge = free_of_charge  # the client has paid for the first decision
        return None
