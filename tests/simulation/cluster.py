"""Cluster: brokers that replicate partitions over a simulated network, under a simulated controller, by one seed.

The broker's parts are the real ones: fetchers, Fetch requests and sessions, delayed fetches and produces, roles and
epochs, proposals of in-sync replicas, logs and their recovery. What is simulated is time, the network, the disk below
the files, the process (killed, stopped, started again on the same files), and the controller.
"""

from __future__ import annotations

from random import Random

from tailrace.model.ids import TopicPartition
from tests.simulation.controller import Controller
from tests.simulation.network import Network
from tests.simulation.power import PoweredFiles
from tests.simulation.simulated_broker import SimulatedBroker
from tests.simulation.weather import Weather

BROKERS = 4


class Cluster:
    def __init__(self, random: Random, weather: Weather) -> None:
        self.random = random
        self.weather = weather
        self.network = Network(random, loss=weather.loss, delays_ms=weather.delays_ms)
        self.acknowledged: list[tuple[TopicPartition, int, int]] = []  # offset, how many were in sync
        self.is_calm = False  # nothing is lost and nobody dies any more
        ids = list(range(1, BROKERS + 1))
        self.files = {broker_id: PoweredFiles() for broker_id in ids}
        self.controller = Controller(self.network)
        self.controller.begin(ids)
        self.brokers = {one: SimulatedBroker(self, one, self.controller.brokers[one].epoch) for one in ids}

    def alive(self) -> list[SimulatedBroker]:
        return [one for one in self.brokers.values() if one.is_alive]

    def kill(self, broker_id: int) -> None:
        """kill -9: what was written stays, and the controller waits for the session's end."""
        if self.brokers[broker_id].is_alive:
            self.brokers[broker_id].kill()

    def leave(self, broker_id: int) -> None:
        """An orderly stop, of which the controller knows."""
        if self.brokers[broker_id].is_alive and not self.controller.is_away:
            self.brokers[broker_id].leave()
            self.controller.fence(broker_id)

    def lose_power(self, broker_id: int) -> bool:
        """A machine fails, what it had not synced is gone; never the last one in sync, which nobody could replace."""
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
        """Who is about to be in sync, if the controller agrees."""
        pending = [
            partition.leader.isr.pending
            for one in self.alive()
            for partition in one.node.partitions
            if partition.leader is not None
        ]
        return sorted({broker_id for proposal in pending if proposal for broker_id in proposal.joining})

    def stop(self, broker_id: int, ms: int) -> None:
        """SIGSTOP, and SIGCONT later."""
        self.brokers[broker_id].stopped_until_ms = self.network.now_ms + ms

    def cut(self, broker_id: int) -> None:
        """From one of the others, or the controller; in one direction or both."""
        other = self.random.choice([one for one in (0, *self.brokers) if one != broker_id])
        directions = [(broker_id, other), (other, broker_id)]
        for sender, receiver in self.random.choice([directions, directions[:1], directions[1:]]):
            self.network.cut(sender, receiver)

    def start(self, broker_id: int) -> None:
        """Once its predecessor's session is over."""
        if self.brokers[broker_id].is_alive:
            return
        epoch = None if self.controller.is_away else self.controller.register(broker_id)
        if epoch is not None:
            self.brokers[broker_id] = SimulatedBroker(self, broker_id, epoch)

    def calm_down(self) -> None:
        self.is_calm = True
        self.network.mend()
        self.network.let_all_go()
        self.network.loss = 0.0
        for one in self.brokers.values():
            one.stopped_until_ms = 0
