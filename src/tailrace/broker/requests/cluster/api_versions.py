"""ApiVersions (key 18), versions 0–4.

Behaviour
    Returns the supported APIs and versions, the feature levels that this node supports, and the finalized feature
    levels of the cluster. The epoch of the latter is the offset of the metadata image.
    A request of an unsupported version gets a response of version 0 with UNSUPPORTED_VERSION and the versions of this
    API, so that the client can retry (KIP-511). The response header never has tagged fields.
Version notes
    3   name and version of the client; flexible encoding; features
    4   supported features whose levels start at 0; older clients cannot read them, so they do not get them
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tailrace.broker.requests.api_table import API_TABLE, ApiRow
from tailrace.broker.requests.request_context import Request
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.image.features import KRAFT_VERSION, SUPPORTED
from tailrace.model.errors import ErrorCode
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.messages import ApiVersionsResponse

_LEVEL_ZERO_FROM = 4
_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(request: Request, now_ms: int, *, apis: Mapping[int, ApiRow], controller: Controller) -> ApiVersionsResponse:
    body = request.body
    if request.version >= 3:
        if not (_NAME.fullmatch(body.client_software_name) and _NAME.fullmatch(body.client_software_version)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        request.context.note_software(body.client_software_name, body.client_software_version)
    return ApiVersionsResponse(
        api_keys=[_versions(apis[key]) for key in sorted(apis)],
        supported_features=[
            ApiVersionsResponse.SupportedFeatureKey(name=name, min_version=levels.low, max_version=levels.high)
            for name, levels in SUPPORTED.items()
            if levels.low > 0 or request.version >= _LEVEL_ZERO_FROM
        ],
        finalized_features_epoch=controller.image.offset,
        finalized_features=[
            ApiVersionsResponse.FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in _finalized(controller=controller).items()
        ],
    )


def _finalized(*, controller: Controller) -> dict[str, int]:
    levels = {**controller.image.features, KRAFT_VERSION: controller.log.quorum.kraft_version}
    return {name: level for name, level in levels.items() if level > 0}


def unsupported_version() -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[_versions(API_TABLE[ApiKey.API_VERSIONS])]
    )


def _versions(row: ApiRow) -> ApiVersionsResponse.ApiVersion:
    return ApiVersionsResponse.ApiVersion(api_key=row.key, min_version=row.min_version, max_version=row.max_version)
