"""L12: files are renamed away at once and removed later."""

from __future__ import annotations

from tailrace.log.leader_epochs import LeaderEpochs
from tailrace.log.producers.producer_states import ProducerStates
from tailrace.log.segments.position import LogPosition
from tailrace.log.segments.segment_list import SegmentList
from tailrace.log.upkeep.deferred import Deferred
from tailrace.log.upkeep.durability import Durability
from tailrace.log.upkeep.log_owner import LogOwner
from tailrace.log.upkeep.removal import Removal
from tailrace.log.watermarks import Watermarks
from tailrace.model.ids import TopicPartition
from tests.support.memory_files import MemoryFiles
from tests.support.small_logs import FOLDER, new_files, new_segment, placed, put


def parts(files: MemoryFiles) -> tuple[Removal, Deferred, ProducerStates]:
    producers = ProducerStates(files, FOLDER, TopicPartition("topic", 0))
    deferred = Deferred()
    epochs = LeaderEpochs(files, f"{FOLDER}/leader-epoch-checkpoint")
    durability = Durability(SegmentList(), Watermarks(0, LogPosition(0), LogPosition(0)), epochs, 0, 0, lambda: None)
    return (
        Removal(files, deferred, producers, durability, LogOwner),
        deferred,
        producers,
    )


def test_l12_files_are_marked_at_once_and_removed_after_the_delay() -> None:
    files = new_files()
    removal, deferred, _ = parts(files)
    segment = new_segment(files, 5)
    put(segment, placed(5, b"a"))
    removal.mark_deleted([segment], 1000)
    kinds = (".index", ".log", ".timeindex")
    assert sorted(files.tree(FOLDER)) == [f"00000000000000000005{kind}.deleted" for kind in kinds]
    deferred.run_due(999)
    assert len(files.tree(FOLDER)) == 3
    deferred.run_due(1000)
    assert files.tree(FOLDER) == {}
    assert files.open_count == 0


def test_l12_the_snapshot_at_a_segments_base_offset_is_removed_with_the_segment() -> None:
    files = new_files()
    removal, deferred, producers = parts(files)
    segment = new_segment(files, 5)
    for end in (5, 9):
        producers.end_offset = end
        producers.take_snapshot()
    removal.mark_snapshots_deleted([segment], 1000)
    snapshots = [name for name in sorted(files.tree(FOLDER)) if ".snapshot" in name]
    assert snapshots == ["00000000000000000005.snapshot.deleted", "00000000000000000009.snapshot"]
    deferred.run_due(1000)
    assert "00000000000000000005.snapshot.deleted" not in files.tree(FOLDER)
    assert producers.latest_snapshot_offset == 9
