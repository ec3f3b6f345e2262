"""FetchAnswer: the partitions of a response, put together as the request's version has them.

    0–1    records as messages of format 0                  7    sessions: a top-level error and the session's id
    2–3    records as messages of format 1                  11   preferred read replica
    4      last stable offset, aborted transactions         12   diverging epochs
    5      log start offset                                 13   topics by id instead of name
    6      KAFKA_STORAGE_ERROR; before, it was              16   with NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH,
           NOT_LEADER_OR_FOLLOWER, which clients know            who leads now and where that broker is

Partitions of a topic stand together where they follow each other, in the order in which they were read.
"""

from __future__ import annotations

from collections.abc import Iterable

from tailrace.fetch.context import Answer, Told
from tailrace.fetch.session import PARTITIONS_A_STEP
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

_LED_ELSEWHERE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def refusal(index: int, code: ErrorCode) -> PartitionAnswer:
    """Return the response for a partition that is not read at all."""
    return PartitionAnswer(index, code, aborted=())


def refused_fetch(ask: FetchAsk, version: int, code: ErrorCode) -> Steps[FetchAnswer]:
    """Return the response to a request that failed as a whole. Before topic ids, clients look for the error at each
    partition."""
    topics = []
    if version < FETCH_TOPIC_IDS:
        for number, (name, partitions) in enumerate(ask.topics, 1):
            if not number % PARTITIONS_A_STEP:
                yield
            assert isinstance(name, str)
            topics.append((name, bytes(16), [refusal(one[0], code) for one in partitions]))
    return FetchAnswer(code, ask.session_id if version >= _SESSIONS_FROM else 0, topics)


def adapt_errors(
    answers: list[Answer], version: int, partitions: HostedPartitions, image: MetadataImage, listener: str
) -> Steps[dict[int, LeaderEndpoint]]:
    """Replace errors by those that the version knows. Return the brokers to which they send the client, by id."""
    nodes: dict[int, LeaderEndpoint] = {}
    for number, (fetch, answer) in enumerate(answers):
        if number and not number % PARTITIONS_A_STEP:
            yield
        code = answer.error_code
        if not code:
            continue
        if code == ErrorCode.KAFKA_STORAGE_ERROR and version < _STORAGE_ERROR_FROM:
            answers[number] = fetch, answer._replace(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif code in _LED_ELSEWHERE and version >= _CURRENT_LEADERS_FROM:
            leader = current_leader(fetch.key, partitions, image, listener)
            answers[number] = fetch, answer._replace(leader=(leader.leader_id, leader.leader_epoch))
            if leader.node is not None:
                nodes[leader.leader_id] = LeaderEndpoint(*leader.node)
    return nodes


def build_answer(told: Told, nodes: Iterable[LeaderEndpoint] = ()) -> Steps[FetchAnswer]:
    """Put partitions of one topic together where they follow each other."""
    topics: list[tuple[str, bytes, list[PartitionAnswer]]] = []
    partitions: list[PartitionAnswer] = []
    identity: object = None
    for number, (fetch, answer) in enumerate(told.answers, 1):
        if not number % PARTITIONS_A_STEP:
            yield
        topic = fetch.identity[0]
        if not topics or identity != topic:
            identity, partitions = topic, [answer]
            topics.append((fetch.topic or "", fetch.topic_id, partitions))
        else:
            partitions.append(answer)
    return FetchAnswer(told.error, told.session_id, topics, tuple(nodes))
