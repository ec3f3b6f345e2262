"""quick_handler: the requests that come most, and the shorter way that they go."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from tailrace.broker.request_context import ConnectionContext
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.primitives import Buffer

if TYPE_CHECKING:
    from tailrace.broker.broker import Broker

QuickHandler: TypeAlias = Callable[[Buffer, ConnectionContext, int], bool]


def quick_handler(broker: Broker, api_key: int) -> QuickHandler | None:
    """The quick handler of an API, if it has one; loaded when a client first asks for the API."""
    if api_key == ApiKey.PRODUCE:
        from tailrace.broker.quick_produce import QuickProduce

        return QuickProduce(broker).handle
    if api_key == ApiKey.FETCH:
        from tailrace.broker.quick_fetch import QuickFetch

        return QuickFetch(broker).handle
    if api_key == ApiKey.OFFSET_COMMIT:
        from tailrace.broker.quick_commit import QuickCommit

        return QuickCommit(broker).handle if QuickCommit.is_usable(broker.config) else None
    return None
