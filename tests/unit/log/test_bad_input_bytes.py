"""Any byte flipped, any file cut, missing, empty or of another version: the harm stays where the damage is."""

from __future__ import annotations

import logging

import pytest

from tailrace.log.disk.file_names import OFFSET_INDEX
from tailrace.records.batch import split_batches
from tests.unit.log.bad_input import (
    CONFIG,
    DAMAGED,
    NOW,
    ROOT,
    Reading,
    Sample,
    batch,
    check_sound,
    load_tree,
    read_all,
    sample,
    value,
)

SAMPLES = {is_clean: sample(clean=is_clean) for is_clean in (True, False)}
NAMES = sorted(
    {name for one in SAMPLES.values() for name in one.tree if "/" not in name or name.startswith("damaged-0/")}
)
BATCH_SIZE = 75  # of those in the last segment
# A batch's first bytes are its offset, and then its leader epoch: no checksum covers them.
UNCOVERED = [*range(8), *range(12, 16)]
STEP = 7  # of the sampled sweeps; the slow ones leave nothing out


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="tailrace.log")


def flipped(data: bytes, position: int, mask: int) -> bytes:
    return data[:position] + bytes([data[position] ^ mask]) + data[position + 1 :]


def is_unflushed(one: Sample, name: str) -> bool:
    """Return True only for the last segment after a crash."""
    return not one.clean and "0007" in name


def check_damaged(one: Sample, name: str, data: bytes | None) -> None:
    """Load the sample with other bytes in one file; nothing else may be worse for it, and nothing may get lost."""
    tree = {other: content for other, content in one.tree.items() if other != name}
    if data is not None:
        tree[name] = data
    files, directory, report = load_tree(tree)
    check_sound(directory, one)
    if DAMAGED not in directory.logs:
        assert f"{ROOT}/{name}" in report.failed["damaged-0"]
        assert files.tree(ROOT)[name] == data, "an offline log was changed"
        return
    log = directory.logs[DAMAGED]
    reading = read_all(log)
    if name.endswith(".log"):
        check_reading_beside(one, name, reading)
        if data is not None:
            check_kept(one, name, data, files.tree(ROOT))
    else:
        assert reading == Reading(one.batches, [])
    end = log.log_end_offset
    assert log.append_as_leader(batch(b"more"), leader_epoch=9, now_ms=NOW).first_offset == end


def check_reading_beside(one: Sample, name: str, reading: Reading) -> None:
    """Check that other segments keep their batches, and that errors name the damaged file and a position."""
    inside = {found.base_offset for found in split_batches(one.tree[name])}
    later = {offset for offset in one.batches if offset > max(inside)}
    for offset, data in one.batches.items():
        # What follows an unflushed segment that is cut goes with it; here it is the last one.
        if offset not in inside and not (is_unflushed(one, name) and offset in later):
            assert reading.good.get(offset) == data, f"offset {offset} beside the damage"
    for complaint in reading.complaints:
        assert complaint.startswith(f"{ROOT}/{name} at position ")


def check_kept(one: Sample, name: str, data: bytes, tree: dict[str, bytes]) -> None:
    """Check that a cut log has a copy of the cut bytes, unless only a torn tail was cut."""
    found = tree[name]
    copies = [content for other, content in tree.items() if other.startswith(name) and other.endswith(".broken")]
    if found != data:
        assert data.startswith(found)
        assert copies == [data[len(found) :]] or (is_unflushed(one, name) and len(data) - len(found) <= BATCH_SIZE)


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "crashed"])
@pytest.mark.parametrize("name", NAMES)
def test_a_flipped_byte_affects_no_other_batch(name: str, is_clean: bool) -> None:
    one = SAMPLES[is_clean]
    data = one.tree.get(name, b"")
    for position in range(0, len(data), STEP):
        check_damaged(one, name, flipped(data, position, 0xFF))


