"""Asking coordinators: the broker that keeps a group, or a transactional id.

Which broker that is, is asked once and remembered until an answer, or none, shows that it may be another by now.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final

from tailrace.client.cluster.cluster import ClusterClient
from tailrace.client.errors import ClientError, Refused
from tailrace.model.ids import BrokerId
from tailrace.protocol.codegen.field_versions import first_version_with
from tailrace.protocol.message import Message
from tailrace.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse

# Later versions ask for many at once; this one every cluster has.
_SEVERAL_FROM: Final = first_version_with("FindCoordinatorRequest", "coordinator_keys")
TRANSACTION_FEATURE: Final = "transaction.version"


class CoordinatorKind(IntEnum):
    GROUP = 0
    TRANSACTION = 1


class Coordinators:
    def __init__(self, cluster: ClusterClient) -> None:
        self.cluster = cluster
        self._known: dict[tuple[CoordinatorKind, str], BrokerId] = {}
        self._has_newer_transactions: bool | None = None

    def ask(
        self,
        kind: CoordinatorKind,
        key: str,
        message: Message,
        check: Callable[[Any], None],
        *,
        at_least: int = 0,
        at_most: int | None = None,
    ) -> Any:
        """Ask who keeps the key, until there is an answer; `check` raises what is wrong with one.

        A request goes out again when its answer was lost: only what may be asked twice is for here.
        """

        def ask(timeout_s: float) -> Any:
            node_id = self._known.get((kind, key))
            if node_id is None:
                node_id = self._known[kind, key] = self._find(kind, key, timeout_s)
            try:
                answer = self.cluster.connection_to(node_id).request(
                    message, timeout_s=timeout_s, at_least=at_least, at_most=at_most
                )
                check(answer)
            except ClientError as error:
                if error.is_retriable:
                    del self._known[kind, key]
                raise
            return answer

        return self.cluster.retrying(ask)

    def _find(self, kind: CoordinatorKind, key: str, timeout_s: float) -> BrokerId:
        answer: FindCoordinatorResponse = self.cluster.ask_anyone(
            FindCoordinatorRequest(key=key, key_type=kind), timeout_s, at_most=_SEVERAL_FROM - 1
        )
        if answer.error_code:
            raise Refused(f"the coordinator of {key}", answer.error_code, answer.error_message)
        return answer.node_id

    @property
    def has_newer_transactions(self) -> bool:
        """Whether producing adds partitions to a transaction by itself (transaction.version 2, Kafka 4)."""
        if self._has_newer_transactions is None:
            node_id = next(iter(self.cluster.metadata.brokers))
            features = self.cluster.retrying(lambda _: self.cluster.connection_to(node_id).features)
            self._has_newer_transactions = features.get(TRANSACTION_FEATURE, 0) >= 2
        return self._has_newer_transactions
