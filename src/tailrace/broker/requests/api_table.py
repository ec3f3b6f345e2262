"""The table of supported APIs: key, versions, handler. ApiVersions and docs/reference/compatibility.md use it.

Old versions that Kafka 4 has removed are still supported, so old clients work.
"""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from tailrace.broker.handling.handler_binding import Handler, bind
from tailrace.broker.security.api_rights import guarded
from tailrace.protocol.api_keys import ApiKey


class ApiRow(NamedTuple):
    key: ApiKey
    min_version: int
    max_version: int
    family: str  # the folder of its handler

    @property
    def module(self) -> str:
        return f"tailrace.broker.requests.{self.family}.{self.key.name.lower()}"

    def load(self, services: object) -> Handler:
        """Return the API's handler with the services that it names.

        Its module is imported at the first request of the API, to keep the start fast.
        """
        handler = bind(import_module(self.module).handle, services)
        return bind(guarded(self.key, handler), services)


_ROWS = (
    ApiRow(ApiKey.PRODUCE, 0, 13, "data"),
    ApiRow(ApiKey.FETCH, 0, 18, "data"),
    ApiRow(ApiKey.LIST_OFFSETS, 0, 11, "data"),
    ApiRow(ApiKey.METADATA, 0, 13, "topics"),
    ApiRow(ApiKey.OFFSET_COMMIT, 0, 10, "offsets"),
    ApiRow(ApiKey.OFFSET_FETCH, 0, 10, "offsets"),
    ApiRow(ApiKey.FIND_COORDINATOR, 0, 6, "groups"),
    ApiRow(ApiKey.JOIN_GROUP, 0, 9, "groups"),
    ApiRow(ApiKey.HEARTBEAT, 0, 4, "groups"),
    ApiRow(ApiKey.LEAVE_GROUP, 0, 5, "groups"),
    ApiRow(ApiKey.SYNC_GROUP, 0, 5, "groups"),
    ApiRow(ApiKey.DESCRIBE_GROUPS, 0, 6, "groups"),
    ApiRow(ApiKey.LIST_GROUPS, 0, 5, "groups"),
    ApiRow(ApiKey.SASL_HANDSHAKE, 0, 1, "security"),
    ApiRow(ApiKey.API_VERSIONS, 0, 4, "cluster"),
    ApiRow(ApiKey.CREATE_TOPICS, 0, 7, "topics"),
    ApiRow(ApiKey.DELETE_TOPICS, 0, 6, "topics"),
    ApiRow(ApiKey.DELETE_RECORDS, 0, 2, "data"),
    ApiRow(ApiKey.INIT_PRODUCER_ID, 0, 5, "transactions"),
    ApiRow(ApiKey.OFFSET_FOR_LEADER_EPOCH, 0, 4, "data"),
    ApiRow(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5, "transactions"),
    ApiRow(ApiKey.ADD_OFFSETS_TO_TXN, 0, 4, "transactions"),
    ApiRow(ApiKey.END_TXN, 0, 5, "transactions"),
    ApiRow(ApiKey.WRITE_TXN_MARKERS, 0, 2, "transactions"),
    ApiRow(ApiKey.TXN_OFFSET_COMMIT, 0, 5, "transactions"),
    ApiRow(ApiKey.DESCRIBE_ACLS, 1, 3, "security"),
    ApiRow(ApiKey.CREATE_ACLS, 1, 3, "security"),
    ApiRow(ApiKey.DELETE_ACLS, 1, 3, "security"),
    ApiRow(ApiKey.DESCRIBE_CONFIGS, 0, 4, "configs"),
    ApiRow(ApiKey.ALTER_CONFIGS, 0, 2, "configs"),
    ApiRow(ApiKey.ALTER_REPLICA_LOG_DIRS, 0, 2, "cluster"),
    ApiRow(ApiKey.DESCRIBE_LOG_DIRS, 0, 5, "cluster"),
    ApiRow(ApiKey.SASL_AUTHENTICATE, 0, 2, "security"),
    ApiRow(ApiKey.CREATE_PARTITIONS, 0, 3, "topics"),
    ApiRow(ApiKey.CREATE_DELEGATION_TOKEN, 1, 3, "security"),
    ApiRow(ApiKey.RENEW_DELEGATION_TOKEN, 1, 2, "security"),
    ApiRow(ApiKey.EXPIRE_DELEGATION_TOKEN, 1, 2, "security"),
    ApiRow(ApiKey.DESCRIBE_DELEGATION_TOKEN, 1, 3, "security"),
    ApiRow(ApiKey.DELETE_GROUPS, 0, 2, "groups"),
    ApiRow(ApiKey.ELECT_LEADERS, 0, 2, "topics"),
    ApiRow(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, "configs"),
    ApiRow(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 1, "topics"),
    ApiRow(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0, "topics"),
    ApiRow(ApiKey.OFFSET_DELETE, 0, 0, "offsets"),
    ApiRow(ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1, "configs"),
    ApiRow(ApiKey.ALTER_CLIENT_QUOTAS, 0, 1, "configs"),
    ApiRow(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, "security"),
    ApiRow(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, "security"),
    ApiRow(ApiKey.DESCRIBE_QUORUM, 0, 2, "cluster"),
    ApiRow(ApiKey.UPDATE_FEATURES, 0, 2, "cluster"),
    ApiRow(ApiKey.DESCRIBE_CLUSTER, 0, 2, "cluster"),
    ApiRow(ApiKey.DESCRIBE_PRODUCERS, 0, 0, "transactions"),
    ApiRow(ApiKey.UNREGISTER_BROKER, 0, 0, "cluster"),
    ApiRow(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, "transactions"),
    ApiRow(ApiKey.LIST_TRANSACTIONS, 0, 2, "transactions"),
    ApiRow(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1, "groups"),
    ApiRow(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1, "groups"),
    ApiRow(ApiKey.LIST_CONFIG_RESOURCES, 0, 1, "configs"),
    ApiRow(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0, "topics"),
    ApiRow(ApiKey.SHARE_GROUP_HEARTBEAT, 1, 1, "shares"),
    ApiRow(ApiKey.SHARE_GROUP_DESCRIBE, 1, 1, "shares"),
    ApiRow(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, 0, "shares"),
    ApiRow(ApiKey.READ_SHARE_GROUP_STATE, 0, 0, "shares"),
    ApiRow(ApiKey.WRITE_SHARE_GROUP_STATE, 0, 1, "shares"),
    ApiRow(ApiKey.DELETE_SHARE_GROUP_STATE, 0, 0, "shares"),
    ApiRow(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 0, 1, "shares"),
    ApiRow(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 0, 1, "shares"),
    ApiRow(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, 0, "shares"),
    ApiRow(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, 0, "shares"),
    ApiRow(ApiKey.SHARE_FETCH, 1, 2, "data"),
    ApiRow(ApiKey.SHARE_ACKNOWLEDGE, 1, 2, "data"),
    ApiRow(ApiKey.ADD_RAFT_VOTER, 0, 1, "cluster"),
    ApiRow(ApiKey.REMOVE_RAFT_VOTER, 0, 0, "cluster"),
    ApiRow(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, 0, "groups"),
    ApiRow(ApiKey.STREAMS_GROUP_DESCRIBE, 0, 0, "groups"),
)

API_TABLE: dict[int, ApiRow] = {row.key: row for row in _ROWS}

# Supported only if clients may push their metrics, as in Kafka.
TELEMETRY_TABLE: dict[int, ApiRow] = {
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: ApiRow(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, 0, "configs"),
    ApiKey.PUSH_TELEMETRY: ApiRow(ApiKey.PUSH_TELEMETRY, 0, 0, "configs"),
}
