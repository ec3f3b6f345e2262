"""check_cluster: may this client do something to the cluster as a whole?"""

from __future__ import annotations

from tailrace.broker.authorizer import CLUSTER_NAME, AclResource, Operation
from tailrace.broker.broker import Broker
from tailrace.broker.request_context import Request
from tailrace.model.errors import ErrorCode, KafkaError


def check_cluster(broker: Broker, request: Request, operation: Operation) -> None:
    """CLUSTER_AUTHORIZATION_FAILED for a client that may not."""
    if not broker.allows(request, operation, AclResource.CLUSTER, CLUSTER_NAME):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "this takes a right on the cluster")
