# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, annotation_typing=False
"""The cleaner's loops over records: store the latest offset of every key, then keep the latest records.

Plain Python that Cython compiles in place, with its C types in cleaner_kernels.pxd. The rules of `records/kernels.py`
apply. The functions for integers are repeated here, because a call into another compiled module cannot be inlined and
they run several times per record.

Both classes process runs of batches from a chunk of a log file. They stop at the first batch that is not plain: of
another format than v2, compressed, transactional, control, or with a wrong checksum. `compaction.py` handles that batch
and continues after it. A log of many small batches therefore costs no Python call per batch.
"""

from __future__ import annotations

from array import array

from tailrace.records.batch import CorruptBatch
from tailrace.records.codecs.crc32c import crc32c
from tailrace.records.kernels import decode_records, encode_record
from tailrace.records.utf8 import decode_utf8

COMPILED = not __file__.endswith(".py")
_NATIVE = COMPILED

Bytes = bytes | bytearray

SLOT_SIZE = 24
_FIRST_CAPACITY = 1024
_HEADER_SIZE = 61
_NOT_PLAIN = 0x37  # codec, transactional and control bits of the attributes


# --- integers -------------------------------------------------------------------------------------------------------


def _varint(data: Bytes, position: int, end: int) -> tuple[int, int]:
    """Return (value, next position). The next position is -1 if the bytes end early or the varint is too long."""
    low32 = 0xFFFFFFFF
    raw = 0
    shift = 0
    while shift < 35:
        if position >= end:
            return 0, -1
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            raw &= low32
            value = raw >> 1
            if raw & 1:
                value = -1 - value
            return value, position
        shift += 7
    return 0, -1


def _varlong(data: Bytes, position: int, end: int) -> tuple[int, int]:
    """Like _varint, for 64 bits: at most ten bytes; bits beyond the 64th are dropped."""
    raw = 0
    shift = 0
    while shift < 63:
        if position >= end:
            return 0, -1
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            value = raw >> 1
            if raw & 1:
                value = -1 - value
            return value, position
        shift += 7
    if position >= end:
        return 0, -1
    byte = data[position]
    if byte >= 0x80:
        return 0, -1
    raw |= (byte & 1) << 63
    value = raw >> 1
    if raw & 1:
        value = -1 - value
    return value, position + 1


def _varint_size(value: int) -> int:
    """Return the size of a signed value as a zigzag varint."""
    negative = value < 0
    folded = -1 - value if negative else value
    folded = folded * 2 + negative
    size = 1
    while folded > 0x7F:
        folded >>= 7
        size += 1
    return size


def _add(a: int, b: int) -> int:
    """Return a + b with the overflow of Java's long."""
    last = 0x7FFFFFFFFFFFFFFF
    if b > 0 and a > last - b:
        return (a - last - 1) + (b - last - 1)
    if b < 0 and a < -1 - last - b:
        return (a + last + 1) + (b + last + 1)
    return a + b


def _subtract(a: int, b: int) -> int:
    """Return a - b with the overflow of Java's long."""
    last = 0x7FFFFFFFFFFFFFFF
    if b == -1 - last:
        return a + last + 1 if a < 0 else a - last - 1
    return _add(a, -b)


def _int32(data: Bytes, position: int) -> int:
    """Return a signed big-endian integer. The caller has checked that there are four bytes."""
    high = (data[position] ^ 0x80) - 0x80
    return high * 16777216 + (data[position + 1] << 16 | data[position + 2] << 8 | data[position + 3])


def _uint32(data: Bytes, position: int) -> int:
    return _int32(data, position) & 0xFFFFFFFF


def _int64(data: Bytes, position: int) -> int:
    return (_int32(data, position) + (data[position + 4] >> 7)) * 65536 * 65536 + _int32(data, position + 4)


