# C types for kernels.py: Cython reads them when it compiles that file; plain Python never sees them.
#
# `view` types are const unsigned char[::1]: any contiguous buffer, read-only or not. What reads a varint hands back a
# C pair and reports a broken one by the position -1, so that no exception has to be looked for after every byte.
# Unsigned 64-bit locals hold what is masked; everything else is signed and cannot overflow.

cimport cython

ctypedef long long i64
ctypedef unsigned long long u64

@cython.locals(low32=u64, raw=u64, byte=u64, shift=cython.int, value=i64)
cdef (i64, Py_ssize_t) _varint(const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end) noexcept

@cython.locals(raw=u64, byte=u64, shift=cython.int, value=i64)
cdef (i64, Py_ssize_t) _varlong(const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end) noexcept

@cython.locals(negative=bint, folded=u64, size=Py_ssize_t)
cdef Py_ssize_t _varint_size(i64 value) noexcept

@cython.locals(negative=bint, folded=u64)
cdef int _append_varint(bytearray out, i64 value) except -1

@cython.locals(last=i64)
cdef i64 _add(i64 a, i64 b) noexcept

@cython.locals(last=i64)
cdef i64 _subtract(i64 a, i64 b) noexcept

@cython.locals(high=i64)
cdef i64 _int32(const unsigned char[::1] data, Py_ssize_t position) noexcept

cdef i64 _uint32(const unsigned char[::1] data, Py_ssize_t position) noexcept

cdef i64 _int64(const unsigned char[::1] data, Py_ssize_t position) noexcept

cdef int _check_count(i64 count) except -1

@cython.locals(count=i64, length=i64)
cdef Py_ssize_t _skip_headers(const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end) noexcept

cdef class RecordWalk:
    cdef readonly i64 index, refused, largest
    cdef readonly bint sequential
    cdef readonly list found
    cdef i64 count, base_timestamp, earliest, latest, skip, passed, start, size, timestamp_delta, offset_delta, headers
    cdef bint check_sizes, needs_keys, has_key
    cdef Py_ssize_t found_max
    cdef int stage

    cdef int _begin(self, i64 count, i64 base_timestamp, bint check_sizes, bint needs_keys, i64 earliest, i64 latest,
                    Py_ssize_t found_max) except -1

    @cython.locals(end=Py_ssize_t, position=Py_ssize_t, following=Py_ssize_t, value=i64)
    cpdef Py_ssize_t feed(self, const unsigned char[::1] data, bint is_last) except -1

    @cython.locals(start=Py_ssize_t, at=Py_ssize_t, size=i64, length=i64, timestamp_delta=i64, offset_delta=i64,
                   has_key=bint)
    cdef Py_ssize_t _whole_records(self, const unsigned char[::1] data, Py_ssize_t position, Py_ssize_t end) except -1

    @cython.locals(timestamp=i64)
    cdef int _note(self, i64 offset_delta, i64 timestamp_delta, bint has_key) except -1

    @cython.locals(stage=cython.int)
    cdef int _take_field(self, i64 value, Py_ssize_t position) except -1

@cython.locals(data="const unsigned char[::1]", end=Py_ssize_t, position=Py_ssize_t, start=Py_ssize_t,
               stop=Py_ssize_t, index=i64, size=i64, length=i64, timestamp_delta=i64, offset_delta=i64,
               header_count=i64, attributes=cython.int, records=list, found=list)
cpdef list decode_records(bytes payload, i64 count)

@cython.locals(end=Py_ssize_t, position=Py_ssize_t, start=Py_ssize_t, size=i64, found=i64)
cpdef tuple whole_records(const unsigned char[::1] data, i64 count, i64 index, i64 passed)

@cython.locals(key_size=Py_ssize_t, value_size=Py_ssize_t, size=Py_ssize_t)
cpdef encode_record(bytearray out, i64 offset_delta, i64 timestamp_delta, key, value, headers)

@cython.locals(end=Py_ssize_t, position=Py_ssize_t, start=Py_ssize_t, index=i64, size=i64, timestamp_delta=i64,
               offset_delta=i64, timestamp=i64, offset=i64)
