"""Broker: a whole broker inside a Python process, for tests, tools and notebooks.

    with tailrace.Broker(num_partitions=3) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        …
        broker.crash()
        broker.restart()          # same port, same data

The broker runs in a thread of its own, on the loopback interface, on a free port unless one is given. Without `data` it
uses a temporary directory, which is removed at the end. Settings have Kafka's names, with underscores for dots. Names
that contain underscores, or settings from a file, go into `config`. Three defaults differ from `tailrace serve`, so
that tests do not wait. New groups do not delay their first rebalance. Internal topics of a single broker have one
partition. A stop does not wait for pending responses.

`reset` makes a broker with a temporary directory empty again. `security` gives it TLS and SASL, and `client_settings`
gives clients what they need. `async with` works as `with` does.

Faults can be injected: `fail`, `delay` and `drop` affect the next requests of an API, `move_clock` advances the time of
the broker only. `heal` removes all faults.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike, fspath
from os.path import realpath
from types import TracebackType
from typing import Any, Final, Self

from tailrace.broker.broker import Broker as BrokerCore
from tailrace.embedded.emptying import delete_topics
from tailrace.embedded.faults import Fault, FaultKind, FaultyBroker, api_named, can_fail, error_named
from tailrace.embedded.security import LocalSecurity, client_settings
from tailrace.embedded.topics import await_topic, create_topic
from tailrace.log.disk.directory_lock import DirectoryInUse
from tailrace.log.disk.unsynced_files import UnsyncedFiles
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.metadata.image.image import MetadataImage
from tailrace.node.serving import broker_builder, has_telemetry, server_settings, split_settings
from tailrace.node.umask import umask_of
from tailrace.server.broker_interface import ServerFunctions
from tailrace.server.loop.clock import wall_clock_ms
from tailrace.server.server import Server

# Defaults of a broker inside a process: tests do not wait for members or responses that may come.
_QUICK: Final = {"group.initial.rebalance.delay.ms": "0", "tailrace.drain.ms": "0"}
# A single broker also creates its internal topics with one partition each. In a cluster the cluster decides their size.
_SMALL: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}
_QUORUM: Final = ("controller.quorum.voters", "controller.quorum.bootstrap.servers")
_LOG_DIRS: Final = frozenset({"log.dir", "log.dirs", "metadata.log.dir"})

# The lock on a directory excludes other processes only. This set excludes other brokers of this process.
_DIRECTORIES_IN_USE: Final[set[str]] = set()


class NotRunning(RuntimeError):
    """The broker was stopped, has crashed, or was never started."""


class Broker:
    def __init__(
        self,
        data: str | PathLike[str] | None = None,
        port: int = 0,
        *,
        host: str = "127.0.0.1",
        config: Mapping[str, object] | None = None,
        security: LocalSecurity | None = None,
        **settings: object,
    ) -> None:
        named = {key.replace("_", "."): value for key, value in settings.items()}
        self._properties = {key: property_text(value) for key, value in {**(config or {}), **named}.items()}
        self._host = host
        self._port = port
        self._security = security
        self._data = None if data is None else fspath(data)
        self._temporary: str | None = None
        self._server: Server | None = None
        self._core: FaultyBroker | None = None
        self._first_image: MetadataImage | None = None  # of the first start in the temporary directory
        self._faults: list[Fault] = []
        self._cut_off: set[str] = set()  # client ids of other nodes
        self._clock_offset_ms = 0
        self._taken: set[str] = set()

    # Address

    @property
    def port(self) -> int:
        """The port of the first listener; the same after a restart."""
        if not self._port:
            raise NotRunning("the port is not known before the broker starts")
        return self._port

    @property
    def bootstrap(self) -> str:
        """The value of bootstrap.servers for clients."""
        return f"{self._host}:{self.port}"

    @property
    def bootstrap_servers(self) -> str:
        """The same as `bootstrap`, by Kafka's name."""
        return self.bootstrap

    @property
    def data(self) -> str:
        """The data directory. `tailrace log` can read it while the broker runs."""
        if self._data is None:
            raise NotRunning("the temporary directory is created when the broker starts")
        return self._data

    @property
    def metrics(self) -> str:
        """The URL for Prometheus; needs the setting tailrace.metrics.port."""
        endpoint = self._running().metrics
        if endpoint is None:
            raise ValueError("metrics are off: set tailrace.metrics.port (0: a free port)")
        return f"http://{endpoint.address}/metrics"

    @property
    def metadata(self) -> MetadataImage:
        """Topics, brokers and configs as this broker knows them now."""
        return self._running_core().services.controller.image

    @property
    def is_running(self) -> bool:
        return self._server is not None

    # Start and stop

    def start(self) -> Self:
        """Start the broker. Clients can connect when this returns."""
        if self._server is not None:
            raise RuntimeError("the broker is running already")
        if self._data is None:
            self._data = self._temporary = tempfile.mkdtemp(prefix="tailrace-")
        config, own_settings = split_settings(self._all_properties(self._data))
        files = UnsyncedFiles() if self._temporary is not None else None
        build = broker_builder(
            config,
            umask=umask_of(own_settings),
            telemetry=has_telemetry(own_settings),
            files=files,
            clock_ms=self._clock_ms,
            credentials=self._security.credentials() if self._security is not None else (),
        )

        def build_with_faults(server_functions: ServerFunctions) -> FaultyBroker:
            self._core = FaultyBroker(build(server_functions), self._faults, self._cut_off)
            if self._first_image is None:
                self._first_image = self._core.broker.services.controller.image
            return self._core

        server = Server(build_with_faults, server_settings(config, own_settings), clock_ms=self._clock_ms)
        with self._directories_taken(config.log_dirs):
            server.start()
        self._server = server
        self._port = server.port()
        return self

    def _all_properties(self, data: str) -> dict[str, str]:
        """Return the settings of the broker: the defaults of this class, and those of the user above them."""
        protocol = "PLAINTEXT" if self._security is None else self._security.protocol
        properties = {"listeners": f"{protocol}://{self._host}:{self._port}", "log.dirs": data, **_QUICK}
        if not self._is_in_cluster:
            properties |= _SMALL
        if self._security is not None:
            properties |= self._security.broker_settings(self._host)
        return properties | self._properties

    @property
    def _is_in_cluster(self) -> bool:
        return any(name in self._properties for name in _QUORUM)

    @contextlib.contextmanager
    def _directories_taken(self, paths: Sequence[str]) -> Iterator[None]:
        """Reserve the directories within this process; release them if the start fails."""
        wanted = {realpath(path) for path in paths}
        for path in wanted & _DIRECTORIES_IN_USE:
            raise DirectoryInUse(f"{path} is in use by another broker of this process")
        _DIRECTORIES_IN_USE.update(wanted)
        try:
            yield
        except BaseException:
            _DIRECTORIES_IN_USE.difference_update(wanted)
            raise
        self._taken = wanted

    def _ended(self) -> None:
        self._server = None
        _DIRECTORIES_IN_USE.difference_update(self._taken)

    def stop(self) -> None:
        """Stop cleanly: flush everything to disk. Pending responses get `tailrace.drain.ms` (0) to be sent."""
        try:
            self._running().stop()
        finally:
            self._ended()

    def crash(self) -> None:
        """End like a killed process: connections are reset and nothing else is written. Written data stays."""
        server, core = self._running(), self._running_core()
        try:
            server.kill()
            core.abandon()
        finally:
            self._ended()

    def restart(self) -> None:
        """Stop if running, and start on the same port and directory."""
        if self._server is not None:
            self.stop()
        self.start()

    def reset(self) -> None:
        """Make the broker empty again, on the same port. Nothing is left of topics, groups, transactions, ACLs,
        configs, quotas, users, faults and the moved clock. Clients are disconnected. A stopped broker is started.

        The broker must have a temporary directory. If only topics, groups and transactions are to be removed, they are
        deleted. Otherwise the broker starts again in a new directory, which takes longer.
        """
        if (self._data is not None and self._temporary is None) or not _LOG_DIRS.isdisjoint(self._properties):
            raise ValueError("reset would delete the data directory: it is only for brokers with a temporary directory")
        if self._is_in_cluster:
            raise ValueError("reset is only for a single broker, because other nodes keep the metadata of a cluster")
        self.heal()
        if self._server is None or self._clock_offset_ms or not self._server.call(self._delete_everything):
            self.close()
            self._clock_offset_ms = 0
            self.start()

    def _delete_everything(self) -> bool:
        """Disconnect clients and delete topics, in the loop's thread. Return False if that is not enough."""
        controller = self._running_core().services.controller
        assert isinstance(controller, LocalController)
        assert self._first_image is not None
        self.drop_connections()
        return delete_topics(controller, self._first_image, self._clock_ms())

    def close(self) -> None:
        """Stop if running, and remove a temporary directory."""
        try:
            if self._server is not None:
                self.stop()
        finally:
            if self._temporary is not None:
                shutil.rmtree(self._temporary, ignore_errors=True)
                self._data = self._temporary = self._first_image = None

    def __enter__(self) -> Self:
        return self if self.is_running else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    # Topics and clients

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, object] | None = None) -> None:
        """Create a topic, or raise a KafkaError with the reason.

        In a cluster it has default.replication.factor replicas. When this returns, this broker serves the topic.
        """
        configs = {key: property_text(value) for key, value in (config or {}).items()}
        services = self._running_core().services
        create_topic(self._running(), services, name, partitions, configs, self._clock_ms())

    def await_topic(self, name: str) -> None:
        """Wait until this broker serves a topic that was created at another broker of its cluster."""
        await_topic(self._running(), self._running_core().services, name, self._clock_ms())

    def client_settings(self, client: str = "librdkafka", *, user: str | None = None) -> dict[str, Any]:
        """Return the settings of a client: its bootstrap address and, if the broker is secured, the login of a user.

        `client` is librdkafka, kafka-python, aiokafka or java.
        """
        return client_settings(client, self.bootstrap, self._security, user)

    # Faults

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The injected faults that were not removed, including those that are used up."""
        return tuple(self._faults)

    def fail(self, api: str | int, error: str | int, *, times: int | None = None) -> Fault:
        """Respond to requests of an API with an error, without carrying them out."""
        key = api_named(api)
        if not can_fail(key):
            raise ValueError(f"{api} has no response with an error code: use drop or delay")
        return self._add(Fault(FaultKind.FAIL, key, error=error_named(error), times=times))

    def delay(self, api: str | int, delay_ms: int, *, times: int | None = None) -> Fault:
        """Delay requests of an API before they are carried out. `move_clock` shortens the delay."""
        return self._add(Fault(FaultKind.DELAY, api_named(api), delay_ms=delay_ms, times=times))

    def drop(self, api: str | int, *, times: int | None = None, carried_out: bool = False) -> Fault:
        """Close the connection of a request before it is carried out; with `carried_out`, only its response is lost."""
        kind = FaultKind.DROP_ANSWER if carried_out else FaultKind.DROP
        return self._add(Fault(kind, api_named(api), times=times))

    @contextlib.contextmanager
    def fault(self, fault: Fault) -> Iterator[Fault]:
        """Apply a fault within a block: `with broker.fault(broker.fail("Produce", "NOT_LEADER_OR_FOLLOWER")):`"""
        try:
            yield fault
        finally:
            self.heal(fault)

    def heal(self, fault: Fault | None = None) -> None:
        """Remove a fault, or all of them."""

        def remove() -> None:
            self._faults[:] = [one for one in self._faults if fault is not None and one is not fault]
            if fault is None:
                self._cut_off.clear()

        self._on_loop(remove)

    def cut_off(self, client_id: str) -> None:
        """Close the connections of a client, now and whenever it connects, until `heal()`."""
        self._on_loop(lambda: self._cut_off.add(client_id))
        core = self._core
        if self._server is not None and core is not None:
            self._server.close_connections(lambda context: core.is_from(context, client_id))

    def drop_connections(self) -> int:
        """Close all connections. Return their number."""
        return self._running().close_connections(lambda context: True)

    def move_clock(self, milliseconds: int) -> None:
        """Advance the broker's clock. Work that is due by then, such as retention or a delay, happens now."""
        if milliseconds < 0:
            raise ValueError(f"the clock cannot be moved back ({milliseconds} ms)")

        def move() -> None:
            self._clock_offset_ms += milliseconds

        self._on_loop(move)

    # Details

    def _clock_ms(self) -> int:
        return wall_clock_ms() + self._clock_offset_ms

    def _add(self, fault: Fault) -> Fault:
        self._on_loop(lambda: self._faults.append(fault))
        return fault

    def _on_loop(self, function: Any) -> None:
        """Call a function in the loop's thread, which owns the faults; before the start, call it here."""
        if self._server is None:
            function()
        else:
            self._server.call(function)
            self._server.wake()

    def _running(self) -> Server:
        if self._server is None:
            raise NotRunning("the broker is not running")
        return self._server

    def _running_core(self) -> BrokerCore:
        self._running()
        assert self._core is not None
        return self._core.broker


def property_text(value: object) -> str:
    """Return the text of a setting as in a server.properties."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)
