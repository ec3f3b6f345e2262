"""FetchRights: the authorization of fetches. `fetch/fetch_plan.py` passes the client's context without reading it."""

from __future__ import annotations

from collections.abc import Iterable

from tailrace.broker.requests.request_context import ConnectionContext
from tailrace.broker.security.authorizer import CLUSTER_NAME, AclResource, Authorizer, Operation


class FetchRights:
    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def may_replicate(self, client: object) -> bool:
        assert isinstance(client, ConnectionContext)
        return self._authorizer.allows(
            client.principal, client.client_host, Operation.CLUSTER_ACTION, AclResource.CLUSTER, CLUSTER_NAME
        )

    def unreadable(self, client: object, topics: Iterable[str]) -> set[str]:
        assert isinstance(client, ConnectionContext)
        allows, principal, host = self._authorizer.allows, client.principal, client.client_host
        return {name for name in topics if not allows(principal, host, Operation.READ, AclResource.TOPIC, name)}
