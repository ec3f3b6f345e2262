"""UpdateFeatures (key 57), versions 0–2.

Behaviour
    Changes the levels of cluster features: all named features or none.
Version notes
    0   a flag that allows a downgrade
    1   safe and unsafe downgrades (which lose metadata); validate_only
    2   one error for all features instead of one error each
"""

from __future__ import annotations

from tailrace.broker.requests.cluster.cluster_authorization import check_cluster
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.protocol.messages import UpdateFeaturesResponse


def handle(
    request: Request, now_ms: int, *, local_controller: LocalController, permissions: Permissions
) -> UpdateFeaturesResponse:
    check_cluster(request, Operation.ALTER, permissions=permissions)
    return local_controller.update_features(request.body, request.version, now_ms)
