"""The table of APIs at a controller listener: those of brokers to their controller, and those of administrators.

Administrators reach a controller through any broker, or directly (`--bootstrap-controller` of Kafka's tools). Requests
of voters to each other (Vote, BeginQuorumEpoch, …) are not supported, because the quorum has one voter.
"""

from __future__ import annotations

from typing import Final

from tailrace.broker.cluster.forwarding import FORWARDED_UNCHECKED
from tailrace.broker.requests.api_table import API_TABLE, ApiRow
from tailrace.protocol.api_keys import ApiKey

_OWN: Final = (
    ApiRow(ApiKey.FETCH, 17, 18, "controllers"),
    ApiRow(ApiKey.ALTER_PARTITION, 2, 3, "controllers"),
    ApiRow(ApiKey.ENVELOPE, 0, 0, "controllers"),
    ApiRow(ApiKey.FETCH_SNAPSHOT, 0, 1, "controllers"),
    ApiRow(ApiKey.DESCRIBE_CLUSTER, 1, 2, "controllers"),
    ApiRow(ApiKey.BROKER_REGISTRATION, 0, 4, "controllers"),
    ApiRow(ApiKey.BROKER_HEARTBEAT, 0, 2, "controllers"),
    ApiRow(ApiKey.ALLOCATE_PRODUCER_IDS, 0, 0, "controllers"),
    ApiRow(ApiKey.CONTROLLER_REGISTRATION, 0, 0, "controllers"),
    ApiRow(ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, 0, "controllers"),
    ApiRow(ApiKey.ALTER_CONFIGS, 0, 2, "controllers"),
    ApiRow(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, "controllers"),
)

# All APIs that an Envelope may contain.
ENVELOPED: Final = FORWARDED_UNCHECKED | {
    ApiKey.ALTER_CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
}
_AS_AT_BROKERS: Final = ENVELOPED | {
    ApiKey.API_VERSIONS,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.DESCRIBE_ACLS,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
}

CONTROLLER_TABLE: Final[dict[int, ApiRow]] = {
    **{key: API_TABLE[key] for key in _AS_AT_BROKERS},
    **{row.key: row for row in _OWN},
}
