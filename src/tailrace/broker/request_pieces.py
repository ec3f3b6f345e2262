"""Request pieces: a request about many things, handled a few things at a time.

The handlers of the APIs below answer for each element of an array by itself. A request with more elements than a piece
may have is cut into requests with parts of its array. The handler gets them one after the other and other clients are
served in between (`long_requests.py`); the client gets one response with the elements of all pieces.

    CUTS        which arrays of an API's request and response belong together, and how much makes a piece
    cut(…)      the bodies of a request's pieces, or None if it is small enough
    handle_in_pieces(…)   the handler's work on them, as steps

Requests that name one thing many times cannot make the broker answer for it each time: where an API answers for every
name, names that are repeated are folded, but for as many as the handler needs to refuse repeated names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tailrace.broker.long_requests import Steps
from tailrace.broker.request_context import Request
from tailrace.model.errors import KafkaError
from tailrace.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from tailrace.broker.api_table import Handler
    from tailrace.broker.broker import Broker


class Cut(NamedTuple):
    asked: tuple[str, ...]  # the path of arrays in the request: ("topics", "partitions")
    answered: tuple[str, ...]  # the array in the response, and the array in its elements that grows
    size: int = 64  # elements of the innermost array in a piece
    keys: tuple[str, ...] | None = None  # the fields that name an element; (): the element is its own name
    repeats: int = 0  # how many elements of one name are kept; 0: all
    weight: str | None = None  # a field of an element that says how many elements it stands for


_TOPICS = Cut(("topics", "partitions"), ("topics", "partitions"))
_STATE = Cut(("topics", "partitions"), ("results", "partitions"))

CUTS: dict[ApiKey, tuple[Cut, ...]] = {
    ApiKey.PRODUCE: (Cut(("topic_data", "partition_data"), ("responses", "partition_responses"), size=1024),),
    ApiKey.LIST_OFFSETS: (_TOPICS,),
    ApiKey.METADATA: (Cut(("topics",), ("topics",), size=16),),
    ApiKey.OFFSET_COMMIT: (_TOPICS._replace(size=512),),
    ApiKey.OFFSET_FETCH: (
        Cut(("groups", "topics", "partition_indexes"), ("groups", "topics"), size=256),
        Cut(("topics", "partition_indexes"), ("topics", "partitions"), size=256),
    ),
    ApiKey.FIND_COORDINATOR: (Cut(("coordinator_keys",), ("coordinators",)),),
    ApiKey.DESCRIBE_GROUPS: (Cut(("groups",), ("groups",), size=16, keys=(), repeats=1),),
    ApiKey.CREATE_TOPICS: (Cut(("topics",), ("topics",), size=64, keys=("name",), repeats=2, weight="num_partitions"),),
    ApiKey.DELETE_TOPICS: (
        Cut(("topics",), ("responses",), size=16, keys=("name", "topic_id"), repeats=2),
        Cut(("topic_names",), ("responses",), size=16, keys=(), repeats=2),
    ),
    ApiKey.DELETE_RECORDS: (_TOPICS,),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (_TOPICS,),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        Cut(("transactions", "topics", "partitions"), ("results_by_transaction", "topic_results"), size=256),
        Cut(
            ("v3_and_below_topics", "partitions"),
            ("results_by_topic_v3_and_below", "results_by_partition"),
            size=256,
        ),
    ),
    ApiKey.WRITE_TXN_MARKERS: (Cut(("markers", "topics", "partition_indexes"), ("markers", "topics")),),
    ApiKey.TXN_OFFSET_COMMIT: (_TOPICS._replace(size=512),),
    ApiKey.CREATE_ACLS: (Cut(("creations",), ("results",)),),
    ApiKey.DELETE_ACLS: (Cut(("filters",), ("filter_results",), size=4),),
    ApiKey.DESCRIBE_CONFIGS: (
        Cut(("resources",), ("results",), size=2, keys=("resource_type", "resource_name"), repeats=1),
    ),
    ApiKey.ALTER_CONFIGS: (
        Cut(("resources",), ("responses",), size=16, keys=("resource_type", "resource_name"), repeats=2),
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (
        Cut(("resources",), ("responses",), size=16, keys=("resource_type", "resource_name"), repeats=2),
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (Cut(("dirs", "topics", "partitions"), ("results", "partitions")),),
    ApiKey.CREATE_PARTITIONS: (Cut(("topics",), ("results",), size=16, keys=("name",), repeats=2),),
    ApiKey.DELETE_GROUPS: (Cut(("groups_names",), ("results",), size=16, keys=(), repeats=1),),
    ApiKey.ELECT_LEADERS: (
        Cut(("topic_partitions", "partitions"), ("replica_election_results", "partition_result"), size=256),
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (Cut(("topics", "partitions"), ("responses", "partitions")),),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (Cut(("topics", "partition_indexes"), ("topics", "partitions"), size=256),),
    ApiKey.OFFSET_DELETE: (_TOPICS._replace(size=256),),
    ApiKey.ALTER_CLIENT_QUOTAS: (Cut(("entries",), ("entries",), size=16),),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (Cut(("users",), ("results",), keys=("name",), repeats=2),),
    ApiKey.DESCRIBE_QUORUM: (_TOPICS,),
    ApiKey.DESCRIBE_PRODUCERS: (Cut(("topics", "partition_indexes"), ("topics", "partitions"), size=16),),
    ApiKey.DESCRIBE_TRANSACTIONS: (Cut(("transactional_ids",), ("transaction_states",), size=16, keys=(), repeats=1),),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (Cut(("group_ids",), ("groups",), size=4, keys=(), repeats=1),),
    ApiKey.SHARE_GROUP_DESCRIBE: (Cut(("group_ids",), ("groups",), size=4, keys=(), repeats=1),),
    ApiKey.STREAMS_GROUP_DESCRIBE: (Cut(("group_ids",), ("groups",), size=4, keys=(), repeats=1),),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: (_STATE,),
    ApiKey.READ_SHARE_GROUP_STATE: (_STATE,),
    ApiKey.WRITE_SHARE_GROUP_STATE: (_STATE,),
    ApiKey.DELETE_SHARE_GROUP_STATE: (_STATE,),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: (_STATE,),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (Cut(("groups", "topics", "partitions"), ("groups", "topics")),),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: (Cut(("topics", "partitions"), ("responses", "partitions")),),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: (Cut(("topics",), ("responses",)),),
}


class _Piece(NamedTuple):
    elements: list[Any]
    resumes: bool  # its first element is the rest of the piece before


def bodies(request: Request) -> tuple[Cut, list[tuple[Any, bool]]] | None:
    """The bodies of a request's pieces, each with whether it resumes the last element of the one before. Return None
    if the request is small enough to be handled at once."""
    for cut in CUTS.get(ApiKey(request.api_key), ()):
        elements = getattr(request.body, cut.asked[0])
        if elements and _exceeds(elements, cut):
            pieces = _pieces(_folded(elements, cut), cut.asked[1:], cut)
            return cut, [(_with(request.body, cut.asked[0], piece.elements), piece.resumes) for piece in pieces]
    return None


def handle_in_pieces(
    broker: Broker, request: Request, handler: Handler, cut: Cut, pieces: Sequence[tuple[Any, bool]], now_ms: int
) -> Steps[None]:
    """Hand the pieces to the handler, and answer the request when all of them are answered."""
    waiting = request.without_body()
    responses: list[Any] = [None] * len(pieces)
    left, throttle_ms, is_closing = len(pieces), 0, False

    def respond(index: int, response: Any, pause_ms: int, close: bool) -> None:
        nonlocal left, throttle_ms, is_closing
        responses[index] = response
        left -= 1
        throttle_ms, is_closing = max(throttle_ms, pause_ms), is_closing or close
        if left:
            return
        if is_closing or any(one is None for one in responses):
            broker.reply_nothing(waiting, throttle_ms, close=is_closing)
        else:
            whole = _joined(responses, [resumes for _, resumes in pieces], cut)
            broker.answer(waiting, whole, broker.publisher.now_ms, throttle_ms)

    for index, (body, _) in enumerate(pieces):
        part = request._replace(body=body, respond=partial(respond, index))
        try:
            response = handler(broker, part, now_ms)
        except KafkaError as error:
            broker.refusals.error(part, error, now_ms)
        else:
            if response is not None:
                broker.answer(part, response, now_ms)
        now_ms = yield


# Cutting


def _exceeds(elements: Sequence[Any], cut: Cut) -> bool:
    room = cut.size
    if len(elements) > room:
        return True
    if len(cut.asked) == 1 and cut.weight is None:
        return False
    for element in elements:
        room -= _weight(element, cut.asked[1:], cut)
        if room < 0:
            return len(elements) > 1 or len(cut.asked) > 1
    return False


def _weight(element: Any, path: tuple[str, ...], cut: Cut) -> int:
    """How many elements of the innermost array an element holds; one at least."""
    if not path:
        return 1 if cut.weight is None else max(getattr(element, cut.weight), 1)
    inner = getattr(element, path[0])
    if not inner:
        return 1
    return len(inner) if len(path) == 1 else sum(_weight(one, path[1:], cut) for one in inner)


def _folded(elements: Sequence[Any], cut: Cut) -> list[Any]:
    """The elements without those of one name that are too many; the others of a name stand together."""
    if cut.keys is None or not cut.repeats:
        return list(elements)
    by_name: dict[Any, list[Any]] = {}
    for element in elements:
        name = tuple(getattr(element, key) for key in cut.keys) if cut.keys else element
        same = by_name.setdefault(name, [])
        if len(same) < cut.repeats:
            same.append(element)
    return [element for same in by_name.values() for element in same]


def _pieces(elements: list[Any], path: tuple[str, ...], cut: Cut) -> Iterator[_Piece]:
    """Parts of an array, each with `cut.size` elements of the innermost array at most, unless one element has more."""
    gathered: list[Any] = []
    room = cut.size
    for index, element in enumerate(elements):
        weight = _weight(element, path, cut)
        belongs = cut.keys is not None and index > 0 and _same_name(elements[index - 1], element, cut)
        if gathered and weight > room and not belongs:
            yield _Piece(gathered, resumes=False)
            gathered, room = [], cut.size
        if path and weight > cut.size:
            for number, inner in enumerate(_pieces(getattr(element, path[0]), path[1:], cut)):
                yield _Piece([_with(element, path[0], inner.elements)], resumes=number > 0)
            continue
        gathered.append(element)
        room -= weight
    if gathered:
        yield _Piece(gathered, resumes=False)


def _same_name(one: Any, other: Any, cut: Cut) -> bool:
    if not cut.keys:
        return bool(one == other)
    return all(getattr(one, key) == getattr(other, key) for key in cut.keys)


def _with(struct: Any, attribute: str, elements: list[Any]) -> Any:
    """A copy of a struct that has these elements in one of its arrays."""
    made = copy(struct)
    setattr(made, attribute, elements)
    return made


# Joining


def _joined(responses: Sequence[Any], resumes: Sequence[bool], cut: Cut) -> Any:
    """One response with the elements of all."""
    whole = responses[0]
    array, *inner = cut.answered
    elements = list(getattr(whole, array))
    for response, is_rest in zip(responses[1:], resumes[1:], strict=True):
        more = getattr(response, array)
        if is_rest and inner and elements and more:
            getattr(elements[-1], inner[0]).extend(getattr(more[0], inner[0]))
            more = more[1:]
        elements.extend(more)
    setattr(whole, array, elements)
    return whole
