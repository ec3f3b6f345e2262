"""The kinds of fetcher, given by `replica_id`, and how far each may read.

replica_id   fetcher                      may read up to
≥ 0          a follower, by broker id     log end
−1           a consumer                   high watermark, or last stable offset for read_committed
−2           a debugging consumer         as a consumer
−3           the future local replica     log end
"""

from __future__ import annotations

from typing import Final

from tailrace.log.watermarks import Isolation
from tailrace.model.errors import ErrorCode, KafkaError

CONSUMER: Final = -1
DEBUGGING_CONSUMER: Final = -2
FUTURE_LOCAL_REPLICA: Final = -3

READ_UNCOMMITTED_LEVEL: Final = 0
READ_COMMITTED_LEVEL: Final = 1
_LOG_END: Final = Isolation.LOG_END
_READ_UNCOMMITTED: Final = Isolation.READ_UNCOMMITTED
_READ_COMMITTED: Final = Isolation.READ_COMMITTED


def is_follower(replica_id: int) -> bool:
    return replica_id >= 0


def is_consumer(replica_id: int) -> bool:
    return replica_id < 0 and replica_id != FUTURE_LOCAL_REPLICA


def isolation_of(replica_id: int, isolation_level: int) -> Isolation:
    """Return the bound up to which a fetch may read."""
    if not is_consumer(replica_id):
        return _LOG_END
    return _READ_COMMITTED if isolation_level == READ_COMMITTED_LEVEL else _READ_UNCOMMITTED


def check_level(isolation_level: int) -> None:
    """Raise KafkaError if the isolation level does not exist. This applies to followers too, which ignore the level."""
    if isolation_level not in (READ_UNCOMMITTED_LEVEL, READ_COMMITTED_LEVEL):
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"isolation level {isolation_level} does not exist; it is 0 or 1"
        )


def describe_replica(replica_id: int) -> str:
    names = {
        CONSUMER: "consumer",
        DEBUGGING_CONSUMER: "debugging consumer",
        FUTURE_LOCAL_REPLICA: "future local replica",
    }
    if is_follower(replica_id):
        return f"follower {replica_id}"
    return names.get(replica_id, f"consumer with replica id {replica_id}")
