"""RemoveRaftVoter (key 81), version 0.

Behaviour
    Changes the voters of the metadata quorum. A node that is controller and broker in one refuses, as its quorum is
    itself; below Kafka's controllers the request is forwarded to them.
"""

from __future__ import annotations

from tailrace.broker.authorizer import Operation
from tailrace.broker.broker import Broker
from tailrace.broker.cluster_authorization import check_cluster
from tailrace.broker.request_context import Request


def handle(broker: Broker, request: Request, now_ms: int) -> None:
    check_cluster(broker, request, Operation.ALTER)
    broker.local_controller.remove_raft_voter(request.body)
