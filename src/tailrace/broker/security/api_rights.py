"""RIGHTS: the rights that each API checks.

The handlers check the rights and send the errors. This table is complete: a handler checks no other right, and an API
that is not listed is allowed for super users only. Forwarded requests are authorized by the controller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from tailrace.broker.handling.handler_binding import Handler
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.broker.security.authorizer import CLUSTER_NAME, AclResource, Operation
from tailrace.broker.security.permissions import Permissions
from tailrace.model.errors import ErrorCode
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.registry import response_class


class Right(NamedTuple):
    operation: Operation
    resource: AclResource

    def __str__(self) -> str:
        return f"{self.operation.name} {self.resource.name}"


def _topic(operation: Operation) -> Right:
    return Right(operation, AclResource.TOPIC)


def _group(operation: Operation) -> Right:
    return Right(operation, AclResource.GROUP)


def _cluster(operation: Operation) -> Right:
    return Right(operation, AclResource.CLUSTER)


def _transaction(operation: Operation) -> Right:
    return Right(operation, AclResource.TRANSACTIONAL_ID)


_O: Final = Operation
_BROKERS: Final = _cluster(_O.CLUSTER_ACTION)  # requests between brokers
_OF_TOPIC: Final = tuple(
    map(_topic, (_O.READ, _O.WRITE, _O.CREATE, _O.DELETE, _O.ALTER, _O.DESCRIBE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS))
)
_OF_GROUP: Final = tuple(map(_group, (_O.READ, _O.DELETE, _O.DESCRIBE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS)))
_OF_CLUSTER: Final = tuple(
    map(
        _cluster,
        (
            _O.CREATE,
            _O.ALTER,
            _O.DESCRIBE,
            _O.CLUSTER_ACTION,
            _O.DESCRIBE_CONFIGS,
            _O.ALTER_CONFIGS,
            _O.IDEMPOTENT_WRITE,
        ),
    )
)
_MEMBER: Final = (_group(_O.READ),)
_SUBSCRIBER: Final = (_group(_O.READ), _topic(_O.DESCRIBE))

RIGHTS: Final[Mapping[ApiKey, tuple[Right, ...]]] = {
    # open to all
    ApiKey.API_VERSIONS: (),
    ApiKey.SASL_HANDSHAKE: (),
    ApiKey.SASL_AUTHENTICATE: (),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: (),
    ApiKey.PUSH_TELEMETRY: (),
    # records
    ApiKey.PRODUCE: (_topic(_O.WRITE), _transaction(_O.WRITE)),
    ApiKey.FETCH: (_topic(_O.READ), _BROKERS),
    ApiKey.LIST_OFFSETS: (_topic(_O.DESCRIBE),),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (_topic(_O.DESCRIBE), _BROKERS),
    ApiKey.DELETE_RECORDS: (_topic(_O.DELETE),),
    ApiKey.DESCRIBE_PRODUCERS: (_topic(_O.READ),),
    # metadata; the rights listed here are also reported as authorized operations
    ApiKey.METADATA: (*_OF_TOPIC, *_OF_CLUSTER),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _OF_TOPIC,
    ApiKey.DESCRIBE_CLUSTER: _OF_CLUSTER,
    # groups
    ApiKey.FIND_COORDINATOR: (_group(_O.DESCRIBE), _transaction(_O.DESCRIBE), _BROKERS),
    ApiKey.OFFSET_COMMIT: (_group(_O.READ), _topic(_O.READ)),
    ApiKey.OFFSET_FETCH: (_group(_O.DESCRIBE), _topic(_O.DESCRIBE)),
    ApiKey.OFFSET_DELETE: (_group(_O.DELETE), _topic(_O.READ)),
    ApiKey.JOIN_GROUP: _MEMBER,
    ApiKey.SYNC_GROUP: _MEMBER,
    ApiKey.HEARTBEAT: _MEMBER,
    ApiKey.LEAVE_GROUP: _MEMBER,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _SUBSCRIBER,
    ApiKey.DESCRIBE_GROUPS: _OF_GROUP,
    ApiKey.CONSUMER_GROUP_DESCRIBE: (*_OF_GROUP, _topic(_O.DESCRIBE)),
    ApiKey.LIST_GROUPS: (_cluster(_O.DESCRIBE), _group(_O.DESCRIBE)),
    ApiKey.DELETE_GROUPS: (_group(_O.DELETE),),
    ApiKey.STREAMS_GROUP_HEARTBEAT: (*_SUBSCRIBER, _cluster(_O.CREATE), _topic(_O.CREATE)),
    ApiKey.STREAMS_GROUP_DESCRIBE: (*_OF_GROUP, _topic(_O.DESCRIBE)),
    # share groups
    ApiKey.SHARE_GROUP_HEARTBEAT: _SUBSCRIBER,
    ApiKey.SHARE_GROUP_DESCRIBE: (*_OF_GROUP, _topic(_O.DESCRIBE)),
    ApiKey.SHARE_FETCH: (_group(_O.READ), _topic(_O.READ)),
    ApiKey.SHARE_ACKNOWLEDGE: (_group(_O.READ), _topic(_O.READ)),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (_group(_O.DESCRIBE), _topic(_O.DESCRIBE)),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: (_group(_O.READ), _topic(_O.READ)),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: (_group(_O.DELETE), _topic(_O.READ)),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: (_BROKERS,),
    ApiKey.READ_SHARE_GROUP_STATE: (_BROKERS,),
    ApiKey.WRITE_SHARE_GROUP_STATE: (_BROKERS,),
    ApiKey.DELETE_SHARE_GROUP_STATE: (_BROKERS,),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: (_BROKERS,),
    # transactions
    ApiKey.INIT_PRODUCER_ID: (_transaction(_O.WRITE), _cluster(_O.IDEMPOTENT_WRITE), _topic(_O.WRITE)),
    ApiKey.ADD_PARTITIONS_TO_TXN: (_transaction(_O.WRITE), _topic(_O.WRITE), _BROKERS),
    ApiKey.ADD_OFFSETS_TO_TXN: (_transaction(_O.WRITE), _group(_O.READ)),
    ApiKey.TXN_OFFSET_COMMIT: (_transaction(_O.WRITE), _group(_O.READ), _topic(_O.READ)),
    ApiKey.END_TXN: (_transaction(_O.WRITE),),
    ApiKey.WRITE_TXN_MARKERS: (_cluster(_O.ALTER), _BROKERS),
    ApiKey.DESCRIBE_TRANSACTIONS: (_transaction(_O.DESCRIBE), _topic(_O.DESCRIBE)),
    ApiKey.LIST_TRANSACTIONS: (_transaction(_O.DESCRIBE),),
    # topics
    ApiKey.CREATE_TOPICS: (_cluster(_O.CREATE), _topic(_O.CREATE), _topic(_O.DESCRIBE_CONFIGS)),
    ApiKey.DELETE_TOPICS: (_cluster(_O.DELETE), _topic(_O.DELETE), _topic(_O.DESCRIBE)),
    ApiKey.CREATE_PARTITIONS: (_topic(_O.ALTER),),
    # configurations
    ApiKey.DESCRIBE_CONFIGS: (
        _topic(_O.DESCRIBE_CONFIGS),
        _group(_O.DESCRIBE_CONFIGS),
        _cluster(_O.DESCRIBE_CONFIGS),
    ),
    ApiKey.ALTER_CONFIGS: (_topic(_O.ALTER_CONFIGS), _group(_O.ALTER_CONFIGS), _cluster(_O.ALTER_CONFIGS)),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (_topic(_O.ALTER_CONFIGS), _group(_O.ALTER_CONFIGS), _cluster(_O.ALTER_CONFIGS)),
    ApiKey.LIST_CONFIG_RESOURCES: (_cluster(_O.DESCRIBE_CONFIGS),),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (_cluster(_O.DESCRIBE_CONFIGS),),
    ApiKey.ALTER_CLIENT_QUOTAS: (_cluster(_O.ALTER_CONFIGS),),
    # the cluster
    ApiKey.DESCRIBE_ACLS: (_cluster(_O.DESCRIBE),),
    ApiKey.CREATE_ACLS: (_cluster(_O.ALTER),),
    ApiKey.DELETE_ACLS: (_cluster(_O.ALTER),),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (_cluster(_O.DESCRIBE),),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (_cluster(_O.ALTER),),
    ApiKey.ELECT_LEADERS: (_cluster(_O.ALTER),),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (_cluster(_O.ALTER),),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (_cluster(_O.DESCRIBE),),
    ApiKey.DESCRIBE_LOG_DIRS: (_cluster(_O.DESCRIBE),),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (_cluster(_O.ALTER),),
    ApiKey.DESCRIBE_QUORUM: (_cluster(_O.DESCRIBE),),
    ApiKey.UPDATE_FEATURES: (_cluster(_O.ALTER),),
    ApiKey.UNREGISTER_BROKER: (_cluster(_O.ALTER),),
    ApiKey.ADD_RAFT_VOTER: (_cluster(_O.ALTER),),
    ApiKey.REMOVE_RAFT_VOTER: (_cluster(_O.ALTER),),
    # delegation tokens; owners and renewers of a token need no right
    ApiKey.CREATE_DELEGATION_TOKEN: (Right(_O.CREATE_TOKENS, AclResource.USER),),
    ApiKey.RENEW_DELEGATION_TOKEN: (),
    ApiKey.EXPIRE_DELEGATION_TOKEN: (),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: (
        Right(_O.DESCRIBE, AclResource.DELEGATION_TOKEN),
        Right(_O.DESCRIBE_TOKENS, AclResource.USER),
    ),
}

# At a controller listener.
CONTROLLER_RIGHTS: Final[Mapping[ApiKey, tuple[Right, ...]]] = {
    ApiKey.ALTER_PARTITION: (_BROKERS,),
    ApiKey.FETCH_SNAPSHOT: (_BROKERS,),
    ApiKey.BROKER_REGISTRATION: (_BROKERS,),
    ApiKey.BROKER_HEARTBEAT: (_BROKERS,),
    ApiKey.ALLOCATE_PRODUCER_IDS: (_BROKERS,),
    ApiKey.CONTROLLER_REGISTRATION: (_BROKERS,),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: (_BROKERS,),
}


def guarded(api_key: int, handler: Handler) -> Callable[..., Any]:
    """Return the handler of an API that is listed above. Otherwise return one that only super users may call."""
    if api_key in RIGHTS or api_key in CONTROLLER_RIGHTS:
        return handler

    def ask_first(request: Request, now_ms: int, *, permissions: Permissions, replies: Replies) -> Any:
        if permissions.allows(request, Operation.ALL, AclResource.CLUSTER, CLUSTER_NAME):
            return handler(request, now_ms)
        response: Any = response_class(api_key)()
        if not hasattr(response, "error_code"):
            replies.reply_nothing(request, now_ms, close=True)
            return None
        response.error_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return response

    return ask_first
