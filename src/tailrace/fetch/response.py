"""AnswerBuilder: builds the partitions of a response for the request's version.

    0–1    records as messages of format 0                  7    sessions: a top-level error and the session's id
    2–3    records as messages of format 1                  11   preferred read replica
    4      last stable offset, aborted transactions         12   diverging epochs
    5      log start offset                                 13   topics by id instead of name
    6      KAFKA_STORAGE_ERROR; older versions get          16   with NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH:
           NOT_LEADER_OR_FOLLOWER                                the current leader and its address

Partitions are in the order in which they were read. Consecutive partitions of a topic share one topic entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tailrace.fetch.context import Answer, Includes
from tailrace.fetch.session import PARTITIONS_PER_STEP, PartitionFetch
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode
from tailrace.model.steps import Steps
from tailrace.protocol.codegen.field_versions import FETCH_TOPIC_IDS, first_version_with
from tailrace.protocol.flat.fetch import FetchAnswer, FetchAsk, LeaderEndpoint, PartitionAnswer
from tailrace.replication.current_leader import current_leader
from tailrace.replication.hosted_partitions import HostedPartitions

_SESSIONS_FROM = first_version_with("FetchRequest", "session_id")
_CURRENT_LEADERS_FROM = first_version_with("FetchResponse", "node_endpoints")
_STORAGE_ERROR_FROM = 6
_ERROR_CODE: Final = PartitionAnswer._fields.index("error_code")

_LED_ELSEWHERE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def refusal(index: int, code: ErrorCode) -> PartitionAnswer:
    """Return the response for a partition that is not read at all."""
    return PartitionAnswer(index, code, aborted=())


def refused_fetch(ask: FetchAsk, version: int, code: ErrorCode) -> Steps[FetchAnswer]:
    """Return the response to a request that failed as a whole. In versions before topic ids, clients look for the error
    in each partition."""
    topics = []
    if version < FETCH_TOPIC_IDS:
        for number, (name, partitions) in enumerate(ask.topics, 1):
            if not number % PARTITIONS_PER_STEP:
                yield
            assert isinstance(name, str)
            topics.append((name, bytes(16), [refusal(one[0], code) for one in partitions]))
    return FetchAnswer(code, ask.session_id if version >= _SESSIONS_FROM else 0, topics)


class AnswerBuilder:
    """Builds a response, a few partitions at a time."""

    __slots__ = ("_image", "_includes", "_listener", "_partitions", "_topic", "_version", "nodes", "topics")

    def __init__(
        self,
        version: int | None,
        includes: Includes | None,
        partitions: HostedPartitions,
        image: Callable[[], MetadataImage],
        listener: str,
    ) -> None:
        """`includes` decides which partitions the response contains. If it is None, all. If `version` is None, error
        codes stay unchanged."""
        self._version = version
        self._includes = includes
        self._partitions = partitions
        self._image = image
        self._listener = listener
        self._topic: bytes | str | None = None  # topic of the last partition: its id or its name, as in the request
        self.topics: list[tuple[str, bytes, list[PartitionAnswer]]] = []
        self.nodes: dict[int, LeaderEndpoint] = {}  # the leaders named by errors, by broker id

    def add(self, answers: Sequence[Answer]) -> None:
        """Add partitions. Consecutive partitions of a topic share one topic entry."""
        topics, includes, version = self.topics, self._includes, self._version
        partitions: list[PartitionAnswer] = topics[-1][2] if topics else []
        last = self._topic
        for fetch, answer in answers:
            if answer[_ERROR_CODE] and version is not None:
                answer = self._adapted(fetch, answer, version)
            if includes is not None and not includes(fetch, answer):
                continue
            topic = fetch.identity[0]
            if topic != last:
                last, partitions = topic, []
                topics.append((fetch.topic or "", fetch.topic_id, partitions))
            partitions.append(answer)
        self._topic = last

    def add_refused(self, refused: Sequence[tuple[PartitionFetch, ErrorCode]]) -> None:
        """Add partitions that are not read."""
        self.add([(fetch, refusal(fetch.index, code)) for fetch, code in refused])

    def _adapted(self, fetch: PartitionFetch, answer: PartitionAnswer, version: int) -> PartitionAnswer:
        """Return an answer with an error code that the version knows, and with the leader if that is another broker."""
        code = answer.error_code
        if code == ErrorCode.KAFKA_STORAGE_ERROR and version < _STORAGE_ERROR_FROM:
            return answer._replace(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if code in _LED_ELSEWHERE and version >= _CURRENT_LEADERS_FROM:
            leader = current_leader(fetch.key, self._partitions, self._image(), self._listener)
            if leader.node is not None:
                self.nodes[leader.leader_id] = LeaderEndpoint(*leader.node)
            return answer._replace(leader=(leader.leader_id, leader.leader_epoch))
        return answer
