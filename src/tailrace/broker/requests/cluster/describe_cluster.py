"""DescribeCluster (key 60), versions 0–2.

Behaviour
    Returns the cluster's id, controller and brokers.
Version notes
    1   the client asks for brokers or controllers; a broker only returns brokers
    2   fenced brokers too, on request
"""

from __future__ import annotations

from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import NOT_ASKED, Authorizer, cluster_operations
from tailrace.metadata.controller.controller import Controller
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import DescribeClusterResponse

_BROKERS = 1


def handle(request: Request, now_ms: int, *, authorizer: Authorizer, controller: Controller) -> DescribeClusterResponse:
    body, context, image = request.body, request.context, controller.image
    if body.endpoint_type != _BROKERS:
        raise KafkaError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE if body.endpoint_type == 2 else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            f"the request was sent to an endpoint of type BROKER, but wanted an endpoint of type {body.endpoint_type}",
        )
    reachable = [one for one in image.brokers.values() if context.listener in one.endpoints]
    return DescribeClusterResponse(
        endpoint_type=_BROKERS,
        cluster_id=image.cluster_id,
        controller_id=controller.node_id,
        brokers=[
            DescribeClusterResponse.DescribeClusterBroker(
                broker_id=one.id,
                host=one.endpoints[context.listener].host,
                port=one.endpoints[context.listener].port,
                rack=one.rack,
                is_fenced=one.fenced,
            )
            for one in reachable
            if body.include_fenced_brokers or not one.fenced
        ],
        cluster_authorized_operations=cluster_operations(authorizer, context.principal, context.client_host)
        if body.include_cluster_authorized_operations
        else NOT_ASKED,
    )
