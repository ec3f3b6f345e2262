"""Who fetches, told by `replica_id`, and how far each may read.

replica_id   who                          may read up to
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

_LEVELS = (Isolation.READ_UNCOMMITTED, Isolation.READ_COMMITTED)


def is_follower(replica_id: int) -> bool:
    return replica_id >= 0


def is_consumer(replica_id: int) -> bool:
    return replica_id < 0 and replica_id != FUTURE_LOCAL_REPLICA


def isolation_of(replica_id: int, isolation_level: int) -> Isolation:
    """The bound of a fetch; a level that does not exist is an error only where it would count."""
    if not is_consumer(replica_id):
        return Isolation.LOG_END
    if not 0 <= isolation_level < len(_LEVELS):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"there is no isolation level {isolation_level}")
    return _LEVELS[isolation_level]


def describe_replica(replica_id: int) -> str:
    names = {
        CONSUMER: "consumer",
        DEBUGGING_CONSUMER: "debugging consumer",
        FUTURE_LOCAL_REPLICA: "future local replica",
    }
    if is_follower(replica_id):
        return f"follower {replica_id}"
    return names.get(replica_id, f"consumer with replica id {replica_id}")
