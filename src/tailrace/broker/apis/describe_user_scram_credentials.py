"""DescribeUserScramCredentials (key 50), version 0.

Behaviour
    Which users have SCRAM credentials, by which mechanisms and with how many iterations; nothing that helps guessing.
"""

from __future__ import annotations

from tailrace.broker.authorizer import Operation
from tailrace.broker.broker import Broker
from tailrace.broker.cluster_authorization import check_cluster
from tailrace.broker.request_context import Request
from tailrace.metadata.scram_credentials import describe_credentials
from tailrace.protocol.messages import DescribeUserScramCredentialsResponse


def handle(broker: Broker, request: Request, now_ms: int) -> DescribeUserScramCredentialsResponse:
    check_cluster(broker, request, Operation.DESCRIBE)
    return describe_credentials(broker.image, request.body)
