"""Broker: requests in, replies out. Nothing here knows a socket, a thread or a clock.

    handle(frame, context, now_ms)    a client's request; its reply may be there at once, or come later
    tick(now_ms)                      deadlines pass, housekeeping that is due is done
    take_replies()                    what there is to send

A client's bad input costs that client its connection at most: `handle` never raises for it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from tailrace.broker.api_table import API_TABLE, Handler
from tailrace.broker.cluster.forwarding import FORWARDED, Forwarding
from tailrace.broker.cluster.transaction_peers import TransactionPeers
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.coordination.coordinator_topics import SHARE_GROUP_STATE, ensure_topic
from tailrace.broker.coordination.coordinators import Coordinators
from tailrace.broker.coordination.groups import Groups
from tailrace.broker.coordination.transactions import Transactions
from tailrace.broker.long_requests import LongRequests, request_of
from tailrace.broker.quick_requests import QuickHandler, quick_handler
from tailrace.broker.refusals import Refusals
from tailrace.broker.request_context import ConnectionContext, Reply, Request
from tailrace.broker.request_pieces import CUTS, cut_of, handle_in_pieces
from tailrace.broker.request_work import RequestWork
from tailrace.broker.security.authorizer import AclResource, AllowAll, Authorizer, Operation
from tailrace.broker.security.guard import Guard
from tailrace.broker.shares.share_state import ShareStates
from tailrace.broker.shares.shares import Shares
from tailrace.broker.storage.cleaning import LogCleaning, Work
from tailrace.broker.storage.directory_moves import DirectoryMoves
from tailrace.broker.storage.housekeeping import Housekeeping
from tailrace.broker.storage.image_publisher import ImagePublisher
from tailrace.broker.throttling import Throttling
from tailrace.broker.timed_parts import TimedParts
from tailrace.diagnostics.internal_errors import InternalErrors
from tailrace.fetch.fetches import Fetches
from tailrace.log.directories.log_directories import LogDirectories
from tailrace.log.directories.log_directory import LoadReport
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.metadata.image.image import MetadataImage
from tailrace.metrics.families import Family
from tailrace.metrics.histogram import Histogram
from tailrace.model.errors import KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.protocol.api_keys import api
from tailrace.protocol.error_codes import error_counter
from tailrace.protocol.errors import ProtocolError, UnwritableMessage
from tailrace.protocol.headers import read_request_header, write_response
from tailrace.protocol.primitives import Buffer
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.waiting.outbox import Outbox
from tailrace.waiting.purgatory import DelayedOperation, Purgatory

if TYPE_CHECKING:
    from tailrace.broker.cluster.replication import Replication
    from tailrace.broker.metrics.client_telemetry import ClientTelemetry
    from tailrace.broker.quick_produce import QuickProduce
    from tailrace.broker.waiting_produce import Run

_log = logging.getLogger(__name__)


class Broker:
    def __init__(
        self,
        config: BrokerConfig,
        controller: Controller,
        logs: LogDirectories,
        partitions: HostedPartitions,
        publisher: ImagePublisher,
        purgatory: Purgatory,
        fetches: Fetches,
        housekeeping: Housekeeping,
        cleaning: LogCleaning | None = None,
        authorizer: Authorizer | None = None,
        *,
        moves: DirectoryMoves,
        throttling: Throttling,
        coordinators: Coordinators,
        groups: Groups,
        transactions: Transactions,
        share_states: ShareStates,
        shares: Shares,
        outbox: Outbox,
        submit: Callable[[Work], None],
        is_turn_over: Callable[[], bool],
    ) -> None:
        """Made of its parts by `startup.open_broker`."""
        self.config = config
        self.controller = controller
        self.logs = logs
        self.partitions = partitions
        self.publisher = publisher
        self.purgatory = purgatory
        self.fetches = fetches
        self.housekeeping = housekeeping
        self.cleaning = cleaning
        self.authorizer = authorizer or AllowAll()
        self.moves = moves
        self.throttling = throttling
        self.coordinators = coordinators
        self.groups = groups
        self.transactions = transactions
        self.share_states = share_states
        self.shares = shares
        groups.appended = transactions.appended = share_states.appended = self.appended
        share_states.ensure_topic = lambda now_ms: ensure_topic(self, SHARE_GROUP_STATE, now_ms)
        self.node_id = controller.node_id
        self.outbox = outbox  # requests to other nodes
        self.guard: Guard | None = None  # where clients have to say who they are
        self.forwarding: Forwarding | None = None  # where the controller is another node
        self.transaction_peers: TransactionPeers | None = None  # where there may be other brokers
        self.replication: Replication | None = None  # where there may be other brokers
        self.telemetry: ClientTelemetry | None = None  # where clients may push their metrics
        self.rows = API_TABLE  # what is served
        self._handlers: dict[int, Handler] = {}
        self._quick: dict[int, QuickHandler] = {}  # by the second byte of a request, the API's key
        self._replies: list[Reply] = []
        self.unsettled: QuickProduce | None = None  # who has collected requests and not carried them out
        self.runs: dict[int, Run] = {}  # requests of a connection that wait for the replicas of one partition
        self._parked: dict[int, DelayedOperation] = {}  # what each connection's request waits as
        self._appended: dict[TopicPartition, int] = {}  # since replies were last taken, and when
        self.internal_errors = InternalErrors(_log)
        self.refusals = Refusals(self)
        self.long_requests = LongRequests(self, submit, is_turn_over)
        self._long = self.long_requests.connections
        self.request_work = RequestWork(self, submit)
        purgatory.on_error = self._operation_failed
        self.timed_parts = TimedParts(self.internal_errors)
        add_part = self.timed_parts.add
        add_part("the purgatory", purgatory.expire, purgatory.next_deadline_ms)
        add_part("the coordinators", coordinators.tick, coordinators.next_deadline_ms)
        add_part("share groups", shares.tick, shares.next_deadline_ms)
        add_part("housekeeping", housekeeping.tick, housekeeping.next_deadline_ms)
        if cleaning is not None:
            add_part("log cleaning", cleaning.tick, cleaning.next_deadline_ms)
        add_part("directory moves", moves.tick, moves.next_deadline_ms)
        add_part("the controller", controller.tick, controller.next_deadline_ms)
        add_part("long requests", self.long_requests.tick, self.long_requests.next_deadline_ms)
        self.log_flushes: Histogram | None = None  # how long they took; of whoever has a clock
        self.load_reports: Sequence[LoadReport] = ()  # what opening the directories found
        self.errors: dict[int, defaultdict[int, int]] = {}  # by API: how often a code was told, NONE as well

    @property
    def image(self) -> MetadataImage:
        """The metadata as it is now."""
        return self.controller.image

    @property
    def local_controller(self) -> LocalController:
        """Who decides, where that is this node; elsewhere requests for it are forwarded and come to no handler."""
        assert isinstance(self.controller, LocalController), "the controller is another node"
        return self.controller

    def allows(self, request: Request, operation: Operation, resource: AclResource, name: str) -> bool:
        context = request.context
        return self.authorizer.allows(context.principal, context.client_host, operation, resource, name)

    def sees(self, request: Request, operation: Operation, resource: AclResource, name: str) -> bool:
        """As `allows`, where a denial is no news."""
        context = request.context
        return self.authorizer.sees(context.principal, context.client_host, operation, resource, name)

    # Requests

    def handle(self, frame: Buffer, context: ConnectionContext, now_ms: int) -> bool:
        """Take one request, without the size in front of it; whether its reply waits for what else the round brings."""
        if self.runs and len(frame) > 1 and (run := self.runs.get(context.connection_id)) is not None:
            return run.take(frame, now_ms)
        quick = self._quick.get(frame[1]) if len(frame) > 1 and not self.throttling.is_on else None
        if quick is None or not quick(frame, context, now_ms):
            self.handle_generally(frame, context, now_ms)
        return self.unsettled is not None

    def handle_guarded(self, frame: memoryview, context: ConnectionContext, now_ms: int) -> bool:
        """As `handle`, for a client that has to say who it is."""
        assert self.guard is not None, "there is no listener for clients that have to"
        return self.guard.handle(frame, context, now_ms)

    def handle_generally(self, frame: Buffer, context: ConnectionContext, now_ms: int) -> None:
        """Handle a request that no fast path has taken."""
        self.settle()
        try:
            header, position = read_request_header(frame)
            row = self.rows.get(header.api_key)
            if row is None or not row.min_version <= header.api_version <= row.max_version:
                self.refusals.version(header, context, now_ms)
                return
            body = self.long_requests.decode(frame, header, position, context)
        except ProtocolError as error:
            self.refusals.malformed(context, error, now_ms)
            return
        if body is not None:
            self.dispatch(request_of(header, context, body, now_ms, len(frame)), now_ms)

    def dispatch(self, request: Request, now_ms: int) -> None:
        """Give a decoded request to its handler, or to the controller that decides on it."""
        key = request.api_key
        if self.forwarding is not None and key in FORWARDED:
            self.forwarding.forward(request, now_ms)
            return
        handler = self._handlers.get(key)
        if handler is None:
            handler = self._handlers[key] = self.rows[key].load()
            quick = quick_handler(self, key)
            if quick is not None:
                self._quick[key] = quick
        self.begin_request(request, now_ms)
        if key in CUTS and (cut := cut_of(request)) is not None:
            self.long_requests.start(request, handle_in_pieces(self, request, handler, cut, now_ms), now_ms)
            return
        try:
            outcome = handler(self, request, now_ms)
        except KafkaError as error:
            self.refusals.error(request, error, now_ms)
            return
        if isinstance(outcome, GeneratorType):
            self.long_requests.start(request, outcome, now_ms)
        else:
            self.finish(request, outcome, now_ms)

    def begin_request(self, request: Request, now_ms: int) -> None:
        """A handler begins to work on a request, or resumes."""
        self.publisher.now_ms = now_ms
        if self.throttling.is_on:
            self.throttling.begin(request.context.connection_id)

    def finish(self, request: Request, response: Any, now_ms: int) -> None:
        """Send what a handler has returned; None if the response comes later or there is none."""
        if response is not None:
            self.answer(request, response, now_ms)
        elif self.throttling.is_on:
            self.throttling.end()

    def request_failed(self, request: Request, error: Exception, now_ms: int) -> None:
        """A handler that had paused has raised: refuse its request, or close the connection if that is a bug."""
        try:
            if not isinstance(error, KafkaError):
                raise error
            self.refusals.error(request, error, now_ms)
        except Exception as unexpected:
            self.reply_nothing(request, close=True)
            self.internal_errors.survive("a request", unexpected, now_ms, api=api(request.api_key).name)

    # Replies

    def answer(self, request: Request, response: Any, now_ms: int, throttle_ms: int = 0) -> None:
        """Answer a request, now or later. Its connection pauses for its time, or for as long as is said."""
        if self.throttling.is_on and request.respond is None:
            throttle_ms = max(throttle_ms, self.throttling.of_request(request, now_ms))
        self.reply(request, response, throttle_ms)

    def reply(self, request: Request, response: Any, throttle_ms: int = 0) -> None:
        """Answer a request of which it is known what quotas ask."""
        if request.respond is not None:
            request.respond(response, throttle_ms, False)
            return
        if throttle_ms and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = throttle_ms
        if self._long and request.context.connection_id in self._long:
            self.long_requests.encode(request, response, throttle_ms)
            return
        error_counter(response.__class__)(response, self.errors_of(request.api_key))
        try:
            parts = write_response(request.api_key, request.version, request.correlation_id, response)
        except UnwritableMessage as error:
            self.refusals.unwritable(request, error, self.publisher.now_ms)
            return
        self.put(Reply(request.context.connection_id, parts, throttle_ms))

    def errors_of(self, api_key: int) -> defaultdict[int, int]:
        """How often each error code was told in answers of an API."""
        codes = self.errors.get(api_key)
        if codes is None:
            codes = self.errors[api_key] = defaultdict(int)
        return codes

    def reply_nothing(self, request: Request, throttle_ms: int = 0, *, close: bool = False) -> None:
        """The request wants no answer; the connection may go on, or has to be closed to tell the client something."""
        if request.respond is not None:
            request.respond(None, throttle_ms, close)
            return
        self.put(Reply(request.context.connection_id, None, throttle_ms, close))

    def put(self, reply: Reply) -> None:
        """A reply that is ready to be sent."""
        if self._parked:
            self._parked.pop(reply.connection_id, None)
        if self._long:
            self.long_requests.ended(reply.connection_id)
        self._replies.append(reply)

    def settle(self) -> None:
        """Carry out what is collected for one write: before replies are taken, and before anything else is done."""
        if self.unsettled is not None:
            self.unsettled.settle()

    def take_replies(self) -> list[Reply]:
        self.settle()
        while self._appended:
            appended, self._appended = self._appended, {}
            for key, now_ms in appended.items():
                self.purgatory.check(key, now_ms)
        replies, self._replies = self._replies, []
        return replies

    # What handlers share

    def parked(self, context: ConnectionContext, operation: DelayedOperation) -> None:
        """A request waits as this operation, which goes with its connection. It must not keep the request's body."""
        self._parked[context.connection_id] = operation

    def _operation_failed(self, operation: DelayedOperation, error: Exception, now_ms: int) -> None:
        """A delayed operation has raised and waits no longer: close the connection whose request it was."""
        for connection_id in [one for one, parked in self._parked.items() if parked is operation]:
            self.put(Reply(connection_id, None, close=True))
        self.internal_errors.survive("a delayed operation", error, now_ms, operation=type(operation).__name__)

    def appended(self, key: TopicPartition, now_ms: int) -> None:
        """Records were appended, or the high watermark has moved: whoever waits for that may go on. That is looked at
        when the replies are taken, so that one who waits gets what all requests of a round have brought."""
        self._appended[key] = now_ms

    def measures(self, now_ms: int) -> Iterator[Family]:
        """What there is to tell Prometheus; families may be taken one at a time, with other work in between."""
        from tailrace.broker.metrics.measures import broker_families

        return broker_families(self, now_ms)

    def explain_fetch(self, wish: Mapping[str, str], now_ms: int, answer: Callable[[dict[str, Any]], None]) -> None:
        """Carry out a fetch and tell how, now or when it has waited long enough; ValueError for what is none."""
        from tailrace.broker.requests.data.fetch_explanation import start_explained_fetch

        start_explained_fetch(self, wish, now_ms, answer)

    # Time

    def note_time(self, now_ms: int) -> None:
        """What is carried out next happens now."""
        self.publisher.now_ms = now_ms

    def tick(self, now_ms: int) -> None:
        """Do what is due."""
        self.settle()
        self.publisher.now_ms = now_ms
        self.timed_parts.tick(now_ms)

    def next_deadline_ms(self) -> int | None:
        """Return when to tick next."""
        return self.timed_parts.next_deadline_ms()

    def connection_hold_off_ms(self, host: str, now_ms: int) -> int:
        """An address has connected; how long to hold it off, 0 if it is welcome."""
        quota = self.throttling.connection
        return quota.record(host, now_ms) if quota.is_enabled else 0

    def connection_closed(self, connection_id: int) -> None:
        """The client is gone: what it waited for is not waited for any more. What it has changed stays."""
        self.throttling.forget(connection_id)
        self.long_requests.connection_closed(connection_id)
        self.request_work.connection_closed(connection_id)
        self.runs.pop(connection_id, None)
        operation = self._parked.pop(connection_id, None)
        if operation is not None:
            self.purgatory.cancel(operation)
        self.shares.connection_closed(connection_id, self.publisher.now_ms)

    def prepare_stop(self, now_ms: int, ready: Callable[[], None]) -> None:
        """`ready` is called, now or later, when the broker may stop: what it leads is in other hands."""
        self.controller.prepare_stop(now_ms, ready)

    def close(self, now_ms: int) -> None:
        """A clean stop: everything durable, and noted as such."""
        self.publisher.now_ms = now_ms
        epoch = self.controller.stop_broker(now_ms)
        self.controller.close(now_ms)
        for directory in self.logs.directories:
            directory.close(now_ms, epoch)

    def abandon(self) -> None:
        """Let go of everything without writing anything, as a crash would."""
        self.controller.abandon()
        for directory in self.logs.directories:
            directory.abandon()
