"""Permissions: authorization for the client of a request."""

from __future__ import annotations

from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import AclResource, Authorizer, Operation


class Permissions:
    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def allows(self, request: Request, operation: Operation, resource: AclResource, name: str) -> bool:
        """Return True if the client of a request may do the operation. Denials are logged."""
        context = request.context
        return self._authorizer.allows(context.principal, context.client_host, operation, resource, name)

    def allows_silently(self, request: Request, operation: Operation, resource: AclResource, name: str) -> bool:
        """Like `allows`, but denials are not logged."""
        context = request.context
        return self._authorizer.allows_silently(context.principal, context.client_host, operation, resource, name)
