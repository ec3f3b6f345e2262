"""AlterConfigs and IncrementalAlterConfigs if the controller is another node.

Only the broker itself can check its own settings, so it checks them before the request is forwarded. It changes the
levels of its loggers itself, because they are not stored in the metadata. All other resources go to the controller.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tailrace.broker.cluster.forwarding import Forwarding
from tailrace.broker.config.broker_changes import check_broker_change
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.metadata.controller.control_state import ControlState
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.decisions.config_changes import plan_alter_configs, plan_incremental_alter_configs
from tailrace.metadata.image.image import ResourceType
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
from tailrace.protocol.registry import response_class


def forward_alter_configs(
    request: Request,
    now_ms: int,
    alter_loggers: Callable[[Any], Any] | None = None,
    *,
    config: BrokerConfig,
    controller: Controller,
    forwarding: Forwarding | None,
    replies: Replies,
) -> None:
    """Handle AlterConfigs or IncrementalAlterConfigs.

    `alter_loggers(resource)` changes log levels and returns the result. It is None if the API cannot change loggers.
    """
    assert forwarding is not None
    body = request.body
    done: dict[int, Any] = {}  # results from this broker, by the resource's index in the request
    for place, resource in enumerate(body.resources):
        if resource.resource_type == ResourceType.BROKER_LOGGER and alter_loggers is not None:
            done[place] = alter_loggers(resource)
        elif resource.resource_type == ResourceType.BROKER:
            result = _checked(body, resource, config=config, controller=controller)
            if result.error_code != ErrorCode.NONE:
                done[place] = result
    left = [place for place in range(len(body.resources)) if place not in done]

    def complete(response: IncrementalAlterConfigsResponse) -> None:
        """Put the results of the controller and of this broker in the order of the request."""
        answers = {**dict(zip(left, response.responses, strict=False)), **done}
        response.responses = [answers[place] for place in sorted(answers)]

    if not left:
        response: Any = response_class(request.api_key)()
        complete(response)
        replies.answer(request, response, now_ms)
        return
    body.resources = [body.resources[place] for place in left]
    forwarding.forward(request, now_ms, complete)


def _checked(body: Any, resource: Any, *, config: BrokerConfig, controller: Controller) -> Any:
    """Validate the settings of this broker as a controller does. Return the result."""
    state = ControlState(
        image=controller.image, configs=config.effective, new_id=_no_new_id, next_int=_no_random_number
    )
    alone = body.__class__(resources=[resource], validate_only=True)
    check = partial(check_broker_change, config, controller.image)
    if isinstance(alone, IncrementalAlterConfigsRequest):
        return plan_incremental_alter_configs(state, alone, check_broker=check).result.responses[0]
    return plan_alter_configs(state, alone, check_broker=check).result.responses[0]


def _no_new_id() -> bytes:
    raise AssertionError("a validation creates no ids")


def _no_random_number(_: int) -> int:
    raise AssertionError("a validation needs no random numbers")
