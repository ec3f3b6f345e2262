"""Scripts: what rarely happens by chance, in the order in which it does harm. Each is a story with a few dice in it.

A script is a generator that says how many milliseconds go by until its next line; what it waits for may not come, then
it ends. Whatever it holds back arrives in the end.
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
    """Where scripts are played, one at a time."""

    def __init__(self, cluster: Cluster, acknowledgements: Callable[[TopicPartition], int]) -> None:
        super().__init__(-1)
        self.cluster = cluster
        self.network = cluster.network
        self.random: Random = cluster.random
        self.acknowledgements = acknowledgements  # how many there were of a partition
        self.is_playing = False

    def play(self, name: str, key: TopicPartition) -> None:
        self.is_playing = True
        self._go_on(SCRIPTS[name](self, key))

    def _go_on(self, script: Script) -> None:
        wait_ms = None if self.cluster.is_calm else next(script, None)  # what it held has been let go by then
        if wait_ms is None:
            self.is_playing = False
        else:
            self.network.after(wait_ms, self, lambda: self._go_on(script))

    # Lines of a script

    def until(self, holds: Callable[[], bool], at_most_ms: int) -> Iterator[int]:
        """Wait for something, but not for ever; what happened is looked at again by who waited."""
        end_ms = self.network.now_ms + at_most_ms
        while not holds() and self.network.now_ms < end_ms:
            yield _POLL_MS

    def leader(self, key: TopicPartition) -> SimulatedBroker | None:
        """The one that the controller has, if it is alive and knows."""
        one = self.cluster.brokers.get(self.cluster.controller.states[key].leader)
        partition = one.partition(key) if one is not None and one.is_alive else None
        return one if partition is not None and partition.is_leader else None

    def followers(self, key: TopicPartition) -> list[SimulatedBroker]:
        """In any order."""
        state = self.cluster.controller.states[key]
        found = [self.cluster.brokers[one] for one in state.replicas if one != state.leader]
        self.random.shuffle(found)
        return [one for one in found if one.is_alive]

    def start(self, broker_id: int, at_most_ms: int = 900) -> Iterator[int]:
        """Until the controller lets it in."""
        end_ms = self.network.now_ms + at_most_ms
        while not self.cluster.controller.is_alive_here(broker_id) and self.network.now_ms < end_ms:
            self.cluster.start(broker_id)
            yield _POLL_MS


def _is_joining(leader: SimulatedBroker, key: TopicPartition, broker_id: int) -> bool:
    partition = leader.partition(key)
    role = partition.leader if partition is not None else None
    return role is not None and role.isr.pending is not None and broker_id in role.isr.pending.joining


def late_proposal(stage: Stage, key: TopicPartition) -> Script:
    """One has caught up and is to be in sync; it loses what it had before the controller hears of that (KIP-903)."""
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
    network.let_go(leader, CONTROLLER_ID)
    yield stage.random.choice((5, 40))
    network.let_go(stage.cluster.brokers[joining], leader.host_id)


def late_fetch(stage: Stage, key: TopicPartition) -> Script:
    """A fetch is on its way while its sender loses what it says it has; it arrives after the next life's first."""
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
        network.let_go(follower, leader.host_id)
        yield stage.random.choice((2, 20, 80))
        network.let_go(later, leader.host_id)
    network.let_go(follower, leader.host_id)


def deaf_leader(stage: Stage, key: TopicPartition) -> Script:
    """Followers leave and come back by what the leader proposes; only then it reads what was written about it."""
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
        network.let_go(one, leader.host_id)
    yield from stage.until(lambda: {one.broker_id for one in gone} <= set(controller.states[key].isr), 600)
    late = stage.random.choice(gone)
    network.hold(late, leader.host_id)
    leader.be_deaf(0)
    yield stage.random.choice((50, 200))
    network.let_go(late, leader.host_id)


def lost_answer(stage: Stage, key: TopicPartition) -> Script:
    """The controller agrees to a proposal and cannot say so; the one that joined stands still then."""
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
    network.let_go(joining, leader.host_id)
    yield from stage.until(lambda: _is_joining(leader, key, joining.broker_id), 800)
    leader.be_deaf(1_500)
    yield from stage.until(lambda: joining.broker_id in controller.states[key].isr, 200)
    network.hold(joining, leader.host_id)
    yield stage.random.choice((100, 450, 800))  # by then it has asked again
    network.let_go(controller, leader.host_id)
    yield stage.random.choice((1, 60, 200))
    network.let_go(joining, leader.host_id)