def _load64(data: Bytes, position: int) -> int:
    """Return an unsigned little-endian integer."""
    low = data[position + 3]
    low = low << 24 | data[position + 2] << 16 | data[position + 1] << 8 | data[position]
    high = data[position + 7]
    high = high << 24 | data[position + 6] << 16 | data[position + 5] << 8 | data[position + 4]
    return high << 32 | low


def _broken(index: int, position: int) -> CorruptBatch:
    return CorruptBatch(f"record {index} is broken at byte {position} of the batch's records")


def _check_range(start: int, end: int, size: int) -> None:
    if start < 0 or start > end or end > size:
        raise ValueError(f"range {start}..{end} is not inside the {size} bytes given")


def _skip_headers(data: Bytes, position: int, end: int) -> int:
    """Return the position after a record's headers, or -1 if they are malformed."""
    count, position = _varint(data, position, end)
    if position < 0 or count < 0:
        return -1
    while count > 0:
        length, position = _varint(data, position, end)
        if position < 0 or length < 0 or length > end - position:
            return -1
        position += length
        length, position = _varint(data, position, end)
        if position < 0 or length > end - position:
            return -1
        if length > 0:
            position += length
        count -= 1
    return position


def _plain_size(data: Bytes, view: memoryview, position: int, end: int) -> int:
    """Return the size of the batch at `position`, or 0 if it is incomplete, not plain, or has a wrong checksum."""
    if end - position < _HEADER_SIZE:
        return 0
    size = _int32(data, position + 8) + 12
    if size < _HEADER_SIZE or size > end - position:
        return 0
    if data[position + 16] != 2 or data[position + 22] & _NOT_PLAIN:
        return 0
    if crc32c(view[position + 21 : position + size]) != _uint32(data, position + 17):
        return 0
    return size


# --- the latest offset of each key ----------------------------------------------------------------------------------

_HAS_KEY = 1
_HAS_VALUE = 2


