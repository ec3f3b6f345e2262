"""Segments compacted elsewhere replace those of the log if they fit it, and are removed if not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tailrace.log.compaction.cleaner_range import find_dirty_range
from tailrace.log.compaction.proposal import PROPOSAL, TAKEN, Proposal, RefusedProposal, is_waiting, take
from tailrace.log.partition_log import PartitionLog
from tests.support.memory_files import MemoryFiles
from tests.support.proposals import propose
from tests.support.small_logs import FOLDER, NOW_MS, new_files
from tests.unit.log.test_cleaner import clean, contents, filled, latest, names


def take_waiting(files: MemoryFiles, log: PartitionLog, clean_to: int | None = None) -> int | None:
    end = find_dirty_range(log, clean_to, NOW_MS).first_uncleanable_offset
    return take(
        files,
        FOLDER,
        log.segments,
        log.config,
        lambda new, old: log.replace_segments(new, old, NOW_MS),
        clean_to=clean_to,
        end=end,
    )


def test_an_accepted_proposal_gives_the_same_log_as_the_cleaner() -> None:
    files, others = new_files(), new_files()
    log, cleaned = filled(files), filled(others)
    assert take_waiting(files, log) is None
    propose(files, log, None, NOW_MS)
    assert is_waiting(files, FOLDER)
    assert take_waiting(files, log) == clean(others, cleaned).end_offset == 120
    assert not is_waiting(files, FOLDER)
    log.run_due(NOW_MS + 10**6)
    cleaned.run_due(NOW_MS + 10**6)
    assert files.tree(FOLDER) == others.tree(FOLDER)
    assert contents(log) == contents(cleaned)


def spoil_segment(files: MemoryFiles, log: PartitionLog) -> None:
    files.set_modified_ms(log.segments[1].log.path, 5)


def clean_meanwhile(files: MemoryFiles, log: PartitionLog) -> None:
    clean(files, log)


def cut_proposed(files: MemoryFiles, log: PartitionLog) -> None:
    files.open(f"{FOLDER}/{names(files, '.log.proposed')[-1]}").truncate(10)


def garble(files: MemoryFiles, log: PartitionLog) -> None:
    files.write(f"{FOLDER}/{PROPOSAL}", b'{"version": 1, "groups": 7}', sync=True)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (spoil_segment, r"segment \d+ has changed since the proposal"),
        (clean_meanwhile, "segment 0 has changed since the proposal"),
        (cut_proposed, "does not have the .* bytes of the proposal"),
        (garble, "the manifest of the proposal cannot be read"),
    ],
)
def test_a_proposal_that_does_not_fit_is_refused_and_removed(
    spoil: Callable[[MemoryFiles, PartitionLog], None], why: str
) -> None:
    files = new_files()
    log = filled(files)
    rows = contents(log)
    propose(files, log, None, NOW_MS)
    spoil(files, log)
    with pytest.raises(RefusedProposal, match=why):
        take_waiting(files, log)
    assert not is_waiting(files, FOLDER)
    assert names(files, ".proposed") == names(files, ".cleaned") == []
    assert contents(log) in (rows, latest(rows))


def test_a_proposal_for_another_clean_offset_is_refused() -> None:
    files = new_files()
    log = filled(files)
    propose(files, log, None, NOW_MS)
    with pytest.raises(RefusedProposal, match="is clean up to 60, but was up to None for the proposal"):
        take_waiting(files, log, 60)


def test_files_of_an_interrupted_swap_are_removed() -> None:
    files = new_files()
    log = filled(files)
    rows = contents(log)
    propose(files, log, None, NOW_MS)
    files.replace(f"{FOLDER}/{PROPOSAL}", f"{FOLDER}/{TAKEN}")
    assert is_waiting(files, FOLDER)
    assert take_waiting(files, log) is None
    assert not is_waiting(files, FOLDER)
    assert names(files, ".proposed") == []
    assert contents(log) == rows


def test_a_manifest_is_read_as_it_was_written() -> None:
    files = new_files()
    written = propose(files, filled(files), None, NOW_MS)
    assert Proposal.from_json(written.to_json()) == written
    for bad in (
        b"",
        b"[]",
        b"[" * 100_000,
        b'{"version": 2}',
        b'{"version": 1, "before": null, "after": 5, "groups": [{"old": []}]}',
    ):
        with pytest.raises((ValueError, KeyError, TypeError, IndexError)):
            Proposal.from_json(bad)
