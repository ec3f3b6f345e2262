"""Faults: carries out a plan, each fault in its own thread, and repairs everything at the end.

A node that ends by itself, whatever the fault, is a finding.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence

from tests.chaos.cluster import ChaosCluster
from tests.chaos.findings import Findings
from tests.chaos.links import CLEAR, CUT, HELD, Weather
from tests.chaos.nodes import Node
from tests.chaos.plan import ACTIVE, CLIENTS, Fault

WEATHERS = {
    "held": Weather(HELD, HELD),
    "cut": CUT,
    "held forward": Weather(forward=HELD),
    "held backward": Weather(backward=HELD),
}
SLOW = Weather(0.15, 0.15)


class Faults:
    def __init__(
        self, cluster: ChaosCluster, plan: Sequence[Fault], findings: Findings, print_line: Callable[[str], None]
    ) -> None:
        self._cluster = cluster
        self._plan = plan
        self._findings = findings
        self._print_line = print_line
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._busy: set[str] = set()  # nodes that are under a fault
        self.counts: Counter[str] = Counter()
        self.now: dict[int, str] = {}

    def run(self, is_over: Callable[[], bool]) -> None:
        """Start every fault at its time. Return early if `is_over()`."""
        began = time.monotonic()
        threads = []
        for fault in self._plan:
            while (wait_s := began + fault.at_s - time.monotonic()) > 0 and not is_over():
                self._check_alive()
                time.sleep(min(wait_s, 0.2))
            if is_over():
                break
            threads.append(threading.Thread(target=self._one, args=(fault,), name=str(fault), daemon=True))
            threads[-1].start()
        for thread in threads:
            while thread.is_alive() and not is_over():
                thread.join(0.2)
                self._check_alive()
        self._stop.set()
        for thread in threads:
            thread.join()

    def _check_alive(self) -> None:
        for node in self._cluster.nodes.values():
            with self._lock:
                status = None if node.name in self._busy else node.exit_status
            if status is not None:
                self._findings.add(f"node {node.name} ended by itself with {status}: see {node.log}")
                self._stop.set()

    def _one(self, fault: Fault) -> None:
        node = self._cluster.active_controller() if fault.node == ACTIVE else self._cluster.nodes[fault.node]
        if node is None:
            return  # there is no active controller at the moment
        with self._lock:
            if node.name in self._busy:
                return  # an earlier fault of the node takes longer than planned
            self._busy.add(node.name)
        what = f"{fault} ({node.name})" if fault.node == ACTIVE else str(fault)
        self._print_line(what)
        self.now[fault.number] = what
        self.counts[f"{'controller' if node.is_controller else 'broker'} {fault.kind}"] += 1
        try:
            getattr(self, f"_{fault.kind}")(node, fault)
        except Exception as error:
            self._findings.add(f"{fault}: {error!r}")
        finally:
            del self.now[fault.number]
            with self._lock:
                self._busy.discard(node.name)

    # Processes

    def _kill(self, node: Node, fault: Fault) -> None:
        node.kill()
        self._stop.wait(fault.for_s)
        node.launch()

    def _pause(self, node: Node, fault: Fault) -> None:
        node.pause()
        self._stop.wait(fault.for_s)
        node.resume()

    def _leave(self, node: Node, fault: Fault) -> None:
        if not node.leave():
            self.counts["broker did not leave in time"] += 1
        self._stop.wait(fault.for_s)
        node.launch()

    # Links

    def _apart(self, node: Node, fault: Fault) -> None:
        self._for_a_while(node, fault, [(node.name, fault.other), (fault.other, node.name)])

    def _deposed(self, node: Node, fault: Fault) -> None:
        others = [one for one in self._cluster.nodes.values() if one is not node]
        controllers = [one for one in others if one.is_controller]
        if node.is_controller and controllers:
            others = controllers
        self._for_a_while(
            node, fault, [pair for one in others for pair in ((node.name, one.name), (one.name, node.name))]
        )

    def _unheard(self, node: Node, fault: Fault) -> None:
        controllers = [one.name for one in self._cluster.nodes.values() if one.is_controller]
        self._for_a_while(node, fault, [(node.name, one) for one in controllers])

    def _speechless(self, node: Node, fault: Fault) -> None:
        self._for_a_while(node, fault, [(CLIENTS, node.name)])

    def _slow(self, node: Node, fault: Fault) -> None:
        others = [*(one for one in self._cluster.nodes if one != node.name), CLIENTS]
        self._for_a_while(node, fault, [(one, node.name) for one in others], SLOW)

    def _for_a_while(
        self, node: Node, fault: Fault, pairs: Sequence[tuple[str, str]], weather: Weather | None = None
    ) -> None:
        chosen = WEATHERS[fault.way] if weather is None else weather
        for source, target in pairs:
            # A link has one client side and one server side, so one direction between two nodes needs both links
            # between them.
            is_back = weather is None and source != node.name and (target, source) in pairs
            reversed_one = Weather(chosen.backward, chosen.forward, chosen.is_cut)
            self._cluster.set_weather(source, target, reversed_one if is_back else chosen)
        self._stop.wait(fault.for_s)
        for source, target in pairs:
            self._cluster.set_weather(source, target, CLEAR)
