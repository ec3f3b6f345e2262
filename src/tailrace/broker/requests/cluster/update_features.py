"""UpdateFeatures (key 57), versions 0–2.

Behaviour
    Moves features of the cluster to other levels, all that are named or none.
Version notes
    0   a downgrade is allowed or not
    1   a downgrade that loses metadata has to be asked for as such; validate_only
    2   one error for all features instead of one each
"""

from __future__ import annotations

from tailrace.broker.broker import Broker
from tailrace.broker.request_context import Request
from tailrace.broker.requests.cluster.cluster_authorization import check_cluster
from tailrace.broker.security.authorizer import Operation
from tailrace.protocol.messages import UpdateFeaturesResponse


def handle(broker: Broker, request: Request, now_ms: int) -> UpdateFeaturesResponse:
    check_cluster(broker, request, Operation.ALTER)
    return broker.local_controller.update_features(request.body, request.version, now_ms)
