"""Kernels with hostile input that ends at a guard page.

    python -m tests.property.guarded_kernels NAME SEED COUNT NOTE

Each input goes to the compiled kernel in guarded memory and to the interpreted one in ordinary memory, and both must
give the same result. This runs in a process of its own, which an access outside the input ends. NOTE is a file that
holds the number of the current input, so that the input can be made again.
"""

from __future__ import annotations

import random
import struct
import sys
from array import array
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

from tailrace.coordinator.offsets import offset_kernels
from tailrace.log.compaction import cleaner_kernels
from tailrace.log.recovery import scan_kernels
from tailrace.log.replicated import replicated_kernels
from tailrace.log.segments.indexes import index_kernels
from tailrace.protocol.flat import read_kernels, write_kernels
from tailrace.protocol.internal_records.coordinator_records import encode_key, encode_value
from tailrace.protocol.messages import (
    FetchRequest,
    OffsetCommitKey,
    OffsetCommitRequest,
    OffsetCommitValue,
    ProduceRequest,
)
from tailrace.records import header_kernels, kernels
from tailrace.records.batch import Codec
from tailrace.records.builder import BatchBuilder
from tailrace.records.checks import check_kernels
from tailrace.records.codecs import codec_kernels
from tailrace.records.columnar import column_encoder, columns, json_lines
from tailrace.records.legacy import build_messages
from tailrace.records.record import Record, TimestampType
from tests.fuzz.bytes_mutator import damage
from tests.fuzz.records_mutator import damage_records, repaired
from tests.fuzz.request_seeds import request_frame
from tests.property import guarded_writers
from tests.support.batches import batch
from tests.support.column_rows import rows as column_rows
from tests.support.guarded_memory import GuardedMemory
from tests.support.interpreted import interpreted, together

CAPACITY = 1 << 20
NUMBERS = (-(2**63), -(2**31), -2, -1, 0, 1, 2, 5, 127, 2**31 - 1, 2**40, 2**63 - 1)
TIMES = (-1, 0, 7, 10**12, 2**53, 2**63 - 1)


def good_batch(dice: random.Random, offset: int, codec: Codec) -> bytes:
    builder = BatchBuilder(
        base_offset=offset,
        codec=codec,
        leader_epoch=dice.choice((3, 3, 4)),
        timestamp_type=dice.choice(list(TimestampType)[-2:]),
        log_append_time_ms=dice.choice(TIMES[1:]),
        delete_horizon_ms=dice.choice((None, None, 999, 1001)),
        **dice.choice(({}, {"producer_id": 5, "producer_epoch": 1, "base_sequence": 3})),
    )
    for _ in range(dice.choice((1, 3, 3, 40, 1500 if dice.random() < 0.05 else 1))):
        key = dice.choice((None, b"", b"key %d" % dice.randrange(30), dice.randbytes(dice.randrange(40))))
        value = dice.choice((None, b"", dice.randbytes(dice.choice((1, 60, 300)))))
        headers = dice.choice(((), (), (("h", b"v"), ("", None)), (("größe", b""),)))
        builder.append(dice.choice(TIMES), key, value, headers, offset=offset)
        offset += dice.choice((1, 1, 70))
    return builder.build(last_offset=offset)


def good_messages(dice: random.Random, offset: int) -> bytes:
    found = [
        Record(offset + step, dice.choice(TIMES), TimestampType.CREATE_TIME, dice.choice((None, b"k")), b"v" * step)
        for step in range(dice.randrange(1, 4))
    ]
    codec = dice.choice((Codec.NONE, Codec.NONE, Codec.GZIP, Codec.LZ4))
    return build_messages(found, magic=dice.randrange(2), codec=codec)


