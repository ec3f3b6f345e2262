"""DeleteTopics: the decision.

A topic is named by its name or its id, once and in one way only. What refers to nothing, or twice to the same topic, is
refused; the rest goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tailrace.metadata.controller.control import (
    NO_ERROR,
    ApiError,
    Charge,
    ControlState,
    Plan,
    check_size,
    free_of_charge,
)
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol import messages
from tailrace.protocol.message import Message

_NO_ID = bytes(16)


def _anything(_: str) -> bool:
    return True


def plan_delete_topics(
    state: ControlState,
    request: messages.DeleteTopicsRequest,
    *,
    may_describe: Callable[[str], bool] = _anything,
    may_delete: Callable[[str], bool] = _anything,
    charge: Charge = free_of_charge,
) -> Plan[messages.DeleteTopicsResponse]:
    response = messages.DeleteTopicsResponse()

    def answer(name: str | None, topic_id: bytes, error: ApiError) -> None:
        response.responses.append(
            messages.DeleteTopicsResponse.DeletableTopicResult(
                name=name,
                topic_id=topic_id,
                error_code=error.code,
                error_message=error.message,
            )
        )

    names, ids = Counter(request.topic_names), Counter[bytes]()
    for one in request.topics:
        if one.name is None and one.topic_id == _NO_ID:
            answer(None, _NO_ID, ApiError(ErrorCode.INVALID_REQUEST, "neither a name nor an id is given"))
        elif one.name is None:
            ids[one.topic_id] += 1
        elif one.topic_id == _NO_ID:
            names[one.name] += 1
        else:
            answer(one.name, one.topic_id, ApiError(ErrorCode.INVALID_REQUEST, "both a name and an id are given"))
    going: dict[bytes, str] = {}
    for topic_id, count in ids.items():
        topic = state.image.topics_by_id.get(topic_id)
        if count > 1:
            answer(None, topic_id, ApiError(ErrorCode.INVALID_REQUEST, "the topic's id is given twice"))
        elif topic is None:
            answer(None, topic_id, ApiError(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id"))
        elif not may_delete(topic.name):
            shown = topic.name if may_describe(topic.name) else None
            answer(
                shown, topic_id, ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not authorized to delete the topic")
            )
        else:
            going[topic_id] = topic.name
    for name, count in names.items():
        topic = state.image.topics.get(name)
        if count > 1:
            answer(name, _NO_ID, ApiError(ErrorCode.INVALID_REQUEST, "the topic is named twice"))
        elif not may_describe(name):
            answer(name, _NO_ID, ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not authorized to see the topic"))
        elif topic is None:
            answer(name, _NO_ID, ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no topic has this name"))
        elif not may_delete(name):
            answer(name, _NO_ID, ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not authorized to delete the topic"))
        elif topic.id in ids:
            going.pop(topic.id, None)
            answer(name, topic.id, ApiError(ErrorCode.INVALID_REQUEST, "the topic is given by its name and by its id"))
        else:
            going[topic.id] = name
    records: list[Message] = []
    for topic_id, name in list(going.items()):
        try:
            charge(len(state.image.topics_by_id[topic_id].partitions))
        except KafkaError as refusal:
            del going[topic_id]
            answer(name, topic_id, ApiError.of(refusal))
        else:
            records.append(messages.RemoveTopicRecord(topic_id=topic_id))
    error = NO_ERROR
    try:
        check_size(records)
    except KafkaError as refusal:
        error, records = ApiError.of(refusal), []
    for topic_id, name in going.items():
        answer(name, topic_id, error)
    return Plan(records, response)