def after_an_acknowledgement(stage: Stage, key: TopicPartition) -> Script:
    """The leader dies as soon as it has said that something is safe."""
    before = stage.acknowledgements(key)
    yield from stage.until(lambda: stage.acknowledgements(key) > before, 400)
    leader = stage.leader(key)
    if leader is not None:
        if stage.random.random() < 0.5 and stage.cluster.lose_power(leader.broker_id):
            yield from stage.start(leader.broker_id)
        else:
            stage.cluster.kill(leader.broker_id)


def deposed_leader(stage: Stage, key: TopicPartition) -> Script:
    """It is cut off from the controller only, and goes on as if nothing had happened; so do those who follow it."""
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
    """Leaders follow each other, each with a record or two that nobody has fetched."""
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
            stage.network.let_go(one, leader.host_id)
        if stage.random.random() < 0.3:
            stage.cluster.kill(leader.broker_id)


def cut_log(stage: Stage, key: TopicPartition) -> Script:
    """A leader's records that nobody has are cut off, others take their place, and then its power fails."""
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
        stage.network.let_go(one, leader.host_id)
    if stage.random.random() < 0.5:
        yield stage.random.choice((5, 30, 100, 300))
    else:
        yield from stage.until(lambda: log.log_end_offset > end, 900)
    if leader.is_alive and stage.random.random() < 0.5:
        leader.directory.checkpoint()
    if stage.cluster.lose_power(leader.broker_id):
        yield from stage.start(leader.broker_id)


def regrown_log(stage: Stage, key: TopicPartition) -> Script:
    """Whole segments of a leader are cut off, others grow past its old recovery point, and then its power fails.

    The new leader gets its records first, so that the log is cut and grows again between two checkpoints.
    """
    leader, followers = stage.leader(key), stage.followers(key)
    if leader is None or not followers:
        return
    network, controller = stage.network, stage.cluster.controller
    log = leader.node.partitions.find(key).log
    for one in followers:
        network.hold(one, leader.host_id)
    network.hold(leader, CONTROLLER_ID)  # no replica is dropped: the high watermark stands still
    base = log.segments.active.base_offset
    yield from stage.until(lambda: log.segments.active.base_offset > base, 700)
    if stage.random.random() < 0.5:  # the sync of those segments is done before the cut, or else after it
        yield from stage.until(lambda: log.recovery_point > log.high_watermark, 200)
        leader.directory.checkpoint()
    end, cuts = log.log_end_offset, log.cuts
    for one in followers:
        network.hold(leader, one.host_id)
    controller.move_leader(key)
    network.let_go(leader, CONTROLLER_ID)
    yield from stage.until(lambda: _leading_end(stage, key) > end, 900)
    for one in followers:
        network.let_go(one, leader.host_id)
        network.let_go(leader, one.host_id)
    yield from stage.until(lambda: log.cuts > cuts and log.log_end_offset > end, 200)
    if stage.random.random() < 0.5:  # the first sync that ends afterwards counts
        point = log.recovery_point
        yield from stage.until(lambda: log.recovery_point > point, 1_500)
        if leader.is_alive:
            leader.directory.checkpoint()
    if stage.cluster.lose_power(leader.broker_id):
        yield from stage.start(leader.broker_id)


def _leading_end(stage: Stage, key: TopicPartition) -> int:
    """Return the end of the current leader's log, or -1 if nobody leads."""
    leader = stage.leader(key)
    return -1 if leader is None else leader.node.partitions.find(key).log.log_end_offset


def late_answer(stage: Stage, key: TopicPartition) -> Script:
    """What an earlier leader has answered comes when there is another, or the same one in another epoch."""
    leader, followers = stage.leader(key), stage.followers(key)
    if leader is None or not followers:
        return
    follower = followers[0]
    stage.network.hold(leader, follower.host_id)
    yield from stage.until(lambda: stage.network.held(leader, follower.host_id) > 0, 150)
    for _ in range(stage.random.choice((1, 2))):
        stage.cluster.controller.move_leader(key)
        yield stage.random.choice((2, 20, 60))
    stage.network.let_go(leader, follower.host_id)


def late_decision(stage: Stage, key: TopicPartition) -> Script:
    """What the controller has decided is told when the leader has lost and won again, and others have joined since."""
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
    network.let_go(controller, leader.host_id)
    yield stage.random.choice((5, 30, 100))
    network.let_go(gone, leader.host_id)


def late_fetch_of_an_epoch(stage: Stage, key: TopicPartition) -> Script:
    """Where a follower was, in an epoch before the one in which it had to go back; then that leader leads again."""
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
    network.let_go(leader, other.host_id)
    network.let_go(other, leader.host_id)
    yield stage.random.choice((5, 15, 40))
    network.let_go(follower, leader.host_id)


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
