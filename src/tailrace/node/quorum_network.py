"""QuorumNetwork: the network of a broker that joins a cluster, before the server's loop runs.

It polls its own sockets until the broker has joined. Requests without a response are then sent again by the server's
loop. The heartbeat thread, which it starts, keeps running.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.client.errors import ClientError
from tailrace.client.network.address import Address
from tailrace.client.network.connection import Connection
from tailrace.client.settings import ClientSettings
from tailrace.metadata.controller.remote_controller import RemoteController
from tailrace.metadata.quorum.broker_lifecycle import BrokerLifecycle
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.topic_config import InvalidConfig
from tailrace.protocol.messages import DescribeClusterRequest
from tailrace.server.broker_interface import ServerFunctions
from tailrace.server.loop.clock import monotonic_ms, wall_clock_ms
from tailrace.server.loop.poll import open_poll
from tailrace.server.peers.heartbeats import Heartbeats
from tailrace.server.peers.outgoing_security import OutgoingSecurity, client_id_of, outgoing_security
from tailrace.server.peers.peers import Peers

if TYPE_CHECKING:
    from tailrace.client.security.token_login import TokenLogin

_CONTROLLERS = 2  # an endpoint type of DescribeCluster
_log = logging.getLogger(__name__)


class QuorumNetwork:
    def __init__(
        self, config: BrokerConfig, server_functions: ServerFunctions, clock_ms: Callable[[], int] = wall_clock_ms
    ) -> None:
        self._config = config
        self._server_functions = server_functions
        self._clock_ms = clock_ms
        self._controller: RemoteController | None = None
        self._heartbeats: Heartbeats | None = None
        self._logins = keep_tokens_fresh(outgoing_security(config))

    def follow(self, controller: RemoteController) -> None:
        self._controller = controller

    def join(self) -> None:
        controller = self._controller
        assert controller is not None
        self._heartbeats = Heartbeats(
            controller.lifecycle,
            lambda: None if (leader := controller.observer.leader) is None else Address(*leader),
            lambda: [Address(*one) for one in controller.observer.candidates()],
            outgoing_security(self._config).controllers,
            client_id=client_id_of(self._config.node_id),
        )
        self._heartbeats.start()

    def run_until(self, condition: Callable[[], bool], goal: str) -> int:
        controller = self._controller
        assert controller is not None
        deadline_ms = monotonic_ms() + self._config.integer("initial.broker.registration.timeout.ms")
        poll = open_poll()
        client_id, security = client_id_of(self._config.node_id), outgoing_security(self._config)
        peers = Peers(poll, controller.outbox, client_id=client_id, security=security)
        try:
            while not condition():
                if monotonic_ms() >= deadline_ms:
                    raise _too_late(controller.lifecycle, goal)
                peers.send_waiting()
                for descriptor, mask in poll.poll(_wait_s(peers)):
                    peers.serve(descriptor, mask, self._clock_ms())
                peers.tick(self._clock_ms())
                controller.tick(self._clock_ms())
            peers.end(self._clock_ms())
        except BaseException:
            self.stop()
            raise
        finally:
            peers.close()
            poll.close()
        return self._clock_ms()

    def call_soon(self, function: Callable[[], None]) -> bool:
        return self._server_functions.call_soon(function)

    def stop(self) -> None:
        if self._heartbeats is not None:
            self._heartbeats.stop()
        while self._logins:
            self._logins.pop().release()


def _wait_s(peers: Peers) -> float:
    """Return the poll timeout. It is short, because the heartbeat thread cannot wake this poll."""
    due_ms = peers.next_deadline_ms()
    return 0.01 if due_ms is None else max(min(due_ms - monotonic_ms(), 10), 0) / 1_000


def _too_late(lifecycle: BrokerLifecycle, goal: str) -> KafkaError:
    why = "" if lifecycle.refusal is None else f" ({lifecycle.refusal})"
    return KafkaError(
        ErrorCode.REQUEST_TIMED_OUT, f"timed out waiting until {goal}{why}; see initial.broker.registration.timeout.ms"
    )


def keep_tokens_fresh(security: OutgoingSecurity) -> list[TokenLogin]:
    """Get the tokens for this broker's connections to other nodes, and keep them fresh. Raise InvalidConfig."""
    kept: list[TokenLogin] = []
    for sasl in (security.brokers.sasl, security.controllers.sasl):
        if sasl is None or sasl.oauth is None:
            continue
        from tailrace.client.security.token_login import login_of

        login = login_of(sasl.oauth)
        try:
            login.keep_fresh()
        except ClientError as error:
            for one in kept:
                one.release()
            raise InvalidConfig(f"this broker cannot get a token for connections to other nodes: {error}") from error
        kept.append(login)
    return kept


def find_cluster_id(config: BrokerConfig) -> str:
    """Query the cluster id from the controllers, for a new data directory."""
    deadline_s = time.monotonic() + config.integer("initial.broker.registration.timeout.ms") / 1_000
    security = outgoing_security(config).controllers
    settings = ClientSettings(connect_timeout_ms=5_000, request_timeout_ms=15_000, security=security)
    _log.info("querying the cluster id from the controllers")
    while True:
        for host, port in config.roles.controllers:
            try:
                connection = Connection(Address(host, port), settings)
                answer = connection.request(DescribeClusterRequest(endpoint_type=_CONTROLLERS), version_min=1)
                connection.close()
            except ClientError as error:
                reason = str(error)
                continue
            if not answer.error_code:
                return str(answer.cluster_id)
            reason = f"{host}:{port} responded with {ErrorCode(answer.error_code).name}"
        if time.monotonic() >= deadline_s:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"cannot get the cluster id from a controller: {reason}")
        time.sleep(0.1)
