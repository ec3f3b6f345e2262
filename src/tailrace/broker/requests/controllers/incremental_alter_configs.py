"""IncrementalAlterConfigs (key 44), versions 0–1, at a controller.

Behaviour
    Like the handler of a broker, but it changes the configs of any registered broker. Each broker checks its
    own settings before it forwards a request.
"""

from __future__ import annotations

from tailrace.broker.requests.configs.incremental_alter_configs import alter
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.protocol.messages import IncrementalAlterConfigsResponse


def handle(
    request: Request, now_ms: int, *, local_controller: LocalController, permissions: Permissions
) -> IncrementalAlterConfigsResponse:
    return alter(request, now_ms, local_controller, permissions, is_at_controller=True)
