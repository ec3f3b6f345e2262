# C types for cleaner_kernels.py: Cython reads them when it compiles that file; plain Python never sees them.

cimport cython

ctypedef long long i64
ctypedef unsigned long long u64
ctypedef const unsigned char* bytes_t

cdef Py_ssize_t _HEADER_SIZE
cdef int _NOT_PLAIN
cdef bint _NATIVE
cdef int _HAS_KEY
cdef int _HAS_VALUE

@cython.locals(low32=u64, raw=u64, byte=u64, shift=cython.int, value=i64)
cdef (i64, Py_ssize_t) _varint(bytes_t data, Py_ssize_t position, Py_ssize_t end) noexcept

@cython.locals(raw=u64, byte=u64, shift=cython.int, value=i64)
cdef (i64, Py_ssize_t) _varlong(bytes_t data, Py_ssize_t position, Py_ssize_t end) noexcept

@cython.locals(negative=bint, folded=u64, size=Py_ssize_t)
cdef Py_ssize_t _varint_size(i64 value) noexcept

@cython.locals(last=i64)
cdef i64 _add(i64 a, i64 b) noexcept

@cython.locals(last=i64)
cdef i64 _subtract(i64 a, i64 b) noexcept

@cython.locals(high=i64)
cdef i64 _int32(bytes_t data, Py_ssize_t position) noexcept

cdef i64 _uint32(bytes_t data, Py_ssize_t position) noexcept

cdef i64 _int64(bytes_t data, Py_ssize_t position) noexcept

@cython.locals(low=u64, high=u64)
cdef u64 _load64(bytes_t data, Py_ssize_t position) noexcept

cdef int _check_range(Py_ssize_t start, Py_ssize_t end, Py_ssize_t size) except -1

@cython.locals(count=i64, length=i64)
cdef Py_ssize_t _skip_headers(bytes_t data, Py_ssize_t position, Py_ssize_t end) noexcept

@cython.locals(size=i64)
cdef Py_ssize_t _plain_size(bytes_t data, object view, Py_ssize_t position, Py_ssize_t end) except -1

@cython.locals(size=i64, value=i64, count=i64)
cdef Py_ssize_t _canonical_size(bytes_t data, Py_ssize_t position, Py_ssize_t stop) noexcept


cdef class LatestOffsets:
    cdef readonly i64 slots
    cdef readonly i64 limit
    cdef readonly i64 size
    cdef readonly i64 latest_offset
    cdef i64 _capacity
    cdef u64[::1] _table
    cdef u64 _v0
    cdef u64 _v1
    cdef u64 _v2
    cdef u64 _v3
    cdef u64 _mask
    cdef u64 _high
    cdef u64 _low
    cdef i64 _room
    cdef u64[::1] _highs
    cdef u64[::1] _lows
    cdef i64[::1] _offsets
    cdef unsigned char[::1] _kinds

    cdef int _reserve(self, i64 count) except -1

    @cython.locals(raw=bytes_t)
    cpdef put(self, key, i64 offset)

    @cython.locals(raw=bytes_t)
    cpdef i64 get(self, key) except? -2

    @cython.locals(raw=bytes_t)
    cpdef bytes digest(self, key)

    @cython.locals(mask=u64, v0=u64, v1=u64, v2=u64, v3=u64, words=Py_ssize_t, step=Py_ssize_t, rounds=cython.int,
                   word=u64, tail=Py_ssize_t, index=cython.int, byte=u64, _=cython.int)
    cdef int _hash(self, bytes_t data, Py_ssize_t start, Py_ssize_t size) noexcept

    @cython.locals(slot=u64, entry=Py_ssize_t)
    cdef Py_ssize_t _find(self, u64 high, u64 low) noexcept

    @cython.locals(entry=Py_ssize_t)
    cdef int _put(self, u64 high, u64 low, i64 offset) except -1

    @cython.locals(entry=Py_ssize_t)
    cdef i64 _get(self, u64 high, u64 low) noexcept

    @cython.locals(old="unsigned long long[::1]", count=i64, entry=Py_ssize_t, target=Py_ssize_t)
    cdef int _grow(self, i64 capacity) except -1

    @cython.locals(ends="long long[::1]", starts="long long[::1]", words="unsigned long long[::1]", entry=Py_ssize_t,
                   part=Py_ssize_t, target=Py_ssize_t)
    cpdef list split(self, Py_ssize_t parts)

    cdef Py_ssize_t _part(self, u64 low, u64 parts) noexcept

    @cython.locals(words="unsigned long long[::1]", index=Py_ssize_t, entry=Py_ssize_t, room=i64)
    cpdef merge(self, bytes entries)

    @cython.locals(words="unsigned long long[::1]", index=Py_ssize_t)
    cpdef bytes look_up(self, bytes entries)

    @cython.locals(position=Py_ssize_t, index=i64, size=i64, body=Py_ssize_t, stop=Py_ssize_t, offset_delta=i64,
                   length=i64, kind=cython.int, _=i64)
    cdef int _scan(self, bytes_t data, Py_ssize_t start, Py_ssize_t end, i64 count, i64 base_offset) except -1

    @cython.locals(index=i64)
    cdef i64 _put_records(self, bytes_t data, Py_ssize_t start, Py_ssize_t end, i64 count, i64 base_offset,
                          i64 start_offset) except -1

    @cython.locals(raw=bytes_t)
    cpdef i64 put_records(self, data, Py_ssize_t start, Py_ssize_t end, i64 count, i64 base_offset,
                          i64 start_offset) except -1

    @cython.locals(raw=bytes_t, position=Py_ssize_t, records=i64, size=Py_ssize_t, base_offset=i64, count=i64,
                   read=i64, last_offset=i64)
    cpdef tuple put_batches(self, data, Py_ssize_t start, Py_ssize_t end, i64 start_offset)