@pytest.mark.slow
@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "crashed"])
@pytest.mark.parametrize("name", NAMES)
def test_any_flipped_bit_or_truncation_affects_no_other_batch(name: str, is_clean: bool) -> None:
    one = SAMPLES[is_clean]
    data = one.tree.get(name, b"")
    for position in range(len(data)):
        check_damaged(one, name, data[:position])
        for bit in range(8):
            check_damaged(one, name, flipped(data, position, 1 << bit))


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "crashed"])
@pytest.mark.parametrize("name", NAMES)
def test_a_truncated_or_missing_file_affects_no_other_file(name: str, is_clean: bool) -> None:
    one = SAMPLES[is_clean]
    if name in one.tree:
        for length in range(0, len(one.tree[name]), STEP):
            check_damaged(one, name, one.tree[name][:length])
        check_damaged(one, name, None)


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "crashed"])
def test_a_flipped_byte_under_a_checksum_is_detected(is_clean: bool) -> None:
    """Read as a consumer reads, with its checksums: what is good is what was written."""
    one = SAMPLES[is_clean]
    for name in one.names("damaged-0/"):
        if not name.endswith(".log"):
            continue
        position = 0
        for found in split_batches(one.tree[name]):
            for inside in range(found.size):
                if inside not in UNCOVERED and inside % STEP == 0:
                    _, directory, _ = load_tree(one.tree | {name: flipped(one.tree[name], position + inside, 0x20)})
                    if DAMAGED in directory.logs:
                        good = read_all(directory.logs[DAMAGED]).good
                        assert found.base_offset not in good, f"{name} at {position + inside}"
                        assert good.items() <= one.batches.items()
            position += found.size


def test_rebuilding_the_index_of_a_damaged_flushed_segment_truncates_nothing() -> None:
    one = SAMPLES[True]
    for name in one.names("damaged-0/"):
        if name.endswith(".log"):
            for position in range(0, len(one.tree[name]), STEP):
                data = flipped(one.tree[name], position, 0x7F)
                tree = one.tree | {name: data}
                del tree[name.removesuffix(".log") + OFFSET_INDEX]
                files, _, _ = load_tree(tree)
                check_kept(one, name, data, files.tree(ROOT))


VERSIONS = {
    "damaged-0/leader-epoch-checkpoint": (b"1\n0\n", "unknown version '1'"),
    "damaged-0/partition.metadata": (b"version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAABw", "unknown version '1'"),
}


@pytest.mark.parametrize("name", VERSIONS)
def test_a_file_of_another_version_takes_its_partition_offline(name: str) -> None:
    data, message = VERSIONS[name]
    files, directory, report = load_tree(SAMPLES[True].tree | {name: data})
    assert report.failed == {"damaged-0": f"{ROOT}/{name}: {message}" + (" in line 1" if "leader" in name else "")}
    check_sound(directory, SAMPLES[True])
    assert files.tree(ROOT)[name] == data


@pytest.mark.parametrize(
    "name", ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint"]
)
def test_a_checkpoint_of_another_version_is_ignored_and_kept(name: str) -> None:
    files, directory, report = load_tree(SAMPLES[False].tree | {name: b"7\n0\n"})
    assert not report.failed
    assert read_all(directory.logs[DAMAGED]) == Reading(SAMPLES[False].batches, [])
    directory.close(NOW)
    assert files.tree(ROOT)[name + ".broken"] == b"7\n0\n"


def test_an_index_entry_of_another_version_is_rebuilt() -> None:
    one = SAMPLES[True]
    (name,) = [name for name in one.names("damaged-0/") if name.endswith(".txnindex")]
    files, directory, report = load_tree(one.tree | {name: b"\0\7" + one.tree[name][2:]})
    assert files.tree(ROOT)[name] == one.tree[name]
    assert "unknown entry version 7" in report.recoveries[DAMAGED].problems[0]
    check_sound(directory, one)


def test_a_snapshot_of_another_version_is_ignored() -> None:
    one = SAMPLES[True]
    snapshots = [name for name in one.names("damaged-0/") if name.endswith(".snapshot")]
    tree = one.tree | {name: b"\0\7" + one.tree[name][2:] for name in snapshots}
    _, directory, _ = load_tree(tree)
    assert directory.logs[DAMAGED].producers.producers[5].last_sequence == 2


def test_arbitrary_bytes_are_not_read_as_a_log() -> None:
    one = SAMPLES[False]
    for data in (b"\0" * 500, b"\xff" * 500, b"GET / HTTP/1.1\r\n" * 20, value(1)):
        for name in one.names("damaged-0/"):
            tree = one.tree | {name: data}
            _, directory, _ = load_tree(tree)
            check_sound(directory, one)
            if DAMAGED in directory.logs:
                read_all(directory.logs[DAMAGED])
    assert CONFIG.roll_bytes < 500