cpdef find_record(const unsigned char[::1] data, i64 count, i64 base_offset, i64 base_timestamp, i64 min_offset,
                  i64 min_timestamp)

@cython.locals(data="const unsigned char[::1]", flags="const unsigned char[::1]", end=Py_ssize_t,
               position=Py_ssize_t, start=Py_ssize_t, stop=Py_ssize_t, index=i64, size=i64, length=i64,
               timestamp_delta=i64, offset_delta=i64, timestamp=i64, header_count=i64, out=bytearray, body=bytearray,
               kept=i64, largest=i64, fixed=bint, fixed_timestamp=i64, based=bint, base=i64, name=bytes)
cpdef tuple rewrite_records(bytes payload, i64 count, keep, i64 base_timestamp, append_time, new_base_timestamp)

@cython.locals(last_offset_delta=i64, count=i64)
cpdef int header_fault(const unsigned char[::1] data) except? -1

@cython.locals(last=i64, latest=i64)
cpdef (i64, i64) timestamp_bounds(i64 now_ms, i64 before_ms, i64 after_ms) noexcept

@cython.locals(end=Py_ssize_t, position=Py_ssize_t, earliest=i64, latest=i64, walk=RecordWalk, is_filled=bint)
cpdef bint is_sound(const unsigned char[::1] data, i64 crc, i64 now_ms, i64 before_ms, i64 after_ms,
                    bint needs_keys) except -1

@cython.locals(position=Py_ssize_t, size=i64, base_offset=i64, last_offset=i64)
cpdef tuple find_batch(const unsigned char[::1] view, Py_ssize_t start, Py_ssize_t end, i64 target_offset)

@cython.locals(position=Py_ssize_t, size=i64, magic=cython.int, base_offset=i64, crc=i64, time=i64, attributes=i64,
               batches=list)
cpdef tuple scan_batches(const unsigned char[::1] view, Py_ssize_t start, Py_ssize_t end)

cpdef Py_ssize_t offset_index_slot(const unsigned char[::1] data, Py_ssize_t entries, i64 relative_offset) except? -2

cpdef Py_ssize_t position_index_slot(const unsigned char[::1] data, Py_ssize_t entries, i64 file_position) except? -2

cpdef Py_ssize_t time_index_slot(const unsigned char[::1] data, Py_ssize_t entries, i64 timestamp) except? -2

@cython.locals(low=Py_ssize_t, high=Py_ssize_t, middle=Py_ssize_t, at=Py_ssize_t)
cdef Py_ssize_t _floor_slot(const unsigned char[::1] view, Py_ssize_t entries, Py_ssize_t size, Py_ssize_t inside,
                            i64 target) except? -2

cdef u64 _load32(const unsigned char[::1] data, Py_ssize_t position) noexcept

cdef int _snappy_literal(bytearray out, bytes block, Py_ssize_t start, Py_ssize_t stop) except -1

cdef int _snappy_copy(bytearray out, Py_ssize_t distance, Py_ssize_t size) except -1

@cython.locals(data="const unsigned char[::1]", slots="unsigned short[::1]", end=Py_ssize_t, low32=u64, out=bytearray,
               size=Py_ssize_t, mask=Py_ssize_t, emitted=Py_ssize_t, position=Py_ssize_t, candidate=Py_ssize_t,
               limit=Py_ssize_t, skip=Py_ssize_t, step=Py_ssize_t, found=bint, word=u64, slot=u64, start=Py_ssize_t,
               distance=Py_ssize_t)
cpdef bytes snappy_compress(bytes block)

@cython.locals(end=Py_ssize_t, position=Py_ssize_t, low32=u64, frame_magic=u64, magic=u64, bound=i64, size=i64,
               flags=cython.int, is_single=bint, is_last=bint, kind=cython.int)
cpdef i64 zstd_size_bound(const unsigned char[::1] view) except? -2

@cython.locals(end=Py_ssize_t, position=Py_ssize_t, low32=u64, prime1=u64, prime2=u64,
               prime3=u64, prime4=u64, prime5=u64, a=u64, b=u64, c=u64, d=u64, total=u64)
cpdef u64 xxh32(const unsigned char[::1] view) except? 1
