"""ObserverFetch: a Fetch of the metadata log that waits until the log has something new for the observer."""

from __future__ import annotations

from typing import Any, Final

from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request
from tailrace.log.disk.file_names import CLUSTER_METADATA_TOPIC
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.metadata.quorum.served_log import FetchPartition, PartitionData
from tailrace.metadata.storage.storage_format import METADATA_TOPIC_ID
from tailrace.protocol.messages import FetchResponse
from tailrace.waiting.purgatory import DelayedOperation

METADATA_CHANGED: Final = "metadata changed"  # the key under which these operations wait


class ObserverFetch(DelayedOperation):
    __slots__ = ("_asked", "_bytes_max", "_controller", "_replies", "_request")
    ends_at_stop = True

    def __init__(
        self,
        request: Request,
        asked: FetchPartition,
        bytes_max: int,
        controller: LocalController,
        replies: Replies,
        deadline_ms: int,
    ) -> None:
        super().__init__(deadline_ms)
        self._request = request.without_body()
        self._asked = asked
        self._bytes_max = bytes_max
        self._controller = controller
        self._replies = replies

    def try_complete(self, now_ms: int) -> bool:
        answer = self._controller.served_log.answer(self._asked, self._bytes_max)
        if not self._controller.served_log.must_answer_now(self._asked, answer):
            return False
        self._respond(answer, now_ms)
        return True

    def expire(self, now_ms: int) -> None:
        self._respond(self._controller.served_log.answer(self._asked, self._bytes_max), now_ms)

    def _respond(self, answer: PartitionData, now_ms: int) -> None:
        topic = FetchResponse.FetchableTopicResponse(
            topic=CLUSTER_METADATA_TOPIC, topic_id=METADATA_TOPIC_ID.value.bytes, partitions=[answer]
        )
        response = FetchResponse(responses=[topic])
        response.node_endpoints = leader_endpoints(
            FetchResponse.NodeEndpoint, self._controller, self._request.context.listener
        )
        self._replies.answer(self._request, response, now_ms)

    def facts(self) -> dict[str, Any]:
        return {"offset": self._asked.fetch_offset}


def leader_endpoints(kind: Any, controller: LocalController, listener: str) -> list[Any]:
    """Return this node's address on a controller listener, in the form of a response."""
    return [
        kind(node_id=controller.node_id, host=one.host, port=one.port)
        for one in controller.log.controller_endpoints
        if one.listener == listener
    ]
