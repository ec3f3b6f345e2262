"""Request pieces: large requests, handled one piece at a time.

The handlers of the APIs below handle each element of an array (topics, groups, …) independently. A request with more
elements than fit into a piece is cut into smaller requests, the pieces. The handler gets them one after the other, and
other clients are served in between (`long_requests.py`). The client gets one response with the elements of all pieces.

    CUTS                  by API: the arrays of request and response that belong together, and the size of a piece
    cut_of(…)             return how to cut a request, or None if it is small enough
    handle_in_pieces(…)   hand the pieces to the handler, as steps that can pause

Repeated names must not multiply the work. For an API with `Cut.repeats`, elements with the same name are dropped except
for the first `repeats`. Two are kept where the handler refuses repeated names.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple

from tailrace.broker.handling.handler_binding import Handler
from tailrace.broker.handling.refusals import Refusals
from tailrace.broker.replies import Replies
from tailrace.broker.requests.request_context import Request, Respond
from tailrace.metadata.controller.control_state import MAX_RECORDS
from tailrace.model.errors import KafkaError
from tailrace.model.steps import Steps
from tailrace.protocol.api_keys import ApiKey

NAME_BYTES = 256  # each NAME_BYTES of a name count as one element, because hashing a long name takes time


class Cut(NamedTuple):
    asked: tuple[str, ...]  # the path of arrays in the request: ("topics", "partitions")
    answered: tuple[str, ...]  # the path of arrays in the response that pieces extend
    size: int = 64  # elements of the innermost array in a piece
    keys: tuple[str, ...] | None = None  # the fields that name an element; (): the element itself is the name
    repeats: int = 0  # how many elements with the same name are kept; 0: all
    name: str | None = None  # the field of an outer element whose length counts (NAME_BYTES)
    weight: str | None = None  # the field of an element with the number of elements that it counts as
    total_max: int | None = None  # the handler refuses a request with more as a whole, so it is not cut


_TOPICS = Cut(("topics", "partitions"), ("topics", "partitions"))
_STATE = Cut(("topics", "partitions"), ("results", "partitions"))

CUTS: dict[ApiKey, tuple[Cut, ...]] = {
    ApiKey.LIST_OFFSETS: (_TOPICS,),
    ApiKey.METADATA: (Cut(("topics",), ("topics",), size=4),),
    ApiKey.OFFSET_FETCH: (
        Cut(("groups", "topics", "partition_indexes"), ("groups", "topics"), size=16, name="group_id"),
        Cut(("topics", "partition_indexes"), ("topics", "partitions"), size=512),
    ),
    ApiKey.FIND_COORDINATOR: (Cut(("coordinator_keys",), ("coordinators",)),),
    ApiKey.LEAVE_GROUP: (Cut(("members",), ("members",), size=256),),
    ApiKey.DESCRIBE_GROUPS: (Cut(("groups",), ("groups",), size=16, keys=(), repeats=1),),
    ApiKey.CREATE_TOPICS: (
        Cut(
            ("topics",), ("topics",), size=64, keys=("name",), repeats=2, weight="num_partitions", total_max=MAX_RECORDS
        ),
    ),
    ApiKey.DELETE_TOPICS: (
        Cut(("topics",), ("responses",), size=16, keys=("name", "topic_id"), repeats=2),
        Cut(("topic_names",), ("responses",), size=16, keys=(), repeats=2),
    ),
    ApiKey.DELETE_RECORDS: (_TOPICS,),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (_TOPICS,),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        Cut(
            ("transactions", "topics", "partitions"),
            ("results_by_transaction", "topic_results"),
            size=256,
            name="transactional_id",
        ),
        Cut(
            ("v3_and_below_topics", "partitions"),
            ("results_by_topic_v3_and_below", "results_by_partition"),
            size=256,
        ),
    ),
    ApiKey.WRITE_TXN_MARKERS: (Cut(("markers", "topics", "partition_indexes"), ("markers", "topics")),),
    ApiKey.TXN_OFFSET_COMMIT: (_TOPICS._replace(size=512),),
    ApiKey.CREATE_ACLS: (Cut(("creations",), ("results",)),),
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
    ApiKey.DESCRIBE_TRANSACTIONS: (Cut(("transactional_ids",), ("transaction_states",), size=16, keys=(), repeats=1),),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (Cut(("group_ids",), ("groups",), size=4, keys=(), repeats=1),),
    ApiKey.SHARE_GROUP_DESCRIBE: (Cut(("group_ids",), ("groups",), size=4, keys=(), repeats=1),),
    ApiKey.STREAMS_GROUP_DESCRIBE: (Cut(("group_ids",), ("groups",), size=4, keys=(), repeats=1),),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: (_STATE,),
    ApiKey.READ_SHARE_GROUP_STATE: (_STATE,),
    ApiKey.WRITE_SHARE_GROUP_STATE: (_STATE,),
    ApiKey.DELETE_SHARE_GROUP_STATE: (_STATE,),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: (_STATE,),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (
        Cut(("groups", "topics", "partitions"), ("groups", "topics"), name="group_id"),
    ),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: (Cut(("topics", "partitions"), ("responses", "partitions")),),
    ApiKey.ALTER_PARTITION: (_TOPICS,),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: (Cut(("directories", "topics", "partitions"), ("directories", "topics")),),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: (Cut(("topics",), ("responses",)),),
}


class _Piece(NamedTuple):
    elements: list[Any]
    resumes: bool  # its first element continues the last element of the previous piece


def cut_of(request: Request) -> Cut | None:
    """Return how to cut a request, or None if it is small enough to be handled at once."""
    for cut in CUTS.get(ApiKey(request.api_key), ()):
        elements = getattr(request.body, cut.asked[0])
        if elements and _exceeds(elements, cut):
            is_refused = cut.total_max is not None and _has_more_than(cut.total_max, elements, cut)
            return None if is_refused else cut
    return None


def handle_in_pieces(
    request: Request, handler: Handler, cut: Cut, now_ms: int, *, replies: Replies, refusals: Refusals
) -> Steps[None]:
    """Hand the pieces of a request to its handler, and respond when all pieces have their responses."""
    name, body = cut.asked[0], request.body
    elements = yield from _folded(getattr(body, name), cut)
    whole = _Whole(replies, request.without_body(), cut)
    for piece in _pieces(elements, cut.asked[1:], cut):
        part = request._replace(body=_with(body, name, piece.elements), respond=whole.expect(piece))
        try:
            response = handler(part, now_ms)
            if isinstance(response, Generator):
                response = yield from response
        except KafkaError as error:
            refusals.error(part, error, now_ms)
        else:
            if response is not None:
                replies.answer(part, response, now_ms)
        now_ms = yield
    whole.complete(now_ms)


class _Whole:
    """The response to a request that was cut. The responses to the pieces are joined to it in order."""

    def __init__(self, replies: Replies, request: Request, cut: Cut) -> None:
        self._replies = replies
        self._request = request
        self._array, *inner = cut.answered
        self._inner = inner[0] if inner else None
        self._response: Any = None
        self._pieces: deque[tuple[_Piece, list[Any]]] = deque()  # not joined yet, with their responses
        self._throttle_ms = 0
        self._is_silent = self._is_closing = self._is_complete = False

    def expect(self, piece: _Piece) -> Respond:
        """Return the function that receives the response to a piece."""
        responses: list[Any] = []
        self._pieces.append((piece, responses))

        def respond(response: Any, now_ms: int, throttle_ms: int, close: bool) -> None:
            responses.append(response)
            self._throttle_ms = max(self._throttle_ms, throttle_ms)
            self._is_closing = self._is_closing or close
            self._join(now_ms)

        return respond

    def complete(self, now_ms: int) -> None:
        """Note that the handler has all pieces. Respond if all of them have their responses."""
        self._is_complete = True
        self._join(now_ms)

    def _join(self, now_ms: int) -> None:
        while self._pieces and self._pieces[0][1]:
            piece, (response,) = self._pieces.popleft()
            if response is None:
                self._is_silent = True
            elif self._response is None:
                self._response = response
                setattr(response, self._array, list(getattr(response, self._array)))
            else:
                self._extend(getattr(response, self._array), resumes=piece.resumes)
        if self._pieces or not self._is_complete:
            return
        if self._is_silent or self._is_closing:
            self._replies.reply_nothing(self._request, now_ms, self._throttle_ms, close=self._is_closing)
        else:
            self._replies.answer(self._request, self._response, now_ms, self._throttle_ms)

    def _extend(self, more: Sequence[Any], *, resumes: bool) -> None:
        elements = getattr(self._response, self._array)
        if resumes and self._inner is not None and elements and more:
            getattr(elements[-1], self._inner).extend(getattr(more[0], self._inner))
            more = more[1:]
        elements.extend(more)


# Cutting


def _exceeds(elements: Sequence[Any], cut: Cut) -> bool:
    """Return True if the elements exceed one piece and can be cut."""
    if len(elements) > cut.size:
        return True
    return (len(elements) > 1 or len(cut.asked) > 1) and _has_more_than(cut.size, elements, cut)


def _has_more_than(limit: int, elements: Sequence[Any], cut: Cut) -> bool:
    """Return True if the elements weigh more than a limit."""
    total = 0
    for element in elements:
        total += _outer_weight(element, cut)
        if total > limit:
            return True
    return False


def _outer_weight(element: Any, cut: Cut) -> int:
    named = 0 if cut.name is None else len(getattr(element, cut.name)) // NAME_BYTES
    return named + _weight(element, cut.asked[1:], cut)


def _weight(element: Any, path: tuple[str, ...], cut: Cut) -> int:
    """Return the weight of an element: the elements of the innermost array that it contains or counts as, at least 1.

    Counting stops above the size of a piece.
    """
    if path:
        inner = getattr(element, path[0])
        if not inner:
            return 1
        if len(path) == 1:
            return len(inner)
        total = 0
        for one in inner:
            total += _weight(one, path[1:], cut)
            if total > cut.size:
                break
        return total
    if cut.weight is not None:
        return max(int(getattr(element, cut.weight)), 1)
    return 1 + len(element) // NAME_BYTES if isinstance(element, str) else 1


def _folded(elements: Sequence[Any], cut: Cut) -> Steps[list[Any]]:
    """Return the elements, at most `cut.repeats` with the same name. Elements with the same name are neighbours."""
    if cut.keys is None or not cut.repeats:
        return list(elements)
    by_name: dict[Any, list[Any]] = {}
    for index, element in enumerate(elements):
        name = tuple(getattr(element, key) for key in cut.keys) if cut.keys else element
        same = by_name.setdefault(name, [])
        if len(same) < cut.repeats:
            same.append(element)
        if index % 256 == 255:
            yield
    return [element for same in by_name.values() for element in same]


def _pieces(elements: list[Any], path: tuple[str, ...], cut: Cut) -> Iterator[_Piece]:
    """Yield parts of an array. A part weighs at most `cut.size`, unless a single element weighs more."""
    gathered: list[Any] = []
    room = cut.size
    for index, element in enumerate(elements):
        weight = _weight(element, path, cut) if path != cut.asked[1:] else _outer_weight(element, cut)
        belongs = cut.repeats > 1 and index > 0 and _same_name(elements[index - 1], element, cut)
        if gathered and weight > room and not belongs:
            yield _Piece(gathered, resumes=False)
            gathered, room = [], cut.size
        if path and _weight(element, path, cut) > cut.size:
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
    """Return a copy of a struct with other elements in one of its arrays."""
    made = copy(struct)
    setattr(made, attribute, elements)
    return made
