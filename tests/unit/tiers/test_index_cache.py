"""IndexCache: the indexes of remote segments, loaded by several threads, within its limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.log.disk import file_names
from tailrace.log.disk.files import DiskFiles
from tailrace.tiers.reading.index_cache import IndexCache
from tailrace.tiers.remote_segment import RemoteSegment
from tailrace.tiers.stores.remote_store import IndexKind, RemoteStorageError, RemoteStore
from tests.support.tier_makers import LAYOUTS, small_log
from tests.support.tiered_logs import copy_log

FILES = DiskFiles()


class Tier:
    def __init__(self, path: Path, size_max: int = 10**9, ttl_ms: int = 60_000) -> None:
        self.path = path
        self.store = LAYOUTS["local"](str(path / "remote"))
        log = small_log(path / "topic-0", segments=4)
        self.segments = copy_log(self.store, log, FILES, str(path / "topic-0"))
        self.size_max, self.ttl_ms = size_max, ttl_ms
        self.cache = self.opened()

    def opened(self, now_ms: int = 0) -> IndexCache:
        return IndexCache(FILES, str(self.path), lambda: self.size_max, self.ttl_ms, now_ms)

    def names(self) -> list[str]:
        return sorted(one.name for one in (self.path / file_names.REMOTE_INDEXES).iterdir())

    def load(self, segment: RemoteSegment, now_ms: int = 0) -> None:
        self.cache.keep(segment, self.cache.load(segment, self.store), now_ms)


@pytest.fixture
def tier(tmp_path: Path) -> Tier:
    return Tier(tmp_path)


class NestedLoad:
    """A store in which another thread loads the same segment while the first one is between two indexes."""

    def __init__(self, tier: Tier) -> None:
        self._tier = tier
        self.is_nested = False

    def fetch_index(self, segment: RemoteSegment, kind: IndexKind) -> bytes:
        if kind is IndexKind.TIMESTAMP and not self.is_nested:
            self.is_nested = True
            self._tier.load(segment)
            self._tier.cache.forget(segment)
        return self._tier.store.fetch_index(segment, kind)


def test_two_loads_of_one_segment_do_not_share_files(tier: Tier) -> None:
    (segment, *_) = tier.segments
    store = NestedLoad(tier)
    loaded = tier.cache.load(segment, store)  # type: ignore[arg-type]
    assert store.is_nested
    kept = tier.cache.keep(segment, loaded, 0)
    assert kept.offsets.count > 0
    assert len(tier.names()) == 3


def test_the_second_of_two_loads_leaves_no_files(tier: Tier) -> None:
    (segment, *_) = tier.segments
    first, second = (tier.cache.load(segment, tier.store) for _ in range(2))
    kept = tier.cache.keep(segment, first, 0)
    assert tier.cache.keep(segment, second, 0) is kept
    assert len(tier.names()) == 3
    assert tier.cache.size == kept.size


class Failing:
    def __init__(self, store: RemoteStore) -> None:
        self._store = store

    def fetch_index(self, segment: RemoteSegment, kind: IndexKind) -> bytes:
        if kind is IndexKind.TIMESTAMP:
            raise RemoteStorageError("no connection")
        return self._store.fetch_index(segment, kind)


def test_a_load_that_fails_leaves_no_files(tier: Tier) -> None:
    with pytest.raises(RemoteStorageError):
        tier.cache.load(tier.segments[0], Failing(tier.store))  # type: ignore[arg-type]
    assert tier.names() == []


def test_a_start_removes_the_files_of_loads_and_keeps_complete_sets(tier: Tier) -> None:
    tier.load(tier.segments[0])
    tier.cache.load(tier.segments[1], tier.store)
    assert len(tier.names()) == 6
    again = tier.opened()
    assert len(tier.names()) == 3
    assert again.find(tier.segments[0], 0) is not None
    assert again.size == tier.cache.size


def test_a_corrupt_file_of_the_cache_is_removed_and_fetched_again(tier: Tier) -> None:
    (segment, *_) = tier.segments
    tier.load(segment)
    (
        tier.path / file_names.REMOTE_INDEXES / next(name for name in tier.names() if name.endswith(".index"))
    ).write_bytes(b"x" * 13)
    again = tier.opened()
    assert again.find(segment, 0) is None
    assert (tier.names(), again.size) == ([], 0)


@pytest.mark.parametrize("ending", [".index", ".timeindex", ".txnindex"])
def test_a_set_that_lost_a_file_after_the_start_is_fetched_again(tier: Tier, ending: str) -> None:
    (segment, *_) = tier.segments
    tier.load(segment)
    again = tier.opened()
    (lost,) = (name for name in tier.names() if name.endswith(ending))
    (tier.path / file_names.REMOTE_INDEXES / lost).unlink()
    assert again.find(segment, 0) is None
    assert (tier.names(), again.size) == ([], 0)


def test_the_least_recently_used_indexes_have_to_go_above_the_limit(tier: Tier) -> None:
    first, second, third, _ = tier.segments
    for segment in (first, second):
        tier.load(segment)
    tier.size_max = tier.cache.size
    assert tier.cache.find(first, 1) is not None
    tier.load(third, 2)
    assert tier.cache.find(second, 3) is None
    assert tier.cache.find(first, 3) is not None
    assert tier.cache.size <= tier.size_max
    tier.size_max = 1
    tier.cache.expire(4)
    assert len(tier.names()) == 3, "the latest one always stays"


def test_indexes_that_were_not_used_for_the_ttl_are_removed(tmp_path: Path) -> None:
    tier = Tier(tmp_path, ttl_ms=100)
    tier.load(tier.segments[0], 0)
    tier.load(tier.segments[1], 50)
    tier.cache.expire(101)
    assert tier.cache.find(tier.segments[0], 101) is None
    assert tier.cache.find(tier.segments[1], 101) is not None
    tier.cache.expire(202)
    assert (tier.names(), tier.cache.size) == ([], 0)


def test_a_negative_ttl_keeps_indexes(tmp_path: Path) -> None:
    tier = Tier(tmp_path, ttl_ms=-1)
    tier.load(tier.segments[0])
    tier.cache.expire(10**12)
    assert tier.cache.find(tier.segments[0], 10**12) is not None
