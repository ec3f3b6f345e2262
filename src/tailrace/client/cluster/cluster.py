"""ClusterClient: a cluster as one thing to ask.

    with ClusterClient("localhost:9092") as cluster:
        cluster.topic("orders").partitions
        cluster.ask_any(DescribeClusterRequest())

It keeps one connection a broker, and what it knows of brokers, topics and leaders until an answer shows that this is
out of date. A question is asked again, after a pause, when its error says that this may help, until the time for it is
over; the error told then is the last one. Two exceptions: when nobody answers at the very first, that is told at once;
and a *change* that may have been carried out already is never asked for again. It is not made for several threads.
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
from tailrace.client.network.patience import Clock, Patience, SystemClock
from tailrace.client.network.sockets import OpenSocket
from tailrace.client.settings import ClientSettings
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import BrokerId, LeaderEpoch, TopicPartition
from tailrace.protocol.message import Message
from tailrace.protocol.messages import MetadataRequest, MetadataResponse

T = TypeVar("T")


class LeaderOf(NamedTuple):
    """A partition, and what a request to its leader needs."""

    partition: TopicPartition
    topic_id: bytes
    leader_epoch: LeaderEpoch


class PartitionAnswer(NamedTuple):
    """What a leader said of one partition: a value, or an error."""

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
        """Nothing is sent before something is asked."""
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
        """Whether somebody was reached, and is there still as far as can be told without asking."""
        return bool(self._connections.usable())

    def forget_topics(self) -> None:
        """Ask for topics again when they are needed next."""
        self._topics.clear()

    def patience(self, budget_ms: int | None = None) -> Patience:
        """The time for one question, from now on."""
        return Patience(self.settings, self._clock, budget_ms=budget_ms)

    # ------------------------------------------------------------------------------------------------------- metadata

    @property
    def metadata(self) -> ClusterMetadata:
        """Brokers and controller; asked for once."""
        if self._known is None:
            self.refresh(())
        assert self._known is not None
        return self._known

    def topics(self) -> list[TopicMetadata]:
        """All topics, by name; always asked for."""
        answer = self.refresh(None)
        failed = [topic for topic in answer.topics if topic.error_code]
        if failed:
            raise Refused(str(failed[0].name), failed[0].error_code)
        return sorted((read_topic(topic) for topic in answer.topics), key=lambda topic: topic.name)

    def topic(self, name: str, *, fresh: bool = False) -> TopicMetadata:
        """A topic as it was last seen; UnknownTopic where there is none, a moment after the first try."""
        if fresh:
            self._topics.pop(name, None)
        self._find_out_about([name], self.patience())
        return self._topics[name]

    def _find_out_about(self, names: Iterable[str], patience: Patience) -> None:
        """Ask for the topics that are not known, all at once, until they are."""
        grace = self.patience(min(self.settings.unknown_topic_grace_ms, self.settings.total_timeout_ms))
        wanted = list(dict.fromkeys(names))
        while missing := [name for name in wanted if name not in self._topics]:
            codes = {topic.name: topic.error_code for topic in self.refresh(missing, patience).topics}
            failed = [name for name in missing if name not in self._topics]
            for name in failed:
                code = codes.get(name, ErrorCode.UNKNOWN_SERVER_ERROR)
                if code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    error: ClientError = Refused(name, code)
                    if not error.is_retriable or not patience.pause():
                        raise error
                elif not grace.pause():
                    raise UnknownTopic(name)
                break

    def refresh(self, names: Iterable[str] | None, patience: Patience | None = None) -> MetadataResponse:
        """Ask for brokers and these topics (None: all) anew, and remember the answer."""
        request = MetadataRequest(
            topics=None if names is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in names],
            allow_auto_topic_creation=False,
        )
        # Versions before 4 create the topics that they are asked about.
        answer: MetadataResponse = self.retrying(
            lambda timeout_s: self.ask_anyone(request, timeout_s, at_least=4), patience
        )
        self._known = ClusterMetadata(answer.cluster_id, answer.controller_id, read_brokers(answer))
        for topic in answer.topics:
            if topic.error_code and topic.name is not None:
                self._topics.pop(topic.name, None)
            elif topic.name is not None:
                self._topics[topic.name] = read_topic(topic)
        return answer

    # ------------------------------------------------------------------------------------------------------ questions

    def ask_any(self, message: Message, *, at_least: int = 0, check: Callable[[Any], None] | None = None) -> Any:
        """Ask whichever broker answers; `check` raises what is wrong with its answer."""

        def ask(timeout_s: float) -> Any:
            answer = self.ask_anyone(message, timeout_s, at_least=at_least)
            if check is not None:
                check(answer)
            return answer

        return self.retrying(ask)

    def ask_node(
        self, node_id: BrokerId, message: Message, *, at_least: int = 0, check: Callable[[Any], None] | None = None
    ) -> Any:
        """Ask one broker; `check` raises what is wrong with its answer."""

        def ask(timeout_s: float) -> Any:
            answer = self.connection_to(node_id).request(message, timeout_s=timeout_s, at_least=at_least)
            if check is not None:
                check(answer)
            return answer

        return self.retrying(ask)

    def change(
        self, message: Message, check: Callable[[Any], None], *, at_least: int = 0, node_id: BrokerId | None = None
    ) -> Any:
        """Ask the controller, or one broker, to change something; `check` raises what is wrong with its answer."""

        def ask(timeout_s: float) -> Any:
            chosen = self.metadata.controller_id if node_id is None else node_id
            if chosen in self.metadata.brokers or node_id is not None:
                answer = self.connection_to(chosen).request(message, timeout_s=timeout_s, at_least=at_least)
            else:
                answer = self.ask_anyone(message, timeout_s, at_least=at_least, is_change=True)
            check(answer)
            return answer

        return self.retrying(ask, is_change=True)

    def ask_leaders(
        self,
        partitions: Iterable[TopicPartition],
        build: Callable[[list[LeaderOf]], Message],
        read: Callable[[Any, list[LeaderOf]], Iterable[PartitionAnswer]],
        *,
        at_least: int = 0,
        at_most: int | None = None,
        at_most_without_ids: int | None = None,
        wait_ms: int = 0,
        patience: Patience | None = None,
        errors_are_values: bool = False,
    ) -> dict[TopicPartition, Any]:
        """Ask the leaders of partitions, each once for all of its own, until every partition has a value.

        The first error that asking again does not mend is raised, or else every such error is its partition's value.
        at_most_without_ids: the last version that knows topics by name, for topics that have no id. wait_ms: how long
        the broker may let us wait.
        """
        patience = patience or self.patience()
        values: dict[TopicPartition, Any] = {}
        wanted = pending = list(dict.fromkeys(partitions))
        while True:
            timeout_s = self._answer_time(patience, wait_ms)
            errors: dict[TopicPartition, ClientError] = {}
            for partition, value, error in self._ask_leaders_once(
                pending, build, read, (at_least, at_most, at_most_without_ids), timeout_s, patience
            ):
                if error is None:
                    values[partition] = value
                else:
                    errors[partition] = error
            final = {partition: error for partition, error in errors.items() if not error.is_retriable}
            if len(final) < len(errors) and not patience.pause():
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
        build: Callable[[list[LeaderOf]], Message],
        read: Callable[[Any, list[LeaderOf]], Iterable[PartitionAnswer]],
        bounds: tuple[int, int | None, int | None],
        timeout_s: float,
        patience: Patience,
    ) -> Iterator[PartitionAnswer]:
        """One request to each leader, all sent before the first answer is waited for."""
        groups, leaderless = self._by_leader(partitions, patience)
        yield from leaderless
        asked: list[tuple[Connection, Ticket, list[LeaderOf]]] = []
        unread: list[Connection] = []
        try:
            for node_id, group in groups.items():
                at_least, at_most, at_most_without_ids = bounds
                if at_most is None and not self._have_ids(group):
                    at_most = at_most_without_ids
                try:
                    connection = self.connection_to(node_id)
                    ticket = connection.send(build(group), at_least=at_least, at_most=at_most)
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

    def tell_leaders(
        self,
        partitions: Iterable[TopicPartition],
        build: Callable[[list[LeaderOf]], Message],
        *,
        at_least: int = 0,
        at_most_without_ids: int | None = None,
    ) -> None:
        """Send what leaders do not answer. Nobody can say whether it arrives."""
        groups, leaderless = self._by_leader(list(dict.fromkeys(partitions)), self.patience())
        for _, _, error in leaderless:
            assert error is not None
            raise error
        for node_id, group in groups.items():
            at_most = None if self._have_ids(group) else at_most_without_ids
            self.connection_to(node_id).send_unanswered(build(group), at_least=at_least, at_most=at_most)

    def _have_ids(self, leaders: list[LeaderOf]) -> bool:
        return all(self._topics[leader.partition.topic].has_id for leader in leaders)

    def _by_leader(
        self, partitions: list[TopicPartition], patience: Patience
    ) -> tuple[dict[BrokerId, list[LeaderOf]], list[PartitionAnswer]]:
        groups: dict[BrokerId, list[LeaderOf]] = defaultdict(list)
        leaderless = []
        self._find_out_about((partition.topic for partition in partitions), patience)
        for partition in partitions:
            topic = self._topics[partition.topic]
            if partition.partition >= len(topic.partitions):
                topic = self.topic(partition.topic, fresh=True)  # it may have got more since
            found = topic.partition(partition.partition)
            if found.leader == NO_LEADER or found.leader not in self.metadata.brokers:
                refusal = Refused(str(partition), ErrorCode.LEADER_NOT_AVAILABLE, "it has no leader")
                leaderless.append(PartitionAnswer(partition, None, refusal))
            else:
                groups[found.leader].append(LeaderOf(partition, topic.topic_id, found.leader_epoch))
        return groups, leaderless

    # ---------------------------------------------------------------------------------------------------- connections

    def retrying(self, ask: Callable[[float], T], patience: Patience | None = None, *, is_change: bool = False) -> T:
        """Ask, with the seconds there are for an answer, until there is one or the time is over."""
        patience = patience or self.patience()
        while True:
            was_connected = self._known is not None
            try:
                return ask(self._answer_time(patience))
            except ClientError as error:
                if not error.is_retriable or (is_change and error.is_ambiguous):
                    raise
                if isinstance(error, Unreachable) and not was_connected:
                    raise
                if not patience.pause():
                    raise
            if is_change:
                self.refresh((), patience)  # there may be another controller

    def _answer_time(self, patience: Patience, wait_ms: int = 0) -> float:
        """Seconds for one answer. A broker may be silent for all the time there is, but not for longer."""
        return max(0.001, min((self.settings.request_timeout_ms + wait_ms) / 1000, patience.remaining_s))

    def ask_anyone(
        self,
        message: Message,
        timeout_s: float,
        *,
        at_least: int = 0,
        at_most: int | None = None,
        is_change: bool = False,
    ) -> Any:
        """Ask those we are connected with, then the others we know, then where we began, until one answers."""
        last: ClientError | None = None
        for address, node_id in self._candidates().items():
            try:
                connection = self._connections.get(address, node_id)
                return connection.request(message, timeout_s=timeout_s, at_least=at_least, at_most=at_most)
            except ClientError as error:
                is_next_in_turn = isinstance(error, Unreachable) or error.is_retriable
                if not is_next_in_turn or (is_change and error.is_ambiguous):
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


def _complete(answers: Iterable[PartitionAnswer], asked: list[LeaderOf], who: str) -> Iterator[PartitionAnswer]:
    """The answers to what was asked; a partition that the broker left out gets an error."""
    left = {leader.partition for leader in asked}
    for answer in answers:
        if answer.partition in left:
            left.remove(answer.partition)
            yield answer
    for partition in left:
        error = Refused(str(partition), ErrorCode.UNKNOWN_SERVER_ERROR, f"{who} left it out of its answer")
        yield PartitionAnswer(partition, None, error)
