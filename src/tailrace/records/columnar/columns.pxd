# C types for columns.py: Cython reads them when it compiles that file; plain Python never sees them.
#
# Two things that plain Python does otherwise are defined here: the address of a buffer's bytes, and a copy of bytes.

cimport cython
from libc.string cimport memcpy

ctypedef long long i64
ctypedef unsigned long long u64
ctypedef const unsigned char* bytes_t
ctypedef unsigned char* out_t

cdef bint _NATIVE
cdef int _OFFSET
cdef int _TIMESTAMP
cdef int _TIMESTAMP_TYPE
cdef int _KEY
cdef int _VALUE
cdef int _HEADERS
cdef int _LEADER_EPOCH
cdef int _PRODUCER_ID
cdef int _PRODUCER_EPOCH
cdef int _BASE_SEQUENCE
cdef int _BATCH_OFFSET
cdef int _BATCH_SIZE
cdef int _ATTRIBUTES
cdef i64 _BYTES_MAX
cdef i64 _MICROS_MAX

cdef inline bytes_t _source_address(const unsigned char[::1] view) noexcept:
    return &view[0]

cdef inline out_t _target_address(unsigned char[::1] view) noexcept:
    return &view[0]

cdef inline void _copy_bytes(out_t target, Py_ssize_t at, bytes_t source, Py_ssize_t start, Py_ssize_t size) noexcept:
    memcpy(target + at, source + start, size)

@cython.locals(low32=u64, raw=u64, byte=u64, shift=cython.int, value=i64)
cdef (i64, Py_ssize_t) _varint(bytes_t data, Py_ssize_t position, Py_ssize_t end) noexcept

@cython.locals(raw=u64, byte=u64, shift=cython.int, value=i64)
cdef (i64, Py_ssize_t) _varlong(bytes_t data, Py_ssize_t position, Py_ssize_t end) noexcept

@cython.locals(last=i64)
cdef i64 _add(i64 a, i64 b) noexcept

@cython.locals(high=i64)
cdef i64 _int32(bytes_t data, Py_ssize_t position) noexcept

cdef i64 _uint32(bytes_t data, Py_ssize_t position) noexcept

cdef i64 _int64(bytes_t data, Py_ssize_t position) noexcept

@cython.locals(index=Py_ssize_t)
cdef bint _is_ascii(bytes_t data, Py_ssize_t start, Py_ssize_t size) noexcept


@cython.final
cdef class BytesColumn:
    cdef object _allocate
    cdef readonly object offsets_buffer
    cdef readonly object data_buffer
    cdef readonly object validity_buffer
    cdef int[::1] _offsets
    cdef out_t _data
    cdef unsigned char[::1] _validity
    cdef readonly i64 rows
    cdef readonly i64 size
    cdef readonly i64 nulls
    cdef readonly i64 row_room
    cdef readonly i64 byte_room

    cdef int _point(self) except -1
    cpdef reset(self)
    cpdef reserve(self, i64 rows, i64 size)

    @cython.locals(at=i64)
    cdef void _put(self, bytes_t data, Py_ssize_t start, i64 length) noexcept

    cpdef put(self, value)


@cython.final
cdef class IntColumn:
    cdef object _allocate
    cdef readonly object buffer
    cdef readonly int width
    cdef i64[::1] longs
    cdef int[::1] ints
    cdef readonly i64 room

    cdef int _point(self) except -1
    cpdef reset(self)
    cpdef reserve(self, i64 rows, i64 used)

    @cython.locals(row=i64)
    cdef int _fill(self, i64 start, i64 end, i64 value) except -1


@cython.final
cdef class RecordColumns:
    cdef readonly int wanted
    cdef readonly i64 start_offset
    cdef readonly i64 end_offset
    cdef readonly i64 min_timestamp
    cdef readonly i64 max_timestamp
    cdef readonly i64 max_rows
    cdef readonly i64 max_bytes
    cdef readonly object aborted
    cdef readonly i64 rows
    cdef readonly i64 records_read
    cdef readonly i64 next_offset
    cdef readonly bint is_done
    cdef readonly bint is_full
    cdef readonly dict columns
    cdef IntColumn _offset
    cdef IntColumn _timestamp
    cdef IntColumn _timestamp_type
    cdef bint _wants_facts
    cdef i64 _room
    cdef BytesColumn _key
    cdef BytesColumn _value
    cdef readonly IntColumn header_ends
    cdef readonly object header_validity
    cdef unsigned char[::1] _header_bits
    cdef readonly i64 rows_without_headers
    cdef i64 _header_room
    cdef readonly BytesColumn header_keys
    cdef readonly BytesColumn header_values
    cdef object _allocate

    cpdef reset(self)
    cpdef skip_to(self, i64 offset)

    @cython.locals(data=bytes_t, view="const unsigned char[::1]", position=Py_ssize_t, size=i64, magic=cython.int,
                   base_offset=i64, last_offset=i64, attributes=cython.int)
    cpdef Py_ssize_t put_batches(self, source, Py_ssize_t start, Py_ssize_t end) except -1

    @cython.locals(data=bytes_t, view="const unsigned char[::1]", first=i64, base_offset=i64, base_timestamp=i64,
                   max_timestamp=i64, count=i64, log_append_time=bint, timestamp_type=cython.int, payload=bytes,
                   actual=i64, stored=i64)
    cdef void _put_batch(self, source, bytes_t header, Py_ssize_t start, Py_ssize_t size, int attributes) except *

    cdef int _start_rows(self) except -1

    cdef int _reserve(self, i64 count, i64 size) except -1

    @cython.locals(rows=i64, room=i64, before=i64)
    cdef int _reserve_headers(self, i64 count, i64 size) except -1

    cdef i64 _held_bytes(self) noexcept

    @cython.locals(origin=Py_ssize_t, index=i64, size=i64, body=Py_ssize_t, stop=Py_ssize_t, timestamp_delta=i64,
                   offset_delta=i64, timestamp=i64, offset=i64, length=i64, row=i64, offsets="long long[::1]",
                   timestamps="long long[::1]", wants_offset=bint, wants_timestamp=bint, wants_key=bint,
                   wants_value=bint, wants_headers=bint, start_offset=i64, end_offset=i64, min_timestamp=i64,
                   max_timestamp=i64, wants_content=bint, key=BytesColumn, value=BytesColumn)
    cdef int _put_records(self, bytes_t data, Py_ssize_t position, Py_ssize_t end, i64 count, i64 base_offset,
                          i64 base_timestamp, i64 append_time, bint log_append_time) except -1

    @cython.locals(count=i64, length=i64)
    cdef Py_ssize_t _put_headers(self, bytes_t data, Py_ssize_t position, Py_ssize_t stop, i64 row) except -2

    @cython.locals(column=IntColumn, bit=cython.int, value=i64)
    cdef void _fill_facts(self, i64 first, bytes_t header, Py_ssize_t start, i64 size, int attributes,
                         int timestamp_type) except *

    @cython.locals(column=IntColumn, row=i64, bit=cython.int, value=i64, micros=i64)
    cdef void _put_messages(self, message) except *
