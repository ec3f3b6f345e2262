"""Requests to coordinators: the brokers that manage a group or a transactional id.

The coordinator of a key is cached until a retriable error shows that it may have changed.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final

from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.errors import ClientError, Refused
from tailrace.model.ids import BrokerId
from tailrace.protocol.codegen.field_versions import first_version_with
from tailrace.protocol.message import Message
from tailrace.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse

# Versions before this one look up a single key; every cluster supports them.
_FIRST_WITH_SEVERAL_KEYS: Final = first_version_with("FindCoordinatorRequest", "coordinator_keys")
TRANSACTION_FEATURE: Final = "transaction.version"


class CoordinatorKind(IntEnum):
    GROUP = 0
    TRANSACTION = 1


class Coordinators:
    def __init__(self, cluster: ClusterClient) -> None:
        self.cluster = cluster
        self._known: dict[tuple[CoordinatorKind, str], BrokerId] = {}
        self._has_transaction_version_2: bool | None = None

    def ask(
        self,
        kind: CoordinatorKind,
        key: str,
        message: Message,
        check: Callable[[Any], None],
        *,
        version_min: int = 0,
        version_max: int | None = None,
    ) -> Any:
        """Send a request to the coordinator of the key, with retries. `check` raises an error for an error response.

        A request is sent again if its response is lost, so it must be safe to repeat.
        """

        def ask(timeout_s: float) -> Any:
            node_id = self._known.get((kind, key))
            if node_id is None:
                node_id = self._known[kind, key] = self._find(kind, key, timeout_s)
            try:
                answer = self.cluster.connection_to(node_id).request(
                    message, timeout_s=timeout_s, version_min=version_min, version_max=version_max
                )
                check(answer)
            except ClientError as error:
                if error.is_retriable:
                    del self._known[kind, key]
                raise
            return answer

        return self.cluster.retrying(ask)

    def _find(self, kind: CoordinatorKind, key: str, timeout_s: float) -> BrokerId:
        answer: FindCoordinatorResponse = self.cluster.ask_any_once(
            FindCoordinatorRequest(key=key, key_type=kind), timeout_s, version_max=_FIRST_WITH_SEVERAL_KEYS - 1
        )
        if answer.error_code:
            raise Refused(f"the coordinator of {key}", answer.error_code, answer.error_message)
        return answer.node_id

    @property
    def has_transaction_version_2(self) -> bool:
        """Return True if a Produce adds its partition to the transaction (transaction.version 2, Kafka 4)."""
        if self._has_transaction_version_2 is None:
            node_id = next(iter(self.cluster.metadata.brokers))
            features = self.cluster.retrying(lambda _: self.cluster.connection_to(node_id).features)
            self._has_transaction_version_2 = features.get(TRANSACTION_FEATURE, 0) >= 2
        return self._has_transaction_version_2
