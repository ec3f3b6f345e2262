"""Cluster: brokers that replicate partitions over a simulated network, under a simulated controller, driven by one
seed.

The parts of the broker are the real ones: fetchers, Fetch requests and sessions, delayed fetches and produces, roles
and epochs, ISR proposals, logs and their recovery. Time, the network, the disk below
the files, the process (killed, stopped, started again on the same files) and the controller are simulated.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tailrace.model.ids import TopicPartition
from tests.simulation.controller import Controller
from tests.simulation.network import Network
from tests.simulation.power import PoweredFiles
from tests.simulation.simulated_broker import SimulatedBroker
from tests.simulation.weather import Weather

BROKERS = 4


class Cluster:
    def __init__(
        self, random: Random, weather: Weather, controller: Callable[[Network], Controller] = Controller
    ) -> None:
        self.random = random
        self.weather = weather
        self.network = Network(random, loss=weather.loss, delays_ms=weather.delays_ms)
        self.acknowledged: list[tuple[TopicPartition, int, int]] = []  # partition, offset, size of the ISR
        self.is_calm = False  # if True, no message is lost and no broker dies
        ids = list(range(1, BROKERS + 1))
        self.files = {broker_id: PoweredFiles() for broker_id in ids}
        self.controller = controller(self.network)
        self.controller.begin(ids)
        self.brokers = {one: SimulatedBroker(self, one, self.controller.brokers[one].epoch) for one in ids}

    def alive(self) -> list[SimulatedBroker]:
        return [one for one in self.brokers.values() if one.is_alive]

    def kill(self, broker_id: int) -> None:
        """Kill the process: written bytes stay, and the controller waits until the session expires."""
        if self.brokers[broker_id].is_alive:
            self.brokers[broker_id].kill()

    def leave(self, broker_id: int) -> None:
        """Stop cleanly, with a controlled shutdown."""
        if self.brokers[broker_id].is_alive and not self.controller.is_away:
            self.brokers[broker_id].leave()
            self.controller.fence(broker_id)

    def lose_power(self, broker_id: int) -> bool:
        """Fail a machine, so that unsynced bytes are lost. Never the last in-sync replica."""
        controller = self.controller
        for state in controller.states.values():
            others = [one for one in state.isr if one != broker_id and controller.is_alive_here(one)]
            if broker_id in state.isr and not others:
                return False
        if not self.brokers[broker_id].is_alive or controller.is_away:
            return False
        self.kill(broker_id)
        self.files[broker_id].lose_power(self.random)
        controller.fence(broker_id)
        return True

    def joining(self) -> list[int]:
        """Return the brokers that are about to join an ISR, if the controller agrees."""
        pending = [
            partition.leader.isr.pending
            for one in self.alive()
            for partition in one.node.partitions
            if partition.leader is not None
        ]
        return sorted({broker_id for proposal in pending if proposal for broker_id in proposal.joining})

    def stop(self, broker_id: int, ms: int) -> None:
        """Send SIGSTOP, and SIGCONT later."""
        self.brokers[broker_id].stopped_until_ms = self.network.now_ms + ms

    def cut(self, broker_id: int) -> None:
        """Separate a broker from another one or from the controller, in one direction or both."""
        other = self.random.choice([one for one in (0, *self.brokers) if one != broker_id])
        directions = [(broker_id, other), (other, broker_id)]
        for sender, receiver in self.random.choice([directions, directions[:1], directions[1:]]):
            self.network.cut(sender, receiver)

    def start(self, broker_id: int) -> None:
        """Start a broker once the session of its previous process has expired."""
        if self.brokers[broker_id].is_alive:
            return
        epoch = None if self.controller.is_away else self.controller.register(broker_id)
        if epoch is not None:
            self.brokers[broker_id] = SimulatedBroker(self, broker_id, epoch)

    def calm_down(self) -> None:
        self.is_calm = True
        self.network.mend()
        self.network.release_all()
        self.network.loss = 0.0
        for one in self.brokers.values():
            one.stopped_until_ms = 0