cdef class RecordFilter:
    cdef LatestOffsets _latest
    cdef i64 _now_ms
    cdef i64 _new_horizon
    cdef i64 _end_offset
    cdef dict _last_offsets
    cdef unsigned char* _keep
    cdef bytearray _flags
    cdef i64 _base_timestamp
    cdef i64 _max_timestamp
    cdef i64 _rewritten
    cdef bint _tombstones
    cdef readonly bytearray out
    cdef unsigned char* _out
    cdef readonly Py_ssize_t out_size
    cdef readonly list written
    cdef readonly i64 records_read
    cdef readonly i64 records_kept
    cdef readonly i64 records_without_key

    cpdef bint keeps_empty(self, i64 producer_id, i64 last_offset) except -1

    @cython.locals(raw=bytes_t, size=Py_ssize_t)
    cpdef add(self, data, i64 last_offset, i64 max_timestamp)

    @cython.locals(raw=bytes_t, kept=i64)
    cpdef tuple judge(self, data, Py_ssize_t start, Py_ssize_t end, i64 count,
                      i64 base_offset, bint retain_deletes)

    @cython.locals(raw=bytes_t, before=Py_ssize_t)
    cpdef tuple rewrite(self, data, Py_ssize_t start, Py_ssize_t end, i64 count,
                        i64 base_timestamp, i64 max_timestamp, bint log_append_time, i64 horizon)

    @cython.locals(index=i64)
    cpdef keep_all(self, i64 count)

    @cython.locals(raw=bytes_t, position=Py_ssize_t, size=Py_ssize_t)
    cpdef Py_ssize_t put_batches(self, data, Py_ssize_t start, Py_ssize_t end) except -1

    @cython.locals(raw=bytes_t)
    cpdef put_batch(self, data, Py_ssize_t start, Py_ssize_t size)

    @cython.locals(base_offset=i64, attributes=cython.int, last_offset=i64, base_timestamp=i64, max_timestamp=i64,
                   producer_id=i64, count=i64, body=Py_ssize_t, stop=Py_ssize_t, has_horizon=bint,
                   retain_deletes=bint, kept=i64, out_start=Py_ssize_t, needs_horizon=bint, horizon=i64,
                   log_append_time=bint)
    cdef void _put_batch(self, bytes_t data, Py_ssize_t start, Py_ssize_t size) except *

    @cython.locals(latest=LatestOffsets, kept=i64, index=i64, offset=i64, kind=cython.int, retain=bint)
    cdef i64 _judge(self, bytes_t data, Py_ssize_t start, Py_ssize_t end, i64 count,
                    i64 base_offset, bint retain_deletes) except -1

    @cython.locals(position=Py_ssize_t, is_based=bint, last_delta=i64, index=i64, begin=Py_ssize_t, size=i64,
                   body=Py_ssize_t, timestamp_delta=i64, rest=Py_ssize_t, timestamp=i64, offset_delta=i64,
                   record=bytes, raw=bytes_t, _=Py_ssize_t)
    cdef int _rewrite(self, bytes_t data, Py_ssize_t start, Py_ssize_t end, i64 count,
                      i64 base_timestamp, i64 max_timestamp, bint log_append_time, i64 horizon) except -1

    @cython.locals(out="unsigned char*")
    cdef int _finish(self, Py_ssize_t start, int attributes, i64 base_timestamp, i64 max_timestamp,
                     i64 count) except -1

    @cython.locals(index=cython.int, out="unsigned char*")
    cdef int _put_int(self, Py_ssize_t position, i64 value, int size) noexcept

    @cython.locals(position=Py_ssize_t, negative=bint, folded=u64, out="unsigned char*")
    cdef int _put_varint(self, i64 value) noexcept

    @cython.locals(position=Py_ssize_t, index=Py_ssize_t, out="unsigned char*")
    cdef int _copy(self, bytes_t data, Py_ssize_t start, Py_ssize_t size) except -1

    @cython.locals(grown=bytearray)
    cdef int _reserve(self, Py_ssize_t size) except -1

    cdef int _reserve_flags(self, i64 count) except -1
