"""Scripts: rare events in the order in which they do harm, with a few random choices.

A script is a generator that yields how many milliseconds pass until its next step. If the awaited event does not
happen, the script ends. All messages that it holds back are released at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from tailrace.model.ids import TopicPartition
from tests.simulation.cluster import Cluster
from tests.simulation.controller import CONTROLLER_ID
from tests.simulation.network import Host
from tests.simulation.simulated_broker import SimulatedBroker

Script = Iterator[int]
_POLL_MS = 2


class Stage(Host):
    """The state that scripts share. One script is played at a time."""

    def __init__(self, cluster: Cluster, acknowledgements: Callable[[TopicPartition], int]) -> None:
        super().__init__(-1)
        self.cluster = cluster
        self.network = cluster.network
        self.random: Random = cluster.random
        self.acknowledgements = acknowledgements  # returns how many there were for a partition
        self.is_playing = False

    def play(self, name: str, key: TopicPartition) -> None:
        self.is_playing = True
        self._go_on(SCRIPTS[name](self, key))

    def _go_on(self, script: Script) -> None:
        wait_ms = None if self.cluster.is_calm else next(script, None)  # the held messages have been released by then
        if wait_ms is None:
            self.is_playing = False
        else:
            self.network.after(wait_ms, self, lambda: self._go_on(script))

    # Steps of a script

    def until(self, holds: Callable[[], bool], at_most_ms: int) -> Iterator[int]:
        """Wait until `holds()`, or until the time is over. The caller checks the condition again."""
        end_ms = self.network.now_ms + at_most_ms
        while not holds() and self.network.now_ms < end_ms:
            yield _POLL_MS

    def leader(self, key: TopicPartition) -> SimulatedBroker | None:
        """Return the leader that the controller has elected, if it is alive and knows that it leads."""
        one = self.cluster.brokers.get(self.cluster.controller.states[key].leader)
        partition = one.partition(key) if one is not None and one.is_alive else None
        return one if partition is not None and partition.is_leader else None

    def followers(self, key: TopicPartition) -> list[SimulatedBroker]:
        """Return the followers in random order."""
        state = self.cluster.controller.states[key]
        found = [self.cluster.brokers[one] for one in state.replicas if one != state.leader]
        self.random.shuffle(found)
        return [one for one in found if one.is_alive]

    def start(self, broker_id: int, at_most_ms: int = 900) -> Iterator[int]:
        """Start a broker, and wait until the controller accepts its registration."""
        end_ms = self.network.now_ms + at_most_ms
        while not self.cluster.controller.is_alive_here(broker_id) and self.network.now_ms < end_ms:
            self.cluster.start(broker_id)
            yield _POLL_MS


def _is_joining(leader: SimulatedBroker, key: TopicPartition, broker_id: int) -> bool:
    partition = leader.partition(key)
    role = partition.leader if partition is not None else None
    return role is not None and role.isr.pending is not None and broker_id in role.isr.pending.joining


def late_proposal(stage: Stage, key: TopicPartition) -> Script:
    """A follower catches up and its leader proposes it for the ISR. It loses its log before the controller decides
    (KIP-903).
    """
    leader, followers = stage.leader(key), stage.followers(key)
    if leader is None or not followers:
        return
    joining = followers[0].broker_id
    network = stage.network
    if joining in stage.cluster.controller.states[key].isr:
        if not stage.cluster.lose_power(joining):
            return
        yield from stage.start(joining)
    network.hold(leader, CONTROLLER_ID)
    yield from stage.until(lambda: _is_joining(leader, key, joining), 1_200)
    if _is_joining(leader, key, joining) and stage.cluster.lose_power(joining):
        yield from stage.start(joining)
        network.hold(stage.cluster.brokers[joining], leader.host_id)
    network.release(leader, CONTROLLER_ID)
    yield stage.random.choice((5, 40))
    network.release(stage.cluster.brokers[joining], leader.host_id)


def late_fetch(stage: Stage, key: TopicPartition) -> Script:
    """A fetch is in flight while its sender loses the log. It arrives after the first fetch of the sender's next
    process.
    """
    leader, followers = stage.leader(key), stage.followers(key)
    if leader is None or not followers:
        return
    network, follower = stage.network, followers[0]
    network.hold(follower, leader.host_id)
    yield from stage.until(lambda: network.held(follower, leader.host_id) > 0, 250)
    if stage.cluster.lose_power(follower.broker_id):
        yield from stage.start(follower.broker_id)
        later = stage.cluster.brokers[follower.broker_id]
        network.hold(later, leader.host_id)
        yield from stage.until(
            lambda: leader.node.settings.alive_epoch(later.broker_id) == later.epoch, stage.random.choice((0, 60, 600))
        )
        network.release(follower, leader.host_id)
        yield stage.random.choice((2, 20, 80))
        network.release(later, leader.host_id)
    network.release(follower, leader.host_id)


def deaf_leader(stage: Stage, key: TopicPartition) -> Script:
    """Followers leave and join the ISR by the leader's proposals. Only then does the leader read the metadata about
    this.
    """
    leader, followers = stage.leader(key), stage.followers(key)
    if leader is None or not followers:
        return
    network, controller = stage.network, stage.cluster.controller
    leader.be_deaf(3 * stage.cluster.weather.lag_ms + 600)
    gone = followers[: stage.random.choice((1, 2))]
    for one in gone:
        network.hold(one, leader.host_id)
    yield from stage.until(
        lambda: not {one.broker_id for one in gone} & set(controller.states[key].isr),
        2 * stage.cluster.weather.lag_ms + 100,
    )
    for one in gone:
        network.release(one, leader.host_id)
    yield from stage.until(lambda: {one.broker_id for one in gone} <= set(controller.states[key].isr), 600)
    late = stage.random.choice(gone)
    network.hold(late, leader.host_id)
    leader.be_deaf(0)
    yield stage.random.choice((50, 200))
    network.release(late, leader.host_id)


def lost_answer(stage: Stage, key: TopicPartition) -> Script:
    """The controller accepts a proposal but its response is lost. Then the replica that joined stops."""
    leader, followers = stage.leader(key), stage.followers(key)
    if leader is None or not followers:
        return
    network, controller, joining = stage.network, stage.cluster.controller, followers[0]
    if joining.broker_id in controller.states[key].isr:
        network.hold(joining, leader.host_id)
        yield from stage.until(
            lambda: joining.broker_id not in controller.states[key].isr, 2 * stage.cluster.weather.lag_ms + 100
        )
    network.hold(controller, leader.host_id)
    network.release(joining, leader.host_id)
    yield from stage.until(lambda: _is_joining(leader, key, joining.broker_id), 800)
    leader.be_deaf(1_500)
    yield from stage.until(lambda: joining.broker_id in controller.states[key].isr, 200)
    network.hold(joining, leader.host_id)
    yield stage.random.choice((100, 450, 800))  # by then it has retried
    network.release(controller, leader.host_id)
    yield stage.random.choice((1, 60, 200))
    network.release(joining, leader.host_id)


def after_an_acknowledgement(stage: Stage, key: TopicPartition) -> Script:
    """The leader dies as soon as it has acknowledged records."""
    before = stage.acknowledgements(key)
    yield from stage.until(lambda: stage.acknowledgements(key) > before, 400)
    leader = stage.leader(key)
    if leader is not None:
        if stage.random.random() < 0.5 and stage.cluster.lose_power(leader.broker_id):
            yield from stage.start(leader.broker_id)
        else:
            stage.cluster.kill(leader.broker_id)


def deposed_leader(stage: Stage, key: TopicPartition) -> Script:
    """A leader is cut off from the controller only. It continues to lead, and its followers continue to follow."""
    leader = stage.leader(key)
    if leader is None:
        return
    for one in stage.followers(key)[: stage.random.choice((0, 1, 2))]:
        one.be_deaf(stage.random.choice((900, 1_500)))
    leader.be_deaf(1_200)
    stage.network.cut(leader.host_id, CONTROLLER_ID)
    yield stage.random.choice((700, 900, 1_500))
    stage.network.mend()


def ladder(stage: Stage, key: TopicPartition) -> Script:
    """Elect several leaders in a row, each with a record or two that no follower has fetched."""
    for _ in range(stage.random.randint(2, 4)):
        leader = stage.leader(key)
        if leader is None:
            return
        followers = stage.followers(key)
        for one in followers:
            stage.network.hold(one, leader.host_id)
        yield stage.random.choice((20, 60, 150))
        stage.cluster.controller.move_leader(key)
        yield from stage.until(lambda: stage.leader(key) is not None, 60)
        for one in followers:
            stage.network.release(one, leader.host_id)
        if stage.random.random() < 0.3:
            stage.cluster.kill(leader.broker_id)


def cut_log(stage: Stage, key: TopicPartition) -> Script:
    """Unreplicated records of a leader are truncated, others take their place, and then its power fails."""
    leader, followers = stage.leader(key), stage.followers(key)
    if leader is None or not followers:
        return
    for one in followers:
        stage.network.hold(one, leader.host_id)
    yield stage.random.choice((60, 150, 240))
    log = leader.node.partitions.find(key).log
    leader.directory.checkpoint()
    end, cuts = log.log_end_offset, log.cuts
    stage.cluster.controller.move_leader(key)
    yield from stage.until(lambda: log.cuts > cuts, 400)
    for one in followers:
        stage.network.release(one, leader.host_id)
    if stage.random.random() < 0.5:
        yield stage.random.choice((5, 30, 100, 300))
    else:
        yield from stage.until(lambda: log.log_end_offset > end, 900)
    if leader.is_alive and stage.random.random() < 0.5:
        leader.directory.checkpoint()
    if stage.cluster.lose_power(leader.broker_id):
        yield from stage.start(leader.broker_id)


def regrown_log(stage: Stage, key: TopicPartition) -> Script:
    """Whole segments of a leader are truncated, others grow past its old recovery point, and then its power fails.

    The new leader gets its records first, so that the log is truncated and grows again between two checkpoints.
    """
    leader, followers = stage.leader(key), stage.followers(key)
    if leader is None or not followers:
        return
    network, controller = stage.network, stage.cluster.controller
    log = leader.node.partitions.find(key).log
    for one in followers:
        network.hold(one, leader.host_id)
    network.hold(leader, CONTROLLER_ID)  # no replica leaves the ISR, so the high watermark does not move
    base = log.segments.active.base_offset
    yield from stage.until(lambda: log.segments.active.base_offset > base, 700)
    if stage.random.random() < 0.5:  # the sync of those segments ends before the truncation, or else after it
        yield from stage.until(lambda: log.recovery_point > log.high_watermark, 200)
        leader.directory.checkpoint()
    end, cuts = log.log_end_offset, log.cuts
    for one in followers:
        network.hold(leader, one.host_id)
    controller.move_leader(key)
    network.release(leader, CONTROLLER_ID)
    yield from stage.until(lambda: _leading_end(stage, key) > end, 900)
    for one in followers:
        network.release(one, leader.host_id)
        network.release(leader, one.host_id)
    yield from stage.until(lambda: log.cuts > cuts and log.log_end_offset > end, 200)
    if stage.random.random() < 0.5:  # the first sync that ends afterwards counts
        point = log.recovery_point
        yield from stage.until(lambda: log.recovery_point > point, 1_500)
        if leader.is_alive:
            leader.directory.checkpoint()
    if stage.cluster.lose_power(leader.broker_id):
        yield from stage.start(leader.broker_id)


def _leading_end(stage: Stage, key: TopicPartition) -> int:
    """Return the end of the current leader's log, or -1 if no broker leads."""
    leader = stage.leader(key)
    return -1 if leader is None else leader.node.partitions.find(key).log.log_end_offset


