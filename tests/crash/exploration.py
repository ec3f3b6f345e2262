"""Recover every crash state of a driven log and hold it against what is legal."""

from __future__ import annotations

import hashlib
import logging
from random import Random
from typing import NamedTuple

from tailrace.log.directories.log_directory import LoadReport, LogDirectory
from tailrace.log.partition_log import PartitionLog
from tailrace.model.ids import TopicId, TopicPartition
from tailrace.model.topic_config import TopicConfig
from tests.crash.driven_log import ROOT, Driver, Expectation
from tests.crash.log_checks import check_log
from tests.support.batches import StoredBatch, batch, stored_batches
from tests.support.crash_states import CrashState, crash_points, describe
from tests.support.memory_files import MemoryFiles, memory_files


class RecoveredLog(NamedTuple):
    batches: tuple[StoredBatch, ...]
    start: int
    end: int
    topic_id: TopicId | None


class Recovered(NamedTuple):
    was_clean: bool
    was_scanned: bool
    logs: dict[TopicPartition, RecoveredLog]


class Explored(NamedTuple):
    points: int
    states: int
    distinct: int


def explore(driver: Driver, *, seed: int = 0, effort: int = 1, first: int = 0, one_in: int = 1) -> Explored:
    """Recover from crashes at crash points from operation `first` on: at one in `one_in` of them, chosen by the seed.

    Each distinct state of the files is recovered once.
    """
    rng = Random(seed)
    cache: dict[bytes, Recovered] = {}
    points = states = 0
    # A crash is noisy by design: what recovery warns about is checked through its outcome.
    logging.getLogger("tailrace.log").setLevel(logging.CRITICAL)
    try:
        for point in crash_points(driver.files, first=first):
            if rng.randrange(one_in):
                continue
            points += 1
            expected = driver.expectation_at(point.index)
            for state in point.states(rng, effort=effort):
                states += 1
                _judge(driver, state, expected, cache, seed)
    finally:
        logging.getLogger("tailrace.log").setLevel(logging.NOTSET)
    return Explored(points, states, len(cache))


def some_states(driver: Driver, *, seed: int, count: int) -> list[tuple[MemoryFiles, Expectation]]:
    """Return random crash states with their expected contents. Recovery has to cut at least half of them."""
    rng = Random(seed)
    points = [point for point in crash_points(driver.files) if point.pending]
    found: list[tuple[MemoryFiles, Expectation]] = []
    while len(found) < count:
        point = rng.choice(points)
        state = rng.choice(list(point.states(rng)))
        _, report = load(memory_files(state.tree), driver.config, driver.now_ms)
        has_cut = any(recovery.bytes_cut or recovery.broken for recovery in report.recoveries.values())
        if has_cut or len(found) % 2:
            found.append((memory_files(state.tree), driver.expectation_at(point.index)))
    return found


def _judge(driver: Driver, state: CrashState, expected: Expectation, cache: dict[bytes, Recovered], seed: int) -> None:
    key = hashlib.sha1(repr(sorted(state.tree.items())).encode()).digest()
    try:
        if key not in cache:
            cache[key] = recover(state.tree, driver.config, driver.now_ms, driver.deleted_below)
        problems = judge(cache[key], expected)
    except Exception as error:
        raise AssertionError(f"{error!r}\n{describe(state, driver.files)}\nseed {seed}") from error
    assert not problems, "\n".join([*problems, describe(state, driver.files), f"seed {seed}"])


def judge(found: Recovered, expected: Expectation) -> list[str]:
    """Return the problems of a recovered directory."""
    problems = []
    if expected.must_be_clean and (not found.was_clean or found.was_scanned):
        problems.append("a stop that had ended cleanly was taken for a crash")
    for partition in found.logs.keys() - expected.partitions.keys():
        problems.append(f"{partition} should not be there")
    for partition, outcomes in expected.partitions.items():
        log = found.logs.get(partition)
        if log is None:
            if None not in outcomes:
                problems.append(f"{partition} is gone")
            continue
        reasons = [outcome.problem(*log) if outcome else "it should be gone" for outcome in outcomes]
        if all(reasons):
            problems += [f"{partition}: {reason}" for reason in reasons if reason]
    return problems


def recover(tree: dict[str, bytes], config: TopicConfig, now_ms: int, deleted_below: int) -> Recovered:
    """Open what a crash left, check everything, open it again, append, stop cleanly, open it once more."""
    files = memory_files(tree)
    files.make_directory(ROOT)
    directory, report = load(files, config, now_ms)
    for log in directory.logs.values():
        check_log(log, deleted_below)
    found = Recovered(
        report.was_clean, bool(report.recoveries), {name: view(log) for name, log in directory.logs.items()}
    )
    directory.abandon()

    settled = files.tree(ROOT)
    directory, _ = load(files, config, now_ms)
    again = {name: view(log) for name, log in directory.logs.items()}
    assert again == found.logs, "opening it a second time changed the log"
    changed = dict(significant(files.tree(ROOT)).items() ^ significant(settled).items())
    for name, log in found.logs.items():
        if not log.batches:
            # The epoch that covers the start of an empty log begins at its end, and so is dropped the next time.
            changed.pop(f"{name}/leader-epoch-checkpoint", None)
    assert not changed, f"opening it a second time changed {sorted(changed)}"

    for log in directory.logs.values():
        log.append_as_leader(batch((b"key", b"after"), timestamp=now_ms), leader_epoch=9, now_ms=now_ms)
        check_log(log, deleted_below)
    next_identity = {name: view(log) for name, log in directory.logs.items()}
    for name, log in found.logs.items():
        assert next_identity[name].batches[: len(log.batches)] == log.batches
        assert next_identity[name].end == log.end + 1
    directory.close(now_ms)
    directory, report = load(files, config, now_ms)
    assert report.was_clean
    assert not report.recoveries, f"scanned after a clean stop: {report.recoveries}"
    for log in directory.logs.values():
        check_log(log, deleted_below)
    assert {name: view(log) for name, log in directory.logs.items()} == next_identity
    directory.abandon()
    assert files.open_count == 0, f"{files.open_count} files stay open"
    return found


def load(files: MemoryFiles, config: TopicConfig, now_ms: int) -> tuple[LogDirectory, LoadReport]:
    directory = LogDirectory(files, ROOT, new_id=lambda: "again")
    report = directory.load(lambda topic: config, now_ms)
    assert not report.failed, report.failed
    return directory, report


def view(log: PartitionLog) -> RecoveredLog:
    return RecoveredLog(tuple(stored_batches(log)), log.log_start_offset, log.log_end_offset, log.topic_id)


def significant(tree: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files without the clean-shutdown marker and without the zeros of a preallocated segment."""
    return {
        name: data.rstrip(b"\0") if name.endswith(".log") else data
        for name, data in tree.items()
        if name != ".kafka_cleanshutdown"
    }