def hostile_log(dice: random.Random, *, is_plain: bool) -> bytes:
    """Draw a few batches end to end. Half are damaged, many have a right checksum, and some are cut at the end."""
    out = b""
    offset = dice.choice((0, 100, 2**63 - 1000))
    for _ in range(dice.randrange(4)):
        codec = Codec.NONE if is_plain or dice.random() < 0.5 else dice.choice(list(Codec))
        piece = good_messages(dice, offset) if not is_plain and dice.random() < 0.2 else good_batch(dice, offset, codec)
        offset = min(offset + dice.choice((1, 100)), 2**63 - 1)
        match dice.randrange(4):
            case 0:
                piece = damage_records(piece, dice)
            case 1:  # inside its records, under a checksum that holds
                piece = repaired(piece[:61] + damage(piece[61:], dice))
        out += piece
    if dice.random() < 0.3:
        out = out[: dice.randrange(len(out) + 1)]
    return out[: CAPACITY // 2]


def outcome(run: Callable[[], Any]) -> Any:
    """Return the result, or the kind and the text of the error."""
    try:
        return run()
    except (IndexError, struct.error):
        raise  # the interpreted kernel was about to read outside its input
    except Exception as error:
        return type(error).__name__, str(error), getattr(error, "position", None)


def check_equal(compiled: Any, expected: Any) -> None:
    if compiled != expected:
        raise AssertionError(f"compiled:    {compiled!r:.2000}\ninterpreted: {expected!r:.2000}")


class Pair:
    """Kernel modules in both forms, and the memory for their input."""

    def __init__(self, *modules: ModuleType) -> None:
        for one in modules:
            assert one.COMPILED, f"{one.__name__} is not compiled"  # type: ignore[attr-defined]
        self.compiled: Any = together(*modules)
        self.interpreted: Any = together(*map(interpreted, modules))
        self.memory = GuardedMemory(CAPACITY)


def try_columns(pair: Pair, dice: random.Random) -> None:
    data = hostile_log(dice, is_plain=False)
    wanted = dice.choice((dice.randrange(2**13), 2**13 - 1))
    start = dice.choice((0, 0, 50, 2**63 - 1000))
    bounds = (start, dice.choice((2**63 - 1, start + dice.randrange(200))))
    limits = {"max_rows": dice.choice((1, 5, 10**6)), "min_timestamp": dice.choice((-(2**63), 0, 8))}
    aborted = {5: [(0, 120)]} if dice.random() < 0.2 else {}
    begin = dice.randrange(len(data) + 1) if dice.random() < 0.1 else 0

    def read(module: ModuleType, source: Any, allocate: Callable[[int], Any]) -> Any:
        found = module.RecordColumns(wanted, *bounds, **limits, aborted=aborted, allocate=allocate)  # type: ignore
        position, seen = begin, []
        for _ in range(50):
            position = found.put_batches(source, position, len(source))
            seen.append((column_rows(module, found), position, found.is_done, found.next_offset))
            if not found.is_full:
                break
            found.reset()
        return seen

    def guarded_room(size: int) -> memoryview:
        return GuardedMemory(size).room(size)

    ours = outcome(lambda: read(pair.compiled, pair.memory.view(data), guarded_room))
    check_equal(ours, outcome(lambda: read(pair.interpreted, data, bytearray)))


def try_replicated(pair: Pair, dice: random.Random) -> None:
    data = hostile_log(dice, is_plain=True)
    next_offset = dice.choice((0, 0, 100, 2**63 - 1000))

    def take(module: ModuleType, source: memoryview) -> Any:
        batches: list[Any] = []
        produced: list[tuple[int, memoryview]] = []
        epochs: list[Any] = []
        stop = module.take_replicated(source, 0, next_offset, 3, batches, epochs, produced)
        last = module.last_batch(source)
        return stop, last, batches, epochs, [(position, bytes(view)) for position, view in produced]

    ours = outcome(lambda: take(pair.compiled, pair.memory.view(data)))
    check_equal(ours, outcome(lambda: take(pair.interpreted, memoryview(data))))


def try_scan(pair: Pair, dice: random.Random) -> None:
    data = hostile_log(dice, is_plain=True)
    base, end = dice.choice(((0, 2**63 - 1), (100, 140), (2**63 - 1000, 2**63 - 1)))

    def take(module: ModuleType, source: memoryview) -> Any:
        scan = module.SegmentScan(base, end, 50, 0)
        scan.leader_epoch = 3
        produced: list[memoryview] = []
        whole = module.whole_batches(source, len(source))
        reached = scan.take_plain(source[:whole], 0, 0, produced)
        return whole, reached, [bytes(view) for view in produced], scan.next_offset, scan.largest_timestamp

    ours = outcome(lambda: take(pair.compiled, pair.memory.view(data)))
    check_equal(ours, outcome(lambda: take(pair.interpreted, memoryview(data))))


def try_cleaner(pair: Pair, dice: random.Random) -> None:
    data = hostile_log(dice, is_plain=True)
    key = dice.randbytes(dice.randrange(40))
    start_offset = dice.choice((0, 0, 110))
    records_start = dice.choice((0, 61, dice.randrange(len(data) + 1)))
    records_start = min(records_start, len(data))
    record_count = dice.choice((0, 1, 2, 3, 40, -1, 2**31 - 1))
    base_offset = dice.choice((0, 100, 2**63 - 5))
    slots = dice.choice((3, 60, 5000))
    times = dice.choice(NUMBERS), dice.choice(NUMBERS)
    flags = dice.random() < 0.5, dice.random() < 0.5
    horizon = dice.choice((-1, 5, 2**63 - 1))
    last_offsets = {5: dice.choice((0, 2, 100))}

    def clean(module: ModuleType, log: Callable[[bytes], bytes]) -> Any:
        latest = module.LatestOffsets(slots)
        reported: list[Any] = [latest.digest(log(key))]
        source = log(data)
        reported.append(outcome(lambda: latest.put_batches(source, 0, len(source), start_offset)))
        reported.append(
            outcome(
                lambda: latest.put_records(source, records_start, len(source), record_count, base_offset, start_offset)
            )
        )
        reported.append((latest.size, latest.latest_offset, sorted(latest.split(2))))
        kept = module.RecordFilter(
            latest, now_ms=1000, delete_retention_ms=500, end_offset=101, last_offsets=last_offsets
        )
        reported.append(outcome(lambda: kept.put_batches(source, 0, len(source))))
        if len(data) >= 61:
            reported.append(outcome(lambda: kept.put_batch(source, 0, len(source))))
        reported.append(
            outcome(lambda: kept.judge(source, records_start, len(source), record_count, base_offset, flags[0]))
        )
        if not isinstance(reported[-1][0], str):  # only what `judge` found well-formed is rewritten
            reported.append(
                outcome(
                    lambda: kept.rewrite(source, records_start, len(source), record_count, *times, flags[1], horizon)
                )
            )
        reported.append((kept.written, bytes(kept.out[: kept.out_size]), kept.records_read, kept.records_kept))
        return reported

    ours = clean(pair.compiled, pair.memory.guarded_bytes)
    check_equal(ours, clean(pair.interpreted, bytes))


def hostile_strings(dice: random.Random, number: int) -> tuple[bytes, bytes, bytes | None]:
    """Draw ends, contents and validity of a column, mostly right."""
    sizes = [dice.choice((0, 1, 7, 30)) for _ in range(number)]
    ends = [0]
    for size in sizes:
        ends.append(ends[-1] + size)
    content = dice.randbytes(ends[-1])
    if dice.random() < 0.2:
        ends[dice.randrange(len(ends))] = dice.choice((-(2**31), -1, 0, 5, ends[-1] + 1, 2**31 - 1))
    if dice.random() < 0.1:
        content = content[:-1]
    if dice.random() < 0.1:
        ends.pop()
    return array("i", ends).tobytes(), content, hostile_validity(dice, number)


def hostile_validity(dice: random.Random, number: int) -> bytes | None:
    if dice.random() < 0.3:
        return None
    size = (number + 7) // 8
    return dice.randbytes(size if dice.random() < 0.9 else dice.randrange(size + 1))


def hostile_integers(dice: random.Random, number: int, values: tuple[int, ...], width: int) -> tuple[bytes, Any]:
    found = [dice.choice(values) for _ in range(number - (dice.random() < 0.05))]
    return array("i" if width == 4 else "q", found).tobytes(), hostile_validity(dice, number)


def try_encoder(pair: Pair, dice: random.Random) -> None:
    first = dice.choice((0, 0, 1, 9, -1))
    number = dice.choice((1, 3, 20, 100))
    rows = max(number - first, 0) + (dice.random() < 0.05)
    total = dice.randrange(1, 60)
    keys, values = hostile_strings(dice, number), hostile_strings(dice, number)
    names, contents = hostile_strings(dice, total), hostile_strings(dice, total)
    lists = sorted(dice.randrange(total + 1) for _ in range(number + 1))
    if dice.random() < 0.2:
        lists[dice.randrange(len(lists))] = dice.choice((-1, -(2**31), total + 1, 2**31 - 1))
    list_ends, list_validity = array("i", lists).tobytes(), hostile_validity(dice, number)
    partitions = hostile_integers(dice, number, (0, 1, 2) if dice.random() < 0.8 else (-1, 3, 2**31 - 1, 0), 4)
    topics = hostile_integers(dice, number, (0, 1) if dice.random() < 0.9 else (0, 2, -1, 2**31 - 1), 4)
    times = hostile_integers(dice, number, (0, 5, 2**53) if dice.random() < 0.8 else (-1, 2**63 - 1, 7), 8)
    climb = sorted(dice.randrange(2**40) for _ in range(number))
    offsets = array("q", climb if dice.random() < 0.7 else [dice.choice(NUMBERS) for _ in climb]).tobytes()
    counts = (3, 5) if dice.random() < 0.9 else (0, 5)
    chosen = array("i", [dice.choice((0, 3, 7) if dice.random() < 0.99 else (-1, 8)) for _ in range(rows)]).tobytes()
    uses_headers, uses_times, uses_offsets, uses_topics = (dice.random() < 0.6 for _ in range(4))
    limit = dice.choice((61, 200, 100_000))

    def encode(module: ModuleType, place: Callable[[bytes], Any]) -> Any:
        def strings(parts: tuple[bytes, bytes, bytes | None], skip: int) -> Any:
            validity = None if parts[2] is None else place(parts[2])
            return module.BytesInput(place(parts[0]), place(parts[1]), validity, skip)  # type: ignore[attr-defined]

        def integers(parts: tuple[bytes, Any], width: int) -> Any:
            validity = None if parts[1] is None else place(parts[1])
            return module.IntInput(place(parts[0]), width, validity, first)  # type: ignore[attr-defined]

        def inputs() -> list[Any]:
            validity = None if list_validity is None else place(list_validity)
            return [
                strings(keys, first),
                strings(values, first),
                module.HeadersInput(  # type: ignore[attr-defined]
                    place(list_ends), validity, strings(names, 0), strings(contents, 0), first
                ) if uses_headers else None,
                integers(times, 8) if uses_times else None,
                module.IntInput(place(offsets), 8, None, first) if uses_offsets else None,  # type: ignore[attr-defined]
                integers(partitions, 4),
                integers(topics, 4) if uses_topics else None,
            ]  # fmt: skip

        made = outcome(inputs)
        if isinstance(made, tuple):
            return made
        key_input, value_input, header_input, time_input, offset_input, partition_input, topic_input = made
        targets = place(bytes(4 * rows))
        reported = [
            outcome(
                lambda: module.choose_batches(  # type: ignore[attr-defined]
                    targets, rows, key_input, partition_input, topic_input, place(array("i", counts).tobytes()),
                    place(array("i", (0, 3)).tobytes()), place(array("i", (2, 4)).tobytes()),
                )
            ),
            bytes(targets),
        ]  # fmt: skip
        batches = [module.OpenBatch() for _ in range(8)]  # type: ignore[attr-defined]
        encoder = module.RowEncoder(limit)  # type: ignore[attr-defined]
        target_view = place(chosen)
        row = 0
        for _ in range(2 * rows + 1):
            reached = outcome(
                lambda row=row: encoder.encode_rows(  # type: ignore[misc]
                    batches, target_view, key_input, value_input, header_input, time_input, 1000, row, rows,
                    offset_input,
                )
            )  # fmt: skip
            reported.append(reached)
            if isinstance(reached, tuple) or reached >= rows:
                break
            row = reached
            full = batches[array("i", chosen)[row]]
            reported.append(bytes(full.buffer[61 : full.size]))
            full.restart()
        reported.append([(one.count, one.max_timestamp, bytes(one.buffer[61 : one.size])) for one in batches])
        return [*reported, encoder.rows, encoder.digest]

    ours = encode(pair.compiled, lambda data: GuardedMemory(len(data)).view(data))
    check_equal(ours, encode(pair.interpreted, bytearray))


def try_kernels(pair: Pair, dice: random.Random) -> None:
    data = hostile_log(dice, is_plain=True)
    payload = data[61:] if dice.random() < 0.9 else dice.randbytes(dice.randrange(99))
    number = dice.choice((1, 1, 3, 40, 0, -1, 2**31 - 1))
    entries = dice.randrange(len(data) // 12 + 1)
    bases = tuple(dice.choice(NUMBERS) for _ in range(4))
    keep = dice.randbytes(max(min(number, 10_000), 0))
    append_time = dice.choice((None, 5))
    now_ms, needs_keys = dice.choice(TIMES), dice.random() < 0.5

    def run(module: Any, place: Callable[[bytes], Any], place_bytes: Callable[[bytes], bytes]) -> Any:
        reported = [
            outcome(lambda: walked(module, place(payload), number, bases[0], needs_keys)),
            outcome(lambda: module.header_fault(place(data))),
            outcome(lambda: module.find_record(place(payload), number, *bases)),
            outcome(lambda: module.decode_records(place_bytes(payload), number)),
            outcome(lambda: module.rewrite_records(place_bytes(payload), number, keep, bases[0], append_time, None)),
            outcome(lambda: module.find_batch(place(data), 0, len(data), bases[0])),
            outcome(lambda: module.scan_batches(place(data), 0, len(data))),
            outcome(lambda: module.offset_index_slot(place(data[: 8 * entries]), entries, bases[0])),
            outcome(lambda: module.position_index_slot(place(data[: 8 * entries]), entries, bases[0])),
            outcome(lambda: module.time_index_slot(place(data[: 12 * entries]), entries, bases[0])),
            module.snappy_compress(place_bytes(data[:60_000])),
            module.xxh32(place(data)),
        ]
        if len(data) >= 61:
            crc = int.from_bytes(data[17:21], "big")
            produced = place(data)
            reported.append(outcome(lambda: module.is_sound(produced, crc, now_ms, 10**9, 10**9, needs_keys)))
            reported.append(bytes(produced))
        return reported

    ours = run(pair.compiled, pair.memory.view, pair.memory.guarded_bytes)
    check_equal(ours, run(pair.interpreted, bytearray, bytes))


def walked(module: Any, data: Any, count: int, base_timestamp: int, needs_keys: bool) -> Any:
    walk = module.RecordWalk(count, base_timestamp, True, needs_keys, 0, 10**12, 5)
    walk.feed(data, True)
    return walk.index, walk.sequential, walk.largest, walk.refused, walk.found


def request_frames() -> list[bytes]:
    """Draw Produce, Fetch and OffsetCommit requests in the versions that the request kernels read."""
    topic = ProduceRequest.TopicProduceData(
        name="t",
        topic_id=b"\2" * 16,
        partition_data=[ProduceRequest.PartitionProduceData(index=0, records=batch(b"value"))],
    )
    produce = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])
    fetched = FetchRequest.FetchTopic(
        topic="t", topic_id=b"\2" * 16, partitions=[FetchRequest.FetchPartition(partition=0)]
    )
    fetch = FetchRequest(max_wait_ms=5, min_bytes=1, topics=[fetched])
    committed = OffsetCommitRequest.OffsetCommitRequestTopic(
        name="t",
        topic_id=b"\2" * 16,
        partitions=[
            OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=index, committed_offset=5, committed_metadata="m" * index
            )
            for index in range(3)
        ],
    )
    commit = OffsetCommitRequest(group_id="g", member_id="m", topics=[committed])
    return [
        request_frame(message, version, 1)
        for message, versions in ((produce, range(9, 14)), (fetch, range(12, 19)), (commit, range(8, 11)))
        for version in versions
    ]