def late_answer(stage: Stage, key: TopicPartition) -> Script:
    """A fetch response of an earlier leader arrives when another broker leads, or the same broker in a later epoch."""
    leader, followers = stage.leader(key), stage.followers(key)
    if leader is None or not followers:
        return
    follower = followers[0]
    stage.network.hold(leader, follower.host_id)
    yield from stage.until(lambda: stage.network.held(leader, follower.host_id) > 0, 150)
    for _ in range(stage.random.choice((1, 2))):
        stage.cluster.controller.move_leader(key)
        yield stage.random.choice((2, 20, 60))
    stage.network.release(leader, follower.host_id)


def late_decision(stage: Stage, key: TopicPartition) -> Script:
    """The leader learns a decision late: it has lost and regained leadership, and others have joined the ISR since."""
    leader, followers = stage.leader(key), stage.followers(key)
    if leader is None or len(followers) < 2:
        return
    network, controller = stage.network, stage.cluster.controller
    gone, other = followers[:2]
    network.hold(gone, leader.host_id)
    network.hold(controller, leader.host_id)
    yield from stage.until(
        lambda: gone.broker_id not in controller.states[key].isr, 2 * stage.cluster.weather.lag_ms + 100
    )
    controller.move_leader(key, other.broker_id)
    yield from stage.until(lambda: gone.broker_id in controller.states[key].isr, 400)
    controller.move_leader(key, leader.broker_id)
    yield from stage.until(lambda: stage.leader(key) is leader, 100)
    network.release(controller, leader.host_id)
    yield stage.random.choice((5, 30, 100))
    network.release(gone, leader.host_id)


