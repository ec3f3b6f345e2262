"""The parent of the shards: starts, ends, restarts with pauses, and the order of a stop."""

from __future__ import annotations

from tailrace.node.shards.supervisor import FAILED_STARTS_MAX, FIRST_PAUSE_S, STABLE_S, STOP_S_MAX, Supervisor


class FakeShard:
    def __init__(self, number: int, pid: int) -> None:
        self.number = number
        self.pid = pid
        self.error: str | None = None
        self.is_running = True
        self.is_ready = False
        self.ending = "ended with status 2"
        self.has_succeeded = False
        self.stops = 0
        self.ended: list[int] = []  # the shards whose end was announced
        self.is_killed = self.is_closed = False

    def announce_end(self, number: int) -> None:
        self.ended.append(number)

    def request_stop(self) -> None:
        self.stops += 1

    def kill(self) -> None:
        self.is_killed = True

    def close(self) -> None:
        self.is_closed = True


class Node:
    """A supervisor with fake shards and a clock."""

    def __init__(self, count: int, *, is_ready: bool = True) -> None:
        self.launched: list[FakeShard] = []
        self.supervisor = Supervisor(count, self._launch)
        self.now_s = 100.0
        self.supervisor.start(self.now_s)
        if is_ready:
            for shard in self.launched:
                shard.is_ready = True
            self.tick()

    def _launch(self, number: int) -> FakeShard:
        self.launched.append(FakeShard(number, 1_000 + len(self.launched)))
        return self.launched[-1]

    def shard(self, number: int) -> FakeShard:
        """Return the latest process of a shard."""
        return next(one for one in reversed(self.launched) if one.number == number)

    def tick(self, seconds: float = 0.0) -> None:
        self.now_s += seconds
        self.supervisor.tick(self.now_s)

    def end(self, number: int, error: str | None = None) -> None:
        self.shard(number).is_running = False
        self.shard(number).error = error
        self.tick()


def test_the_node_has_served_when_all_shards_are_ready() -> None:
    node = Node(2, is_ready=False)
    node.shard(1).is_ready = True
    node.tick()
    assert not node.supervisor.has_served
    assert node.supervisor.not_ready_reason() == "shard 2 is not ready"
    node.shard(2).is_ready = True
    node.tick()
    assert node.supervisor.has_served
    assert node.supervisor.not_ready_reason() is None


def test_a_shard_that_cannot_start_stops_the_others_in_order() -> None:
    node = Node(3, is_ready=False)
    node.shard(1).is_ready = True
    node.end(3, "cannot listen on PLAINTEXT://127.0.0.1:9094: Address already in use")
    assert node.supervisor.failure == (
        "shard 3 cannot start: cannot listen on PLAINTEXT://127.0.0.1:9094: Address already in use"
    )
    assert (node.shard(1).stops, node.shard(2).stops) == (0, 1)
    node.end(2)
    assert node.shard(1).stops == 1
    assert not node.supervisor.has_ended
    node.end(1)
    assert node.supervisor.has_ended
    assert [one.is_closed for one in node.launched] == [True, True, True]


def test_a_killed_shard_is_restarted_after_a_pause_and_the_controller_knows() -> None:
    node = Node(2)
    node.shard(2).ending = "was killed by SIGKILL"
    node.end(2)
    assert node.shard(1).ended == [2]
    assert len(node.launched) == 2
    assert node.supervisor.next_deadline_s() == node.now_s + FIRST_PAUSE_S
    assert node.supervisor.not_ready_reason() == "shard 2 is not ready"
    node.tick(FIRST_PAUSE_S)
    assert node.shard(2).pid == 1_002
    node.shard(2).is_ready = True
    node.tick()
    assert node.supervisor.restarts == {1: 0, 2: 1}
    assert node.supervisor.not_ready_reason() is None


def test_pauses_double_while_a_shard_keeps_ending_and_begin_again_after_a_stable_time() -> None:
    node = Node(2)
    pauses = []
    for _ in range(4):
        node.end(2)
        deadline_s = node.supervisor.next_deadline_s()
        assert deadline_s is not None
        pauses.append(round(deadline_s - node.now_s, 3))
        node.tick(deadline_s - node.now_s)
        node.shard(2).is_ready = True
        node.tick()
    assert pauses == [0.1, 0.2, 0.4, 0.8]
    node.tick(STABLE_S)
    node.end(2)
    assert node.supervisor.next_deadline_s() == node.now_s + FIRST_PAUSE_S


def test_a_controller_that_is_restarted_learns_which_shards_have_ended() -> None:
    node = Node(3)
    node.end(1)
    node.end(3)
    assert node.shard(2).ended == []
    node.tick(FIRST_PAUSE_S)
    assert node.shard(1).ended == []
    node.shard(1).is_ready = True
    node.tick()
    assert node.shard(1).ended == [3]


def test_a_shard_that_cannot_be_restarted_ends_the_node() -> None:
    node = Node(2)
    node.end(2)
    for attempt in range(FAILED_STARTS_MAX):
        assert node.supervisor.failure is None, attempt
        deadline_s = node.supervisor.next_deadline_s()
        assert deadline_s is not None
        node.tick(deadline_s - node.now_s)
        node.end(2, "./data/shard2 cannot be read")
    assert node.supervisor.failure == (
        f"shard 2 cannot be restarted after {FAILED_STARTS_MAX} attempts: ./data/shard2 cannot be read"
    )
    assert node.supervisor.has_served
    assert node.shard(1).stops == 1


def test_a_stop_begins_with_the_brokers_and_ends_with_the_controller() -> None:
    node = Node(3)
    node.supervisor.request_stop()
    node.tick()
    assert [node.shard(number).stops for number in (1, 2, 3)] == [0, 1, 1]
    node.end(3)
    node.tick()
    assert [node.shard(number).stops for number in (1, 2)] == [0, 1]
    node.end(2)
    assert node.shard(1).stops == 1
    node.end(1)
    assert node.supervisor.has_ended
    assert node.supervisor.failure is None
    assert len(node.launched) == 3


def test_a_second_stop_request_hurries_the_shards_that_are_stopping() -> None:
    node = Node(2)
    node.supervisor.request_stop()
    node.tick()
    node.supervisor.request_stop()
    assert (node.shard(1).stops, node.shard(2).stops) == (0, 2)


def test_a_stop_during_a_pause_restarts_nothing() -> None:
    node = Node(2)
    node.end(2)
    node.supervisor.request_stop()
    node.tick(FIRST_PAUSE_S)
    assert len(node.launched) == 2
    assert node.shard(1).stops == 1


def test_shards_that_do_not_stop_are_killed() -> None:
    node = Node(2)
    node.supervisor.request_stop()
    node.tick()
    node.tick(STOP_S_MAX)
    assert not node.shard(2).is_killed
    node.tick(1)
    assert node.shard(2).is_killed
    assert not node.shard(1).is_killed