def try_offsets(pair: Pair, dice: random.Random) -> None:
    builder = BatchBuilder()
    number = dice.choice((1, 3, 40))
    for index in range(number):
        key = encode_key(OffsetCommitKey(group=dice.choice("gh"), topic="t" * dice.randrange(3), partition=index))
        version = dice.randrange(5)
        committed = OffsetCommitValue(offset=dice.choice(NUMBERS), metadata="m" * dice.randrange(3), commit_timestamp=5)
        value = None if dice.random() < 0.1 else encode_value(committed, version)
        builder.append(5, key, value)
    payload = damage(builder.build()[61:], dice, dice.randrange(3))[: CAPACITY // 2]
    count = dice.choice((number, number + 1))
    base_offset = dice.choice(NUMBERS[3:9])
    partitions = [
        (
            dice.choice(NUMBERS[1:10]),
            dice.choice(NUMBERS),
            dice.choice((-1, 3)),
            dice.randbytes(dice.choice((0, 1, 200))),
            -1,
        )
        for _ in range(dice.randrange(5))
    ]

    def run(module: Any, place_bytes: Callable[[bytes], bytes], room: Callable[[int], Any]) -> Any:
        reported: list[Any] = []

        def known_of(group: str, topic: str) -> dict[int, Any]:
            reported.append((group, topic, {}))
            return reported[-1][2]  # type: ignore[no-any-return]

        replay = module.OffsetReplay(tuple, known_of, lambda *names: reported.append(names))
        reported.append(replay.take_payload(place_bytes(payload), count, base_offset))
        for key, value in ((payload[:20], payload[20:60]), (payload[2:30], None)):
            reported.append(replay.take(key, value, 7))
        for expires in (False, True):
            out = room(module.offsets_size(partitions, 60, b"key", b"tags", expires))
            reported.append(module.encode_offsets(partitions, 60, b"key", b"tags", expires, 9, 5, out, 0))
            reported.append(bytes(out))
        return reported

    compiled = run(pair.compiled, pair.memory.guarded_bytes, lambda size: GuardedMemory(size).room(size))
    check_equal(compiled, run(pair.interpreted, bytes, bytearray))


def try_flat_requests(pair: Pair, dice: random.Random) -> None:
    data = damage(dice.choice(FRAMES), dice, dice.randrange(3))[: CAPACITY // 2]

    def run(module: Any, frame: memoryview) -> Any:
        limit = dice.choice((4, 4_096))
        return [
            module.read_flat_produce(frame, limit),
            module.read_flat_fetch(frame, limit),
            module.read_flat_offset_commit(frame, limit),
        ]

    state = dice.getstate()
    compiled = run(pair.compiled, memoryview(pair.memory.view(data)))
    dice.setstate(state)
    check_equal(compiled, run(pair.interpreted, memoryview(bytearray(data))))


FRAMES = request_frames()
KERNELS: dict[str, tuple[tuple[ModuleType, ...], Callable[[Pair, random.Random], None]]] = {
    "columns": ((columns,), try_columns),
    "column_encoder": ((column_encoder,), try_encoder),
    "cleaner_kernels": ((cleaner_kernels,), try_cleaner),
    "replicated_kernels": ((replicated_kernels,), try_replicated),
    "scan_kernels": ((scan_kernels,), try_scan),
    "kernels": ((kernels, check_kernels, header_kernels, index_kernels, codec_kernels), try_kernels),
    "offset_kernels": ((offset_kernels,), try_offsets),
    "read_kernels": ((read_kernels,), try_flat_requests),
    "write_kernels": ((write_kernels,), lambda pair, dice: check_equal(*guarded_writers.responses(pair, dice))),
    "json_lines": ((json_lines,), lambda pair, dice: check_equal(*guarded_writers.json_lines(pair, dice))),
}


def main(name: str, seed: str, number: str, note: str) -> int:
    modules, run = KERNELS[name]
    pair = Pair(*modules)
    for index in count():
        if index == int(number):
            return 0
        Path(note).write_text(str(index))
        run(pair, random.Random(f"{name} {seed} {index}"))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
