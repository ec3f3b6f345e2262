"""DeleteTopics: the decision.

A topic is given once, by its name or by its id. Items that name no topic, or a topic that another item names too, are
refused; the other topics are deleted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container
from typing import TypeAlias

from tailrace.metadata.controller.control_state import (
    NO_ERROR,
    ApiError,
    Charge,
    ControlState,
    Plan,
    check_size,
    free_of_charge,
)
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol import messages
from tailrace.protocol.message import Message

_NO_ID = bytes(16)


Right: TypeAlias = Callable[[str], bool]  # of a client, on a topic


def _anything(_: str) -> bool:
    return True


class _Deletion:
    """The topics of one request: those that will be deleted, and the responses for the others."""

    def __init__(self, image: MetadataImage, may_describe: Right, may_delete: Right) -> None:
        self._image = image
        self._may_describe = may_describe
        self._may_delete = may_delete
        self.going: dict[bytes, str] = {}
        self.response = messages.DeleteTopicsResponse()

    def answer(self, name: str | None, topic_id: bytes, error: ApiError) -> None:
        self.response.responses.append(
            messages.DeleteTopicsResponse.DeletableTopicResult(
                name=name, topic_id=topic_id, error_code=error.code, error_message=error.message
            )
        )

    def refuse(self, name: str | None, topic_id: bytes, code: ErrorCode, message: str) -> None:
        self.answer(name, topic_id, ApiError(code, message))

    def add(self, request: messages.DeleteTopicsRequest) -> None:
        """Take the topics of a request, each by its name or by its id."""
        names, ids = Counter(request.topic_names), Counter[bytes]()
        for one in request.topics:
            if one.name is None and one.topic_id == _NO_ID:
                self.refuse(None, _NO_ID, ErrorCode.INVALID_REQUEST, "neither a name nor an id is given")
            elif one.name is None:
                ids[one.topic_id] += 1
            elif one.topic_id == _NO_ID:
                names[one.name] += 1
            else:
                self.refuse(one.name, one.topic_id, ErrorCode.INVALID_REQUEST, "both a name and an id are given")
        for topic_id, count in ids.items():
            self._add_id(topic_id, count)
        for name, count in names.items():
            self._add_name(name, count, ids)

    def _add_id(self, topic_id: bytes, count: int) -> None:
        topic = self._image.topics_by_id.get(topic_id)
        if count > 1:
            self.refuse(None, topic_id, ErrorCode.INVALID_REQUEST, "the topic's id is given twice")
        elif topic is None:
            self.refuse(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id")
        elif not self._may_delete(topic.name):
            shown = topic.name if self._may_describe(topic.name) else None
            self.refuse(
                shown,
                topic_id,
                ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                "not authorized to delete the topic: the operation DELETE is needed",
            )
        else:
            self.going[topic_id] = topic.name

    def _add_name(self, name: str, count: int, ids: Container[bytes]) -> None:
        topic = self._image.topics.get(name)
        if count > 1:
            self.refuse(name, _NO_ID, ErrorCode.INVALID_REQUEST, "the topic is named twice")
        elif not self._may_describe(name):
            self.refuse(
                name,
                _NO_ID,
                ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                "not authorized to describe the topic: the operation DESCRIBE is needed",
            )
        elif topic is None:
            self.refuse(name, _NO_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no topic has this name")
        elif not self._may_delete(name):
            self.refuse(
                name,
                _NO_ID,
                ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                "not authorized to delete the topic: the operation DELETE is needed",
            )
        elif topic.id in ids:
            self.going.pop(topic.id, None)
            self.refuse(name, topic.id, ErrorCode.INVALID_REQUEST, "the topic is given by its name and by its id")
        else:
            self.going[topic.id] = name


def plan_delete_topics(
    state: ControlState,
    request: messages.DeleteTopicsRequest,
    *,
    may_describe: Right = _anything,
    may_delete: Right = _anything,
    charge: Charge = free_of_charge,
) -> Plan[messages.DeleteTopicsResponse]:
    """Plan the deletion of topics that exist, are authorized and within the quota; none if they are too many."""
    deletion = _Deletion(state.image, may_describe, may_delete)
    deletion.add(request)
    records: list[Message] = []
    for topic_id, name in list(deletion.going.items()):
        try:
            charge(len(state.image.topics_by_id[topic_id].partitions))
        except KafkaError as refusal:
            del deletion.going[topic_id]
            deletion.answer(name, topic_id, ApiError.of(refusal))
        else:
            records.append(messages.RemoveTopicRecord(topic_id=topic_id))
    error = NO_ERROR
    try:
        check_size(records)
    except KafkaError as refusal:
        error, records = ApiError.of(refusal), []
    for topic_id, name in deletion.going.items():
        deletion.answer(name, topic_id, error)
    return Plan(records, deletion.response)
