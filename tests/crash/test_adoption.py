"""A crash while segments of a load are taken in leaves what was there, and of the load its first whole segments."""

from __future__ import annotations

import logging
from random import Random

import pytest

from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.recovery.adoption import adopt, staged_segments
from tailrace.log.recovery.recovery import open_log
from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.model.ids import TopicPartition
from tailrace.model.topic_config import TopicConfig
from tests.crash.exploration import load
from tests.support.batches import batch, stored_batches
from tests.support.crash_states import crash_points, describe
from tests.support.memory_files import FolderNode, MemoryFiles, memory_files
from tests.support.recording_files import Link, RecordingFiles, Unlink

NOW_MS = 1_700_000_000_000
PARTITION = TopicPartition("t", 0)
STAGED = "/staging/t-0"


class MovingFiles(RecordingFiles):
    """A file that moves to another folder gets a name there and loses the one it had; a crash may keep either alone."""

    def _rename(self, source: FolderNode, source_name: str, target: FolderNode, target_name: str) -> None:
        if source is target:
            super()._rename(source, source_name, target, target_name)
            return
        node = source.entries[source_name]
        MemoryFiles._rename(self, source, source_name, target, target_name)
        self.trace.append(Link(target.number, target_name, node.number, False))
        self.trace.append(Unlink(source.number, source_name))


def with_a_load(config: TopicConfig, before: int, first: int) -> MemoryFiles:
    """Make a directory that was stopped cleanly with some records, and a load of three segments beside it."""
    files = MemoryFiles()
    directory = LogDirectory(files, "/data", new_id=lambda: "id")
    directory.load(lambda topic: config, NOW_MS)
    log = directory.create(PARTITION, config, NOW_MS)
    for number in range(before):
        log.append_as_leader(batch(b"before %d" % number), leader_epoch=1, now_ms=NOW_MS)
    directory.close(NOW_MS)
    files.make_directory("/staging")
    staged = open_log(files, STAGED, config, now_ms=NOW_MS, log_start_offset=first, clean=True)
    for number in range(6):
        data = batch(b"x" * 50, b"y" * 50, base_offset=first + 2 * number, leader_epoch=1)
        staged.append_as_follower(data, leader_epoch=1, now_ms=NOW_MS)
    staged.flush(NOW_MS)
    staged.close()
    assert len(staged.segments) == 3
    return files


@pytest.mark.parametrize(("before", "first"), [(0, 0), (4, 4), (0, 100), (4, 100)])
def test_a_crash_during_adoption_leaves_the_old_records_and_the_first_whole_segments(before: int, first: int) -> None:
    config = parse_topic_config({"internal.segment.bytes": "450", "file.delete.delay.ms": "0"})
    recording = MovingFiles(with_a_load(config, before, first).root)
    segments = staged_segments(recording, STAGED)
    directory, _ = load(recording, config, NOW_MS)
    adopt(recording, directory.logs[PARTITION], STAGED, 1, NOW_MS)
    done = len(recording.trace)
    directory.abandon()
    whole = [*range(before), *range(first, first + 12)]
    legal = [[*range(before), *range(first, edge)] for edge in [*segments[1:], first + 12]]
    legal += [list(range(before))]
    logging.getLogger("tailrace.log").setLevel(logging.CRITICAL)
    states = 0
    try:
        for point in crash_points(recording):
            for state in point.states(Random(7)):
                found = offsets(memory_files(state.tree), config)
                assert found in legal, f"{found} after {describe(state, recording)}"
                assert point.index < done or found == whole
                states += 1
    finally:
        logging.getLogger("tailrace.log").setLevel(logging.NOTSET)
    assert states > 50


def offsets(files: MemoryFiles, config: TopicConfig) -> list[int]:
    directory, _ = load(files, config, NOW_MS)
    log = directory.logs[PARTITION]
    found = [offset for one in stored_batches(log) for offset in range(one.base_offset, one.next_offset)]
    directory.abandon()
    return found
