"""ClusterClient: sends requests to a cluster, to the right broker, with retries.

    with ClusterClient("localhost:9092") as cluster:
        cluster.topic("orders").partitions
        cluster.ask_any(DescribeClusterRequest())

The client keeps one connection per broker, and caches brokers, topics and leaders until they are out of date. A request
with a retriable error is retried until its time is over; then the last error is raised. But if no broker answers the
first request, the error is raised at once, and a *change* that may have been carried out is never retried.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from tailrace.client.cluster.metadata import (
    NO_LEADER,
    Broker,
    ClusterMetadata,
    TopicMetadata,
    read_brokers,
    read_topic,
)
from tailrace.client.errors import ClientError, Refused, UnknownBroker, UnknownTopic, Unreachable
from tailrace.client.network.address import Address
from tailrace.client.network.bootstrap import parse_bootstrap
from tailrace.client.network.connection import Connection, Ticket
from tailrace.client.network.connections import Connections
from tailrace.client.network.retry_budget import Clock, RetryBudget, SystemClock
from tailrace.client.network.sockets import OpenSocket
from tailrace.client.settings import ClientSettings
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import BrokerId, LeaderEpoch, TopicPartition
from tailrace.protocol.message import Message
from tailrace.protocol.messages import MetadataRequest, MetadataResponse

T = TypeVar("T")


class LedPartition(NamedTuple):
    """A partition with the fields that a request to its leader needs."""

    partition: TopicPartition
    topic_id: bytes
    leader_epoch: LeaderEpoch


class PartitionAnswer(NamedTuple):
    """The response of a leader for one partition: a value, or an error."""

    partition: TopicPartition
    value: Any
    error: ClientError | None = None


class ClusterClient:
    def __init__(
        self,
        bootstrap: str | tuple[Address, ...],
        settings: ClientSettings | None = None,
        *,
        open_socket: OpenSocket | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Create the client. It connects with the first request. It is not thread-safe."""
        self.bootstrap: tuple[Address, ...] = (
            parse_bootstrap(bootstrap) if isinstance(bootstrap, str) else tuple(bootstrap)
        )
        self.settings = settings or ClientSettings()
        self._clock = clock or SystemClock()
        self._connections = Connections(self.settings, open_socket, self._clock)
        self._known: ClusterMetadata | None = None
        self._topics: dict[str, TopicMetadata] = {}

    def __enter__(self) -> ClusterClient:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._connections.close()

    @property
    def is_connected(self) -> bool:
        """Return True if a connection to a broker is open, as far as is known without a request."""
        return bool(self._connections.usable())

    def forget_topics(self) -> None:
        """Drop the cached topics, so that they are queried again when needed."""
        self._topics.clear()

    def retry_budget(self, budget_ms: int | None = None) -> RetryBudget:
        """Start the time limit of one request and its retries."""
        return RetryBudget(self.settings, self._clock, budget_ms=budget_ms)

    # ------------------------------------------------------------------------------------------------------- metadata

    @property
    def metadata(self) -> ClusterMetadata:
        """Brokers and controller, queried once."""
        if self._known is None:
            self.refresh(())
        assert self._known is not None
        return self._known

    def topics(self) -> list[TopicMetadata]:
        """Query all topics, and return them sorted by name."""
        answer = self.refresh(None)
        failed = [topic for topic in answer.topics if topic.error_code]
        if failed:
            raise Refused(str(failed[0].name), failed[0].error_code)
        return sorted((read_topic(topic) for topic in answer.topics), key=lambda topic: topic.name)

    def topic(self, name: str, *, fresh: bool = False) -> TopicMetadata:
        """Return a topic, from the cache unless `fresh`. Raise UnknownTopic after unknown_topic_grace_ms."""
        if fresh:
            self._topics.pop(name, None)
        self._load_topics([name], self.retry_budget())
        return self._topics[name]

    def _load_topics(self, names: Iterable[str], budget: RetryBudget) -> None:
        """Query the topics that are not cached, in one request, until all are known."""
        grace = self.retry_budget(min(self.settings.unknown_topic_grace_ms, self.settings.total_timeout_ms))
        wanted = list(dict.fromkeys(names))
        while missing := [name for name in wanted if name not in self._topics]:
            codes = {topic.name: topic.error_code for topic in self.refresh(missing, budget).topics}
            failed = [name for name in missing if name not in self._topics]
            for name in failed:
                code = codes.get(name, ErrorCode.UNKNOWN_SERVER_ERROR)
                if code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    error: ClientError = Refused(name, code)
                    if not error.is_retriable or not budget.pause():
                        raise error
                elif not grace.pause():
                    raise UnknownTopic(name)
                break

    def refresh(self, names: Iterable[str] | None, budget: RetryBudget | None = None) -> MetadataResponse:
        """Query brokers and these topics (None: all), and cache the response."""
        request = MetadataRequest(
            topics=None if names is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in names],
            allow_auto_topic_creation=False,
        )
        # Versions before 4 create missing topics.
        answer: MetadataResponse = self.retrying(
            lambda timeout_s: self.ask_any_once(request, timeout_s, version_min=4), budget
        )
        self._known = ClusterMetadata(answer.cluster_id, answer.controller_id, read_brokers(answer))
        for topic in answer.topics:
            if topic.error_code and topic.name is not None:
                self._topics.pop(topic.name, None)
            elif topic.name is not None:
                self._topics[topic.name] = read_topic(topic)
        return answer

    # ------------------------------------------------------------------------------------------------------- requests

    def ask_any(self, message: Message, *, version_min: int = 0, check: Callable[[Any], None] | None = None) -> Any:
        """Send a request to any broker. `check` raises an error for an error response."""

        def ask(timeout_s: float) -> Any:
            answer = self.ask_any_once(message, timeout_s, version_min=version_min)
            if check is not None:
                check(answer)
            return answer

        return self.retrying(ask)

    def ask_node(
        self, node_id: BrokerId, message: Message, *, version_min: int = 0, check: Callable[[Any], None] | None = None
    ) -> Any:
        """Send a request to one broker. `check` raises an error for an error response."""

        def ask(timeout_s: float) -> Any:
            answer = self.connection_to(node_id).request(message, timeout_s=timeout_s, version_min=version_min)
            if check is not None:
                check(answer)
            return answer

        return self.retrying(ask)

    def change(
        self, message: Message, check: Callable[[Any], None], *, version_min: int = 0, node_id: BrokerId | None = None
    ) -> Any:
        """Send a change to the controller, or to one broker. `check` raises an error for an error response."""

        def ask(timeout_s: float) -> Any:
            chosen = self.metadata.controller_id if node_id is None else node_id
            if chosen in self.metadata.brokers or node_id is not None:
                answer = self.connection_to(chosen).request(message, timeout_s=timeout_s, version_min=version_min)
            else:
                answer = self.ask_any_once(message, timeout_s, version_min=version_min, is_change=True)
            check(answer)
            return answer

        return self.retrying(ask, is_change=True)

    def ask_leaders(
        self,
        partitions: Iterable[TopicPartition],
        build: Callable[[list[LedPartition]], Message],
        read: Callable[[Any, list[LedPartition]], Iterable[PartitionAnswer]],
        *,
        version_min: int = 0,
        version_max: int | None = None,
        version_max_without_ids: int | None = None,
        wait_ms: int = 0,
        budget: RetryBudget | None = None,
        errors_are_values: bool = False,
    ) -> dict[TopicPartition, Any]:
        """Send one request to each leader of the partitions, and retry until every partition has a value.

        With `errors_are_values` a final error is the partition's value; otherwise the first one is raised. Topics
        without an id need a version up to `version_max_without_ids`. `wait_ms` is added to the timeout of a response.
        """
        budget = budget or self.retry_budget()
        values: dict[TopicPartition, Any] = {}
        wanted = pending = list(dict.fromkeys(partitions))
        while True:
            timeout_s = self._response_timeout_s(budget, wait_ms)
            errors: dict[TopicPartition, ClientError] = {}
            for partition, value, error in self._ask_leaders_once(
                pending, build, read, (version_min, version_max, version_max_without_ids), timeout_s, budget
            ):
                if error is None:
                    values[partition] = value
                else:
                    errors[partition] = error
            final = {partition: error for partition, error in errors.items() if not error.is_retriable}
            if len(final) < len(errors) and not budget.pause():
                final = errors
            if final and not errors_are_values:
                raise next(iter(final.values()))
            values |= final
            pending = [partition for partition in pending if partition not in values]
            if not pending:
                return {partition: values[partition] for partition in wanted}
            for topic in {partition.topic for partition in pending}:
                self._topics.pop(topic, None)

    def _ask_leaders_once(
        self,
        partitions: list[TopicPartition],
        build: Callable[[list[LedPartition]], Message],
        read: Callable[[Any, list[LedPartition]], Iterable[PartitionAnswer]],
        bounds: tuple[int, int | None, int | None],
        timeout_s: float,
        budget: RetryBudget,
    ) -> Iterator[PartitionAnswer]:
        """Send one request to each leader, then read the responses."""
        groups, leaderless = self._by_leader(partitions, budget)
        yield from leaderless
        asked: list[tuple[Connection, Ticket, list[LedPartition]]] = []
        unread: list[Connection] = []
        try:
            for node_id, group in groups.items():
                version_min, version_max, version_max_without_ids = bounds
                if version_max is None and not self._have_ids(group):
                    version_max = version_max_without_ids
                try:
                    connection = self.connection_to(node_id)
                    ticket = connection.send(build(group), version_min=version_min, version_max=version_max)
                except ClientError as error:
                    yield from (PartitionAnswer(leader.partition, None, error) for leader in group)
                    continue
                asked.append((connection, ticket, group))
                unread.append(connection)
            for connection, ticket, group in asked:
                try:
                    answer = connection.receive(ticket, timeout_s)
                except ClientError as error:
                    yield from (PartitionAnswer(leader.partition, None, error) for leader in group)
                    continue
                finally:
                    unread.remove(connection)
                yield from _complete(read(answer, group), group, str(connection.address))
        finally:
            for connection in unread:
                connection.close()

    def send_to_leaders(
        self,
        partitions: Iterable[TopicPartition],
        build: Callable[[list[LedPartition]], Message],
        *,
        version_min: int = 0,
        version_max_without_ids: int | None = None,
    ) -> None:
        """Send a request without a response to each leader. It is not known if the request arrives."""
        groups, leaderless = self._by_leader(list(dict.fromkeys(partitions)), self.retry_budget())
        for _, _, error in leaderless:
            assert error is not None
            raise error
        for node_id, group in groups.items():
            version_max = None if self._have_ids(group) else version_max_without_ids
            self.connection_to(node_id).send_unanswered(build(group), version_min=version_min, version_max=version_max)

    def _have_ids(self, leaders: list[LedPartition]) -> bool:
        return all(self._topics[leader.partition.topic].has_id for leader in leaders)

    def _by_leader(
        self, partitions: list[TopicPartition], budget: RetryBudget
    ) -> tuple[dict[BrokerId, list[LedPartition]], list[PartitionAnswer]]:
        groups: dict[BrokerId, list[LedPartition]] = defaultdict(list)
        leaderless = []
        self._load_topics((partition.topic for partition in partitions), budget)
        for partition in partitions:
            topic = self._topics[partition.topic]
            if partition.partition >= len(topic.partitions):
                topic = self.topic(partition.topic, fresh=True)  # partitions may have been added
            found = topic.partition(partition.partition)
            if found.leader == NO_LEADER or found.leader not in self.metadata.brokers:
                refusal = Refused(str(partition), ErrorCode.LEADER_NOT_AVAILABLE, "the partition has no leader")
                leaderless.append(PartitionAnswer(partition, None, refusal))
            else:
                groups[found.leader].append(LedPartition(partition, topic.topic_id, found.leader_epoch))
        return groups, leaderless

    # ---------------------------------------------------------------------------------------------------- connections

    def retrying(self, ask: Callable[[float], T], budget: RetryBudget | None = None, *, is_change: bool = False) -> T:
        """Call `ask` with the response timeout in seconds, until it succeeds or the time is over."""
        budget = budget or self.retry_budget()
        while True:
            had_metadata = self._known is not None
            try:
                return ask(self._response_timeout_s(budget))
            except ClientError as error:
                if not error.is_retriable or (is_change and error.is_ambiguous):
                    raise
                if isinstance(error, Unreachable) and not had_metadata:
                    raise
                if not budget.pause():
                    raise
            if is_change:
                self.refresh((), budget)  # the controller may have changed

    def _response_timeout_s(self, budget: RetryBudget, wait_ms: int = 0) -> float:
        """Return the timeout of one response: the request timeout, limited by the remaining time."""
        return max(0.001, min((self.settings.request_timeout_ms + wait_ms) / 1000, budget.remaining_s))

    def ask_any_once(
        self,
        message: Message,
        timeout_s: float,
        *,
        version_min: int = 0,
        version_max: int | None = None,
        is_change: bool = False,
    ) -> Any:
        """Try connected brokers, then other known ones, then bootstrap addresses, until one responds."""
        last: ClientError | None = None
        for address, node_id in self._candidates().items():
            try:
                connection = self._connections.get(address, node_id)
                return connection.request(
                    message, timeout_s=timeout_s, version_min=version_min, version_max=version_max
                )
            except ClientError as error:
                may_try_next = isinstance(error, Unreachable) or error.is_retriable
                if not may_try_next or (is_change and error.is_ambiguous):
                    raise
                last = error
        assert last is not None
        raise last

    def _candidates(self) -> dict[Address, BrokerId | None]:
        found = self._connections.usable()
        for broker in self._known.brokers.values() if self._known else ():
            found.setdefault(broker.address, broker.node_id)
        for address in self.bootstrap:
            found.setdefault(address, None)
        return found

    def connection_to(self, node_id: BrokerId) -> Connection:
        broker = self._broker(node_id)
        return self._connections.get(broker.address, node_id)

    def _broker(self, node_id: BrokerId) -> Broker:
        if node_id not in self.metadata.brokers:
            self.refresh(())
        broker = self.metadata.brokers.get(node_id)
        if broker is None:
            raise UnknownBroker(node_id, self.metadata.brokers)
        return broker


def _complete(answers: Iterable[PartitionAnswer], asked: list[LedPartition], broker: str) -> Iterator[PartitionAnswer]:
    """Yield the answers for the requested partitions, and an error for a partition that the broker omitted."""
    left = {leader.partition for leader in asked}
    for answer in answers:
        if answer.partition in left:
            left.remove(answer.partition)
            yield answer
    reason = f"{broker} omitted the partition from its response"
    for partition in left:
        yield PartitionAnswer(partition, None, Refused(str(partition), ErrorCode.UNKNOWN_SERVER_ERROR, reason))
