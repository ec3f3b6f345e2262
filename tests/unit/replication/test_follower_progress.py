"""FollowerProgress: when a follower was last caught up."""

from __future__ import annotations

from tailrace.log.segments.position import LogPosition
from tailrace.replication.follower_progress import FollowerProgress


def at(offset: int) -> LogPosition:
    return LogPosition(offset, 0, offset * 100)


def test_a_fetch_from_the_log_end_is_caught_up_now() -> None:
    follower = FollowerProgress(2)
    follower.note_fetch(at(10), 0, 10, 7, 1_000)
    assert follower.last_caught_up_ms == 1_000
    assert (follower.log_end_offset, follower.log_start_offset, follower.broker_epoch) == (10, 0, 7)


def test_a_fetch_from_the_end_of_the_fetch_before_was_caught_up_then() -> None:
    follower = FollowerProgress(2)
    follower.note_fetch(at(5), 0, 10, 7, 1_000)
    assert follower.last_caught_up_ms == 0
    follower.note_fetch(at(10), 0, 20, 7, 2_000)
    assert follower.last_caught_up_ms == 1_000
    follower.note_fetch(at(15), 0, 30, 7, 3_000)
    assert follower.last_caught_up_ms == 1_000


def test_a_follower_is_caught_up_by_offset_or_by_time() -> None:
    follower = FollowerProgress(2)
    follower.note_fetch(at(10), 0, 10, 7, 1_000)
    assert follower.is_caught_up(10, 1_000_000, 100)
    assert follower.is_caught_up(11, 1_100, 100)
    assert not follower.is_caught_up(11, 1_101, 100)


def test_a_new_leader_gives_in_sync_followers_the_full_lag_time() -> None:
    for in_sync in (True, False):
        follower = FollowerProgress(2)
        follower.note_fetch(at(10), 0, 10, 7, 1_000)
        follower.start_under(5_000, in_sync=in_sync)
        assert (follower.log_end_offset, follower.log_start_offset, follower.broker_epoch) == (-1, -1, None)
        assert follower.is_caught_up(11, 5_050, 100) == in_sync


def test_a_re_elected_leader_keeps_the_progress_of_its_followers() -> None:
    for in_sync in (True, False):
        follower = FollowerProgress(2)
        follower.note_fetch(at(10), 3, 10, 7, 1_000)
        follower.continue_under(12, 5_000, in_sync=in_sync)
        assert (follower.log_end_offset, follower.log_start_offset, follower.broker_epoch) == (10, 3, 7)
        assert follower.last_caught_up_ms == follower.last_fetch_ms == (5_000 if in_sync else 0)
        assert "FollowerProgress(2, log 3 to 10" in repr(follower)
