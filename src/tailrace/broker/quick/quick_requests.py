"""quick_handler: fast paths for the most frequent requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tailrace.broker.requests.request_context import ConnectionContext
from tailrace.broker.services import Services
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.primitives import Buffer

QuickHandler: TypeAlias = Callable[[Buffer, ConnectionContext, int], bool]


def quick_handler(
    services: Services,
    api_key: int,
) -> QuickHandler | None:
    """Return the fast path of an API, or None. It is loaded when a client first asks for the API."""
    if api_key == ApiKey.OFFSET_COMMIT:
        from tailrace.broker.quick.quick_commit import QuickCommit

        return QuickCommit(services).handle if QuickCommit.is_usable(services.config) else None
    return None
