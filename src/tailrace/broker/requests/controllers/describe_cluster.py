"""DescribeCluster (key 60) at a controller listener, versions 1–2.

Behaviour
    Returns the cluster's id and the addresses of its controllers. A request for brokers is refused, as in Kafka.
Version notes
    2   fenced brokers, which a controller does not return
"""

from __future__ import annotations

from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import NOT_ASKED, Authorizer, cluster_operations
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import DescribeClusterResponse

_BROKERS, _CONTROLLERS = 1, 2


def handle(
    request: Request, now_ms: int, *, authorizer: Authorizer, local_controller: LocalController
) -> DescribeClusterResponse:
    body, context = request.body, request.context
    if body.endpoint_type != _CONTROLLERS:
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        raise KafkaError(
            code if body.endpoint_type == _BROKERS else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            "the request was sent to an endpoint of type CONTROLLER, but wanted an endpoint of type "
            f"{body.endpoint_type}",
        )
    return DescribeClusterResponse(
        endpoint_type=_CONTROLLERS,
        cluster_id=local_controller.image.cluster_id,
        controller_id=local_controller.node_id,
        brokers=[
            DescribeClusterResponse.DescribeClusterBroker(
                broker_id=local_controller.node_id, host=one.host, port=one.port
            )
            for one in local_controller.log.controller_endpoints
            if one.listener == context.listener
        ],
        cluster_authorized_operations=cluster_operations(authorizer, context.principal, context.client_host)
        if body.include_cluster_authorized_operations
        else NOT_ASKED,
    )
