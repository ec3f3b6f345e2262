"""RemoveRaftVoter (key 81), version 0.

Behaviour
    Changes the voters of the metadata quorum. A node that is controller and broker in one refuses, as its quorum is
    itself; below Kafka's controllers the request is forwarded to them.
"""

from __future__ import annotations

from tailrace.broker.broker import Broker
from tailrace.broker.request_context import Request
from tailrace.broker.requests.cluster.cluster_authorization import check_cluster
from tailrace.broker.security.authorizer import Operation


def handle(broker: Broker, request: Request, now_ms: int) -> None:
    check_cluster(broker, request, Operation.ALTER)
    broker.local_controller.remove_raft_voter(request.body)
