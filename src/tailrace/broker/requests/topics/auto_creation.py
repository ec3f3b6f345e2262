"""Creation of topics on first use (auto.create.topics.enable), with the broker's defaults."""

from __future__ import annotations

from tailrace.broker.cluster.forwarding import Forwarding
from tailrace.broker.handling.throttling import Throttling
from tailrace.broker.requests.cluster.cluster_authorization import may_create
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import CreateTopicsRequest


def auto_create_topic(
    request: Request,
    name: str,
    now_ms: int,
    *,
    forwarding: Forwarding | None,
    local_controller: LocalController | None,
    permissions: Permissions,
    throttling: Throttling,
) -> None:
    """Create a missing topic. Raise KafkaError if it is refused or not created yet; clients retry."""
    if not may_create(request, name, permissions=permissions):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
    if forwarding is not None:
        forwarding.make_topic(topic, request, now_ms)
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    charge = throttling.mutations(request, now_ms, strict=True).charge
    assert local_controller is not None, "a broker that does not forward has a local controller"
    result = local_controller.create_topics(CreateTopicsRequest(topics=[topic]), now_ms, charge=charge).topics[0]
    if result.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)  # as for a missing topic
    if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
        raise KafkaError(ErrorCode(result.error_code), result.error_message or "")