class LatestOffsets:
    """The latest offset of each key, in bounded memory.

    A slot has 24 bytes: a 128-bit hash of the key, and the offset. As in Apache Kafka, the memory given determines the
    number of slots. At most `limit` of them (load factor 0.9) may be filled, and entries are never removed. The map has
    the offset up to which it is complete. Kafka hashes with MD5. This map uses SipHash-2-4 with a salt, which is five
    times faster. If the salt is secret, nobody can make keys collide on purpose.

    The table starts small and doubles, so that a small log needs little memory. A lookup starts at the slot given by
    the upper bits of the hash and proceeds slot by slot. At least one slot always stays empty, so the search ends.
    Records are first scanned, a batch at a time, and then looked up, so that several lookups wait for memory at once.
    """

    def __init__(self, slots: int, load_factor: float = 0.9, salt: bytes = bytes(16)) -> None:
        if not slots * load_factor > 1:
            raise ValueError(f"{slots} slots at a load factor of {load_factor:g} hold no key: give more memory")
        if len(salt) != 16:
            raise ValueError(f"the salt takes 16 bytes, not {len(salt)}")
        self.slots = slots
        self.limit = min(int(slots * load_factor), slots)
        self.size = 0
        self.latest_offset = -1
        self._capacity = min(slots + 1, _FIRST_CAPACITY)
        self._table = array("Q", bytes(SLOT_SIZE * self._capacity))
        key0, key1 = int.from_bytes(salt[:8], "little"), int.from_bytes(salt[8:], "little")
        self._v0 = key0 ^ 0x736F6D6570736575
        self._v1 = key1 ^ 0x646F72616E646F6D ^ 0xEE
        self._v2 = key0 ^ 0x6C7967656E657261
        self._v3 = key1 ^ 0x7465646279746573
        self._mask = 0xFFFFFFFFFFFFFFFF
        self._high = 0
        self._low = 0
        self._reserve(256)

    def _reserve(self, count: int) -> None:
        """Make room for the scan of `count` records: both halves of the key's hash, the offset, and flags."""
        self._room = count
        self._highs = array("Q", bytes(8 * count))
        self._lows = array("Q", bytes(8 * count))
        self._offsets = array("q", bytes(8 * count))
        self._kinds = array("B", bytes(count))

    @property
    def memory_bytes(self) -> int:
        """Return the current size of the table in bytes."""
        return self._capacity * SLOT_SIZE

    def put(self, key: Bytes, offset: int) -> None:
        """Store `offset` as the key's latest. Raise ValueError if the map is full or the offset negative."""
        if offset < 0:
            raise ValueError(f"offset {offset} is negative")
        if self.size >= self.limit:
            raise ValueError(f"the offset map is full: {self.size} keys in {self.slots} slots")
        raw = key
        self._hash(raw, 0, len(key))
        self._put(self._high, self._low, offset)

    def get(self, key: Bytes) -> int:
        """Return the key's latest offset, or -1."""
        raw = key
        self._hash(raw, 0, len(key))
        return self._get(self._high, self._low)

    def digest(self, key: Bytes) -> bytes:
        """Return the hash of a key."""
        raw = key
        self._hash(raw, 0, len(key))
        high, low = int(self._high), int(self._low)
        return high.to_bytes(8, "little") + low.to_bytes(8, "little")

    def _hash(self, data: Bytes, start: int, size: int) -> None:
        """Compute the 128-bit SipHash-2-4 of data[start:start + size], into _high and _low.

        Two rounds mix in every 8 bytes. The last bytes are combined with the size. Four more rounds produce each half
        of the result.
        """
        mask = self._mask
        v0 = self._v0
        v1 = self._v1
        v2 = self._v2
        v3 = self._v3
        words = size >> 3
        for step in range(words + 3):
            rounds = 2
            word = 0
            if step < words:
                word = _load64(data, start + step * 8)
            elif step == words:
                tail = start + words * 8
                for index in range(size & 7):
                    byte = data[tail + index]
                    word |= byte << (8 * index)
                byte = size & 0xFF
                word |= byte << 56
            elif step == words + 1:
                v2 ^= 0xEE
                rounds = 4
            else:
                self._high = v0 ^ v1 ^ v2 ^ v3
                v1 ^= 0xDD
                rounds = 4
            v3 ^= word
            for _ in range(rounds):
                v0 = (v0 + v1) & mask
                v1 = (v1 << 13 & mask | v1 >> 51) ^ v0
                v0 = v0 << 32 & mask | v0 >> 32
                v2 = (v2 + v3) & mask
                v3 = (v3 << 16 & mask | v3 >> 48) ^ v2
                v0 = (v0 + v3) & mask
                v3 = (v3 << 21 & mask | v3 >> 43) ^ v0
                v2 = (v2 + v1) & mask
                v1 = (v1 << 17 & mask | v1 >> 47) ^ v2
                v2 = v2 << 32 & mask | v2 >> 32
            v0 ^= word
        self._low = v0 ^ v1 ^ v2 ^ v3

    def _find(self, high: int, low: int) -> int:
        """Return the position of a hash in the table, or the position where it would be inserted."""
        slot = (high >> 32) * self._capacity >> 32
        entry = slot * 3
        while self._table[entry + 2] != 0 and (self._table[entry] != high or self._table[entry + 1] != low):
            entry += 3
            if entry == self._capacity * 3:
                entry = 0
        return entry

    def skip_to(self, offset: int) -> None:
        """Record that the map covers everything below `offset`."""
        self.latest_offset = offset - 1

    def _put(self, high: int, low: int, offset: int) -> None:
        """Set the offset of a hash. The caller has checked that there is room."""
        entry = self._find(high, low)
        if self._table[entry + 2] == 0:
            self._table[entry] = high
            self._table[entry + 1] = low
            self.size += 1
        self._table[entry + 2] = offset + 1  # zero marks an empty slot
        self.latest_offset = offset
        if self.size * 4 > self._capacity * 3 and self._capacity <= self.slots:
            self._grow(self._capacity * 2)

    def _get(self, high: int, low: int) -> int:
        """Return the offset of a hash, or -1."""
        entry = self._find(high, low)
        return self._table[entry + 2] - 1

    def _grow(self, capacity: int) -> None:
        old = self._table
        count = self._capacity
        self._capacity = min(capacity, self.slots + 1)
        self._table = array("Q", bytes(SLOT_SIZE * self._capacity))
        for entry in range(0, count * 3, 3):
            if old[entry + 2] != 0:
                target = self._find(old[entry], old[entry + 1])
                self._table[target] = old[entry]
                self._table[target + 1] = old[entry + 1]
                self._table[target + 2] = old[entry + 2]

    # Transfer to another map with the same salt: 24 bytes per key, as in the table

    def split(self, parts: int) -> list[bytes]:
        """Return the keys with their latest offsets, in parts that are chosen by their hash."""
        if parts < 1:
            raise ValueError(f"{parts} is not a valid number of parts; it must be at least 1")
        ends = array("q", bytes(8 * (parts + 1)))
        for entry in range(0, self._capacity * 3, 3):
            if self._table[entry + 2] != 0:
                part = self._part(self._table[entry + 1], parts)
                ends[part + 1] += 1
        for part in range(parts):
            ends[part + 1] += ends[part]
        starts = array("q", ends)
        out = array("Q", bytes(SLOT_SIZE * self.size))
        words = out
        for entry in range(0, self._capacity * 3, 3):
            if self._table[entry + 2] != 0:
                part = self._part(self._table[entry + 1], parts)
                target = ends[part] * 3
                ends[part] += 1
                words[target] = self._table[entry]
                words[target + 1] = self._table[entry + 1]
                words[target + 2] = self._table[entry + 2]
        data = memoryview(out).cast("B")
        return [bytes(data[starts[part] * SLOT_SIZE : starts[part + 1] * SLOT_SIZE]) for part in range(parts)]

    def _part(self, low: int, parts: int) -> int:
        return (low >> 32) * parts >> 32

    def merge(self, entries: bytes) -> None:
        """Add later entries that another map has split off. Raise ValueError if the map is full."""
        if len(entries) % SLOT_SIZE:
            raise ValueError(f"{len(entries)} bytes are not a multiple of {SLOT_SIZE}")
        words = array("Q", entries)
        # Entries come in the order of another table. In a table that is too small they would fill its front, and every
        # search would pass all of them. So the table is enlarged before the first is added.
        room = (self.size + len(words) // 3) * 2
        if room > self._capacity:
            self._grow(room)
        for index in range(0, len(words), 3):
            if words[index + 2] == 0:
                continue  # a key of `look_up` that was not known
            entry = self._find(words[index], words[index + 1])
            if self._table[entry + 2] == 0:
                if self.size >= self.limit:
                    raise ValueError(f"the offset map is full: {self.size} keys in {self.slots} slots")
                self._put(words[index], words[index + 1], words[index + 2] - 1)
            elif self._table[entry + 2] < words[index + 2]:
                self._table[entry + 2] = words[index + 2]

    def look_up(self, entries: bytes) -> bytes:
        """Return the same keys with the offsets known here. An unknown key has 0 in place of offset + 1."""
        if len(entries) % SLOT_SIZE:
            raise ValueError(f"{len(entries)} bytes are not a multiple of {SLOT_SIZE}")
        found = array("Q", entries)
        words = found
        for index in range(0, len(words), 3):
            words[index + 2] = self._table[self._find(words[index], words[index + 1]) + 2]
        return found.tobytes()

    def _scan(self, data: Bytes, start: int, end: int, count: int, base_offset: int) -> None:
        """Read the v2 records in data[start:end] and hash their keys. Raise CorruptBatch if they are malformed."""
        if count < 0 or count > end - start:
            raise CorruptBatch(f"record count is {count} in {end - start} bytes of records")
        if count > self._room:
            self._reserve(count * 2)
        position = start
        for index in range(count):
            size, body = _varint(data, position, end)
            if body < 0 or size < 1 or size > end - body:
                raise _broken(index, position - start)
            stop = body + size
            _, position = _varlong(data, body + 1, stop)
            if position < 0:
                raise _broken(index, body - start)
            offset_delta, position = _varint(data, position, stop)
            if position < 0:
                raise _broken(index, body - start)
            self._offsets[index] = _add(base_offset, offset_delta)
            length, position = _varint(data, position, stop)
            if position < 0 or length > stop - position:
                raise _broken(index, body - start)
            kind = 0
            if length >= 0:
                kind = _HAS_KEY
                self._hash(data, position, length)
                self._highs[index] = self._high
                self._lows[index] = self._low
                position += length
            length, position = _varint(data, position, stop)
            if position < 0 or length > stop - position:
                raise _broken(index, body - start)
            if length >= 0:
                kind |= _HAS_VALUE
                position += length
            self._kinds[index] = kind
            position = _skip_headers(data, position, stop)
            if position != stop:
                raise _broken(index, body - start)
        if position != end:
            raise CorruptBatch(f"{end - position} bytes follow the last of {count} records")

    def put_records(self, data: Bytes, start: int, end: int, count: int, base_offset: int, start_offset: int) -> int:
        """Put the keys of the v2 records in data[start:end], from start_offset on.

        Returns how many records were read. Fewer than `count` means that the map was full before the next record.
        """
        _check_range(start, end, len(data))
        raw = data
        return self._put_records(raw, start, end, count, base_offset, start_offset)

    def _put_records(self, data: Bytes, start: int, end: int, count: int, base_offset: int, start_offset: int) -> int:
        self._scan(data, start, end, count, base_offset)
        for index in range(count):
            if self._kinds[index] & _HAS_KEY and self._offsets[index] >= start_offset:
                if self.size >= self.limit:
                    return index
                self._put(self._highs[index], self._lows[index], self._offsets[index])
        return count

    def put_batches(self, data: Bytes, start: int, end: int, start_offset: int) -> tuple[int, int, bool]:
        """Put the keys of the plain batches at the beginning of data[start:end].

        Returns the end of these batches, how many records were read, and True if the map is full.
        """
        _check_range(start, end, len(data))
        raw = data
        view = memoryview(data)
        position = start
        records = 0
        while True:
            size = _plain_size(raw, view, position, end)
            if size == 0:
                return position, records, False
            base_offset = _int64(raw, position)
            count = _int32(raw, position + 57)
            try:
                read = self._put_records(raw, position + 61, position + size, count, base_offset, start_offset)
            except CorruptBatch as error:
                raise CorruptBatch(error.reason, position=position) from None
            records += read
            if read < count:
                return position, records, True
            last_offset = _add(base_offset, _int32(raw, position + 23))
            if last_offset >= start_offset:
                self.latest_offset = last_offset
            position += size


# --- the remaining records ------------------------------------------------------------------------------------------


class RecordFilter:
    """Writes the remaining batches one after the other into `out`, as Kafka's MemoryRecords.filterTo does.

    - A batch that loses nothing is copied unchanged.
    - A batch that loses records is written again with the same producer, epoch, codec and offsets. The last offset
      delta, the producer's last sequence, stays too. The first kept record's timestamp becomes the base timestamp.
    - A batch that keeps a tombstone gets its delete horizon, now + delete.retention.ms, in place of the base timestamp.
    - A batch that loses all records is removed. Its header stays for the last batch of an active producer or the range.

    `written` has size, last offset and largest timestamp of each batch in `out`.
    """

    def __init__(
        self,
        latest: LatestOffsets,
        *,
        now_ms: int,
        delete_retention_ms: int,
        end_offset: int,
        last_offsets: dict[int, int],
    ) -> None:
        self._latest = latest
        self._now_ms = now_ms
        self._new_horizon = _add(now_ms, delete_retention_ms)
        self._end_offset = end_offset
        self._last_offsets = last_offsets
        self._flags = bytearray(1024)
        self._keep = self._flags
        self._base_timestamp = -1
        self._max_timestamp = -1
        self._rewritten = 0
        self._tombstones = False
        self.out = bytearray(64 * 1024)
        self._out = self.out
        self.out_size = 0
        self.written: list[tuple[int, int, int]] = []
        self.records_read = 0
        self.records_kept = 0
        self.records_without_key = 0

    def clear(self) -> None:
        """Start a new output buffer."""
        self.out_size = 0
        self.written = []

    def keeps_empty(self, producer_id: int, last_offset: int) -> bool:
        """Return True if the header of a data batch without remaining records is kept."""
        if last_offset + 1 == self._end_offset:
            return True
        return producer_id >= 0 and self._last_offsets.get(producer_id, -1) == last_offset

    def add(self, data: Bytes, last_offset: int, max_timestamp: int) -> None:
        """Append a batch that was built elsewhere to the output."""
        raw = data
        size = len(data)
        self._reserve(size)
        self._copy(raw, 0, size)
        self.written.append((size, last_offset, max_timestamp))

    def judge(
        self, data: Bytes, start: int, end: int, count: int, base_offset: int, retain_deletes: bool
    ) -> tuple[int, bool]:
        """Decide on the v2 records in data[start:end]. Return how many stay, and True if a tombstone is among them."""
        _check_range(start, end, len(data))
        raw = data
        kept = self._judge(raw, start, end, count, base_offset, retain_deletes)
        return kept, self._tombstones

    def rewrite(
        self,
        data: Bytes,
        start: int,
        end: int,
        count: int,
        base_timestamp: int,
        max_timestamp: int,
        log_append_time: bool,
        horizon: int,
    ) -> tuple[bytes, int, int, int]:
        """Encode the records that `judge` kept of the same bytes.

        `horizon` is the delete horizon, negative for none. Returns payload, base timestamp, largest timestamp, and the
        number of records.
        """
        _check_range(start, end, len(data))
        raw = data
        before = self.out_size
        self._rewrite(raw, start, end, count, base_timestamp, max_timestamp, log_append_time, horizon)
        payload = bytes(memoryview(self.out)[before : self.out_size])
        self.out_size = before
        return payload, self._base_timestamp, self._max_timestamp, self._rewritten

    def keep_all(self, count: int) -> None:
        """Keep all records, in place of `judge`."""
        self._reserve_flags(count)
        for index in range(count):
            self._keep[index] = 1

    def put_batches(self, data: Bytes, start: int, end: int) -> int:
        """Filter the plain batches at the beginning of data[start:end]. Return their end."""
        _check_range(start, end, len(data))
        raw = data
        view = memoryview(data)
        position = start
        while True:
            size = _plain_size(raw, view, position, end)
            if size == 0:
                return position
            self._put_batch(raw, position, size)
            position += size

    def put_batch(self, data: Bytes, start: int, size: int) -> None:
        """Filter one uncompressed v2 data batch whose checksum is already verified."""
        _check_range(start, start + size, len(data))
        if size < _HEADER_SIZE:
            raise CorruptBatch(f"batch of {size} bytes is smaller than its header", position=start)
        raw = data
        self._put_batch(raw, start, size)

    def _put_batch(self, data: Bytes, start: int, size: int) -> None:
        base_offset = _int64(data, start)
        attributes = data[start + 22]
        last_offset = _add(base_offset, _int32(data, start + 23))
        base_timestamp = _int64(data, start + 27)
        max_timestamp = _int64(data, start + 35)
        producer_id = _int64(data, start + 43)
        count = _int32(data, start + 57)
        body = start + _HEADER_SIZE
        stop = start + size
        has_horizon = attributes & 0x40 != 0
        retain_deletes = not has_horizon or self._now_ms < base_timestamp
        try:
            kept = self._judge(data, body, stop, count, base_offset, retain_deletes)
        except CorruptBatch as error:
            raise CorruptBatch(error.reason, position=start) from None
        if kept == 0:
            if self.keeps_empty(producer_id, last_offset):
                self._reserve(_HEADER_SIZE)
                out_start = self.out_size
                self._copy(data, start, _HEADER_SIZE)
                self._finish(out_start, attributes & 0x38, -1, max_timestamp, 0)
                self.written.append((_HEADER_SIZE, last_offset, max_timestamp))
            return
        needs_horizon = self._tombstones and not has_horizon
        if kept == count and not needs_horizon:
            self._reserve(size)
            self._copy(data, start, size)
            self.written.append((size, last_offset, max_timestamp))
            return
        horizon = -1
        if needs_horizon:
            horizon = self._new_horizon
        elif has_horizon:
            horizon = base_timestamp
        log_append_time = attributes & 0x08 != 0
        out_start = self.out_size
        self._reserve(_HEADER_SIZE)
        self._copy(data, start, _HEADER_SIZE)
        try:
            self._rewrite(data, body, stop, count, base_timestamp, max_timestamp, log_append_time, horizon)
        except CorruptBatch as error:
            raise CorruptBatch(error.reason, position=start) from None
        attributes &= 0x3F
        if horizon >= 0:
            attributes |= 0x40
        self._finish(out_start, attributes, self._base_timestamp, self._max_timestamp, kept)
        self.written.append((self.out_size - out_start, last_offset, self._max_timestamp))

    def _judge(self, data: Bytes, start: int, end: int, count: int, base_offset: int, retain_deletes: bool) -> int:
        """Set the flag of every record that stays. Return their number."""
        latest = self._latest
        latest._scan(data, start, end, count, base_offset)
        self._reserve_flags(count)
        kept = 0
        self._tombstones = False
        for index in range(count):
            offset = latest._offsets[index]
            kind = latest._kinds[index]
            retain = offset > latest.latest_offset
            if not retain:
                if not kind & _HAS_KEY:
                    self.records_without_key += 1
                elif kind & _HAS_VALUE or retain_deletes:
                    retain = offset >= latest._get(latest._highs[index], latest._lows[index])
            self._keep[index] = retain
            if retain:
                kept += 1
                if not kind & _HAS_VALUE:
                    self._tombstones = True
        self.records_read += count
        self.records_kept += kept
        return kept

    def _rewrite(
        self,
        data: Bytes,
        start: int,
        end: int,
        count: int,
        base_timestamp: int,
        max_timestamp: int,
        log_append_time: bool,
        horizon: int,
    ) -> None:
        """Append the records whose flag is set. `_judge` has checked that they are valid."""
        position = start
        is_based = horizon >= 0
        self._base_timestamp = horizon
        self._max_timestamp = -1
        self._rewritten = 0
        last_delta = -1
        for index in range(count):
            begin = position
            size, body = _varint(data, position, end)
            position = body + size
            if self._keep[index] == 0:
                continue
            timestamp_delta, rest = _varlong(data, body + 1, position)
            timestamp = max_timestamp if log_append_time else _add(base_timestamp, timestamp_delta)
            if timestamp < -1:
                raise CorruptBatch(f"record {index} has the negative timestamp {timestamp}")
            if not is_based:
                is_based = True
                self._base_timestamp = timestamp
            if timestamp > self._max_timestamp:
                self._max_timestamp = timestamp
            offset_delta, _ = _varint(data, rest, position)
            if offset_delta <= last_delta:
                raise CorruptBatch(f"record {index} has offset delta {offset_delta} after {last_delta}")
            last_delta = offset_delta
            self._rewritten += 1
            timestamp_delta = _subtract(timestamp, self._base_timestamp)
            if _canonical_size(data, rest, position) == position - rest:
                size = 1 + _varint_size(timestamp_delta) + position - rest
                self._reserve(size + 5)
                self._put_varint(size)
                self._out[self.out_size] = 0
                self.out_size += 1
                self._put_varint(timestamp_delta)
                self._copy(data, rest, position - rest)
            else:
                record = _encoded_again(bytes(data[begin:position]), timestamp_delta)
                raw = record
                self._reserve(len(record))
                self._copy(raw, 0, len(record))

    def _finish(self, start: int, attributes: int, base_timestamp: int, max_timestamp: int, count: int) -> None:
        """Complete the header at `start` in the output for the records after it."""
        out = self._out
        self._put_int(start + 8, self.out_size - start - 12, 4)
        out[start + 21] = 0
        out[start + 22] = attributes
        self._put_int(start + 27, base_timestamp, 8)
        self._put_int(start + 35, max_timestamp, 8)
        self._put_int(start + 57, count, 4)
        self._put_int(start + 17, crc32c(memoryview(self.out)[start + 21 : self.out_size]), 4)

    def _put_int(self, position: int, value: int, size: int) -> None:
        """Write an integer, big-endian and in two's complement."""
        out = self._out
        for index in range(size):
            out[position + index] = value >> (8 * (size - 1 - index)) & 0xFF

    def _put_varint(self, value: int) -> None:
        out = self._out
        position = self.out_size
        negative = value < 0
        folded = -1 - value if negative else value
        folded = folded * 2 + negative
        while folded > 0x7F:
            out[position] = folded & 0x7F | 0x80
            folded >>= 7
            position += 1
        out[position] = folded
        self.out_size = position + 1

    def _copy(self, data: Bytes, start: int, size: int) -> None:
        position = self.out_size
        if _NATIVE:
            out = self._out
            for index in range(size):
                out[position + index] = data[start + index]
        else:
            self.out[position : position + size] = data[start : start + size]
        self.out_size = position + size

    def _reserve(self, size: int) -> None:
        """Make room for `size` more bytes of output."""
        if self.out_size + size > len(self.out):
            grown = bytearray(max(len(self.out) * 2, self.out_size + size))
            grown[: self.out_size] = memoryview(self.out)[: self.out_size]
            self.out = grown
            self._out = grown

    def _reserve_flags(self, count: int) -> None:
        if count > len(self._flags):
            self._flags = bytearray(count * 2)
            self._keep = self._flags


def _canonical_size(data: Bytes, position: int, stop: int) -> int:
    """Return the size of a valid record, from its offset delta on, as Kafka writes it; -1 if bytes change."""
    value, position = _varint(data, position, stop)
    size = _varint_size(value)
    for _ in range(2):
        value, position = _varint(data, position, stop)
        if value < -1:
            return -1
        size += _varint_size(value)
        if value > 0:
            size += value
            position += value
    count, position = _varint(data, position, stop)
    size += _varint_size(count)
    while count > 0:
        value, position = _varint(data, position, stop)
        size += _varint_size(value) + value
        while value > 0:
            # Kafka decodes and encodes header keys as text, which replaces bytes that are not UTF-8.
            if data[position] > 0x7F:
                return -1
            position += 1
            value -= 1
        value, position = _varint(data, position, stop)
        if value < -1:
            return -1
        size += _varint_size(value)
        if value > 0:
            size += value
            position += value
        count -= 1
    return size


def _encoded_again(record: bytes, timestamp_delta: int) -> bytes:
    """Encode one record with another timestamp delta, field by field."""
    offset_delta, _, key, value, headers, _ = decode_records(record, 1)[0]
    out = bytearray()
    names = [(decode_utf8(name).encode(), content) for name, content in headers]
    encode_record(out, offset_delta, timestamp_delta, key, value, names)
    return bytes(out)