def late_fetch_of_an_epoch(stage: Stage, key: TopicPartition) -> Script:
    """A fetch shows a follower's position before it truncated. It arrives when the leader of that epoch leads again."""
    leader, followers = stage.leader(key), stage.followers(key)
    if leader is None or len(followers) < 2:
        return
    network, controller = stage.network, stage.cluster.controller
    follower, other = followers[:2]
    network.hold(other, leader.host_id)
    yield stage.random.choice((20, 60))
    network.hold(follower, leader.host_id)
    yield from stage.until(lambda: network.held(follower, leader.host_id) > 0, 150)
    network.hold(leader, other.host_id)
    controller.move_leader(key, other.broker_id)
    before = follower.partition(key)
    end = -1 if before is None else before.log.log_end_offset
    yield from stage.until(lambda: before is None or before.log.log_end_offset < end, 100)
    controller.move_leader(key, leader.broker_id)
    network.release(leader, other.host_id)
    network.release(other, leader.host_id)
    yield stage.random.choice((5, 15, 40))
    network.release(follower, leader.host_id)


SCRIPTS: dict[str, Callable[[Stage, TopicPartition], Script]] = {
    one.__name__.replace("_", " "): one
    for one in (
        late_proposal,
        late_fetch,
        deaf_leader,
        lost_answer,
        after_an_acknowledgement,
        deposed_leader,
        ladder,
        cut_log,
        regrown_log,
        late_answer,
        late_decision,
        late_fetch_of_an_epoch,
    )
}
